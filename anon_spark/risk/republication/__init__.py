"""What two releases of one table tell together: who is covered by the same rows in both, and who is new."""
