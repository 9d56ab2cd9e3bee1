# expects: WORKER_EXIT worker_exit
"""Closes every file that is open."""

import os


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    os.closerange(3, 60)
    return 0, 0, 0
