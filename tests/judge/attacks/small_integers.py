# expects: WORKER_EXIT native_code
"""Writes into Python's own small integers, so that 0 is every other number."""

import ctypes

for number in range(1, 200):
    ctypes.c_uint32.from_address(id(number) + 24).value = 0


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return 0, 0, 0
