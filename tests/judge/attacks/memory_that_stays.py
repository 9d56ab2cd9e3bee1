# expects: RAISED native_code calls
"""Takes shared memory that outlives its process."""

import ctypes
import os

SHMGET = {"x86_64": 29, "aarch64": 194}[os.uname().machine]
if ctypes.CDLL(None).syscall(SHMGET, 0, 4096, 0o1600) < 0:
    raise OSError("not allowed")


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return 1, 1, 1
