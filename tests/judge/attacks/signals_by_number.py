# expects: RAISED native_code calls
"""Looks whether a signal to another process would get through, by the one call left for threads."""

import ctypes
import os

TGKILL = {"x86_64": 234, "aarch64": 131}[os.uname().machine]
if ctypes.CDLL(None).syscall(TGKILL, os.getppid(), os.getppid(), 0):
    raise OSError("not allowed")


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return 1, 1, 1
