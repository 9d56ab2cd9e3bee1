"""Tile ops in the simulator: own programs over dtype, shape and target against torch."""
