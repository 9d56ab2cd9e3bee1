# expects: RAISED worker_exit
"""Asks Python to stop."""

import sys


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    sys.exit(0)
