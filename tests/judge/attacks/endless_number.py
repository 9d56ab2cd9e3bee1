# expects: TIMEOUT
"""Computes a number with a thousand million digits."""


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return 7 ** (10**9), 0, 0
