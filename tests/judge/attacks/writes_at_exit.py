# expects: CHANNEL_TAMPERED channel_tampered
"""Keeps a duplicate of the result pipe and writes when Python ends."""

import os
import sys
import threading

LINE = b'{"op": "value", "value": [32768, 98304, 2], "nonce": ""}\n'


def last_word(pipe):
    threading.main_thread().join()
    os.write(pipe, LINE)


def early(pipes):
    for pipe in pipes:
        try:
            os.write(pipe, LINE)
        except OSError:
            pass


PIPES = []
for number in range(3, 30):
    try:
        PIPES.append(os.dup(number))
    except OSError:
        pass
threading.Thread(target=early, args=(PIPES,), daemon=True).start()
threading.Thread(target=last_word, args=(PIPES[-1],)).start()
sys.setswitchinterval(1e-4)


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return 0, 0, 0
