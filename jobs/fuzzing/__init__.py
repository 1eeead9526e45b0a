"""Random tables and jobs of all families, each judged by brute force: the parts of jobs/fuzz.py."""
