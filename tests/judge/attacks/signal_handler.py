# expects: WRONG_BYTES_PER_STAGE signal
"""Wakes up by an alarm between two questions."""

import os
import signal


def later(number, frame):
    for pipe in range(3, 30):
        try:
            os.fstat(pipe)
        except OSError:
            pass


signal.signal(signal.SIGALRM, later)
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return 1, 1, 1
