"""The detection matrix: programs with one bug each, and the same programs without it."""
