# expects: MEMORY
"""Starts threads until nothing is left."""

import threading
import time


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    for _ in range(100_000):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    return 0, 0, 0
