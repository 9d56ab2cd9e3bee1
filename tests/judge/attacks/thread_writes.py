# expects: CHANNEL_TAMPERED channel_tampered
"""A thread fills the result pipe."""

import os
import threading


def flood():
    while True:
        for number in range(3, 30):
            try:
                os.write(number, b"{}\n")
            except OSError:
                pass


threading.Thread(target=flood, daemon=True).start()


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return 0, 0, 0
