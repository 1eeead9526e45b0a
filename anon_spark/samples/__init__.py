"""Seeded synthetic tables made on Spark, for demonstrations, tests and benchmarks; they contain no real persons."""
