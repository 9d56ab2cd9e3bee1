# expects: RAISED denied calls
"""Makes its pipes as large as the system lets it: memory that no limit counts."""

import fcntl
import os

F_SETPIPE_SZ = 1031


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    for _ in range(20):
        _, end = os.pipe()
        fcntl.fcntl(end, F_SETPIPE_SZ, 1 << 20)
    return 0, 0, 0
