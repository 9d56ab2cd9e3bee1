# expects: TIMEOUT
"""Lets no signal through, and hangs in C code."""

import signal
import threading


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    threading.Lock().acquire() and sum(range(10**14))
