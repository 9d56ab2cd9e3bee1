# expects: RAISED denied calls
"""Calls that reach files and programs by ways of their own: io_uring, bpf, perf, keys, userfaultfd,
new mounts, another root."""

import ctypes

CALLS = (425, 321, 298, 248, 250, 323, 429, 430, 155, 161, 272, 308, 310, 311)
libc = ctypes.CDLL(None, use_errno=True)


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    allowed = []
    room = ctypes.create_string_buffer(256)
    for number in CALLS:
        if libc.syscall(number, 1, room, 0, 0, 0) != -1:
            allowed.append(number)
    if allowed:
        with open("/tmp/tilelab-judge-attack", "w") as stream:
            stream.write(str(allowed))
    raise PermissionError(1, f"allowed: {allowed}")
