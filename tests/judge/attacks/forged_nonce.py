# expects: CHANNEL_TAMPERED channel_tampered
"""Takes the worker's own channel and nonce from the stack and answers twice."""

import sys


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    frame = sys._getframe()
    while "request" not in frame.f_locals or "self" not in frame.f_locals:
        frame = frame.f_back
    nonce = frame.f_locals["request"]["nonce"]
    for _ in range(2):
        frame.f_locals["self"].say({"op": "value", "value": [1, 2, 3], "nonce": nonce})
    return 1, 2, 3
