# expects: TIMEOUT
"""Writes an answer byte by byte and never ends it, so that the judge waits for the next one."""

import os
import time


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    while True:
        for pipe in range(3, 30):
            try:
                os.write(pipe, b" ")
            except OSError:
                pass
        time.sleep(0.05)
