"""Seeded synthetic tables made on Spark, for the demo, the tests and the benchmarks: nobody in them exists."""
