"""Attacks that look a person up by the values of columns, and the uniqueness of rows on them."""
