# expects: WRONG_BYTES_PER_STAGE introspection
"""Is called back for every call that the worker makes."""

import sys


def seen(frame, event, argument):
    if frame.f_code.co_name == "say":
        frame.f_locals.get("message", {})["value"] = [32768, 98304, 2]
        sys.setprofile(None)


sys.setprofile(seen)


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return 1, 1, 1
