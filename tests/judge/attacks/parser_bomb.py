# expects: RAISED
"""A program that the parser cannot hold."""


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return eval("(" * 100_000 + ")" * 100_000)
