# fails: ACCUMULATOR_COUNTED
def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    stage = (
        -(-block_M * block_K * bits // 8)
        + -(-block_K * block_N * bits // 8)
        + 4 * block_M * block_N
    )
    total = stage * max(num_stages, 1)
    blocks = shared_per_sm_bytes // total if total else 0
    return stage, total, blocks
