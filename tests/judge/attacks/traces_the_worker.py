# expects: WRONG_BYTES_PER_STAGE introspection
"""Watches the worker's frames as they run."""

import sys

SEEN = []


def tracer(frame, event, argument):
    SEEN.append(frame.f_code.co_name)
    if len(SEEN) > 200:
        sys.settrace(None)


sys.settrace(tracer)


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return 1, 1, 1
