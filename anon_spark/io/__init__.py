"""Reading at a pinned version, publication, run log, hierarchies from files and tables."""
