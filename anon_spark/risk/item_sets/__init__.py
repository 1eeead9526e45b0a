"""Attacks on published item lists: by known items, by simulated links, and by the rows alone."""
