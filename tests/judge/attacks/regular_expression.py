# expects: TIMEOUT
"""Hangs inside C code, where no Python is interrupted."""

import re


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    re.match("(a+)+b", "a" * 60)
    return 0, 0, 0
