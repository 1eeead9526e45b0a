"""What `jobs/benchmark.py` measures, one module per family."""
