# expects: RAISED writes_file calls
"""Makes a folder look as if somebody had just written to it."""

import os

os.utime("/tmp")


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return 1, 1, 1
