# expects: STORAGE
"""Prints without end."""


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    while True:
        print("x" * 65536)
