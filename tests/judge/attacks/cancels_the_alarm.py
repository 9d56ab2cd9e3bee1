# expects: TIMEOUT
"""Switches off the clock by which the worker says where it hangs, and hangs."""

import signal


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    while True:
        pass
