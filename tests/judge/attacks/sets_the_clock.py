# expects: RAISED denied calls
"""Turns the clock of the machine."""

import time

time.clock_settime(time.CLOCK_REALTIME, time.time())


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return 1, 1, 1
