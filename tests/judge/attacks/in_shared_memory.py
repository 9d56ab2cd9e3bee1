# expects: RAISED writes_file files
"""Talks to another run through /dev/shm."""

from pathlib import Path


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    Path("/dev/shm/tilelab-judge-attack").write_text("32768 98304 2")
    return 0, 0, 0
