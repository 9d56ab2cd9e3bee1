# expects: WORKER_EXIT worker_exit
"""Ends the process as if all were well."""

import os


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    os._exit(0)
