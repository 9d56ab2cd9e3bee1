"""Works in bits and returns a list."""


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    a_bits, b_bits = block_M * block_K * bits, block_K * block_N * bits
    stage = sum(divmod(b, 8)[0] + bool(b % 8) for b in (a_bits, b_bits))
    copies = num_stages if num_stages > 1 else 1
    return [stage, copies * stage, shared_per_sm_bytes // (copies * stage)]
