# expects: CHANNEL_TAMPERED channel_tampered
"""Replaces the worker's own functions."""

import sys

MAIN = sys.modules["__main__"]
MAIN.plain = lambda value, depth=0: [32768, 98304, 2]
MAIN.json.dumps = lambda message: "[]"


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return 0, 0, 0
