# expects: RAISED denied calls
"""Asks the kernel to send the judge a signal when a pipe can be read: a kill by another name."""

import fcntl
import os

F_SETOWN, F_SETSIG, SIGKILL = 8, 10, 9


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    ours, theirs = os.pipe()
    fcntl.fcntl(ours, F_SETSIG, SIGKILL)
    fcntl.fcntl(ours, F_SETOWN, os.getppid())
    fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC)
    os.write(theirs, b"now")
    with open("/tmp/tilelab-judge-attack", "w") as stream:
        stream.write("sent")
    return 0, 0, 0
