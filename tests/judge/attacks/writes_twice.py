# expects: CHANNEL_TAMPERED channel_tampered
"""Finds the result pipe and writes an answer of its own besides."""

import os

LINE = b'{"op": "value", "value": [32768, 98304, 2], "nonce": ""}\n'


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    for number in range(3, 30):
        try:
            os.write(number, LINE)
        except OSError:
            pass
    return 32768, 98304, 2
