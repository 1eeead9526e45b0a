"""The papers' experiments and claims, one module per family."""
