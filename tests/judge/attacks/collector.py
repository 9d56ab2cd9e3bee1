# expects: CHANNEL_TAMPERED
"""Has the garbage collector write answers whenever it runs."""

import gc
import os


def write(phase, info):
    for pipe in range(3, 30):
        try:
            os.write(pipe, b'{"op": "value", "value": [1, 1, 1]}\n')
        except OSError:
            pass


gc.callbacks.append(write)
gc.collect()


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    gc.collect()
    return 1, 1, 1
