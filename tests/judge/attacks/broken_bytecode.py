# expects: WORKER_EXIT worker_exit
"""Runs code that no compiler made: it reads its constants from where there are none."""


def never():
    return None


code = never.__code__
never.__code__ = code.replace(
    co_code=b"\x64\xff" * 200 + code.co_code, co_consts=(), co_stacksize=1
)


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return [never() for _ in range(9)]
