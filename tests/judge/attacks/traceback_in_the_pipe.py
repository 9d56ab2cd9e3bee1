# expects: CHANNEL_TAMPERED channel_tampered
"""Lets C code write to the result pipe."""

import faulthandler


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    for number in range(3, 30):
        try:
            faulthandler.dump_traceback(file=number)
        except (OSError, ValueError):
            pass
    return 0, 0, 0
