# expects: RAISED network calls
"""Calls out."""

import socket


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    socket.create_connection(("127.0.0.1", 9), timeout=1)
