# expects: WORKER_EXIT worker_exit
"""Calls itself through C until the stack ends, with no limit that Python keeps."""

import ctypes
import sys

sys.setrecursionlimit(10**9)
AGAIN = ctypes.CFUNCTYPE(ctypes.c_int)


def fall():
    return AGAIN(fall)()


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return fall()
