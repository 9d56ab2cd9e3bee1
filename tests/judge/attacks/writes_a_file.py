# expects: RAISED writes_file files
"""Leaves something behind."""

from pathlib import Path


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    Path("/tmp/tilelab-judge-attack").write_text("here")
