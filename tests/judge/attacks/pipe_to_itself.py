# expects: RAISED denied calls
"""Opens a pair of sockets, which needs no network."""

import socket


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    left, right = socket.socketpair()
    return 0, 0, 0
