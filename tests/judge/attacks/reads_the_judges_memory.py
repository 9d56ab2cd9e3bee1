# expects: RAISED introspection files
"""Looks for the right answers where they are."""

import os


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    with open(f"/proc/{os.getppid()}/mem", "rb") as memory:
        memory.read(1)
