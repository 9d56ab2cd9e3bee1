"""Tile IR: whole-tile operations, one file per op under `ops/`."""
