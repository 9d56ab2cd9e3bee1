# expects: RAISED
"""Raises text that no terminal and no file can take: halves of characters, and marks that turn the
direction of a line."""


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    print("\u202e85 of 85\u202c")
    raise ValueError("\ud800\udfff \x1b[2J \u202etinu \u2066")
