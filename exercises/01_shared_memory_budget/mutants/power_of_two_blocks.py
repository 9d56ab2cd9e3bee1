# fails: WRONG_BLOCKS_PER_SM
def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    stage = -(-block_M * block_K * bits // 8) + -(-block_K * block_N * bits // 8)
    total = stage * max(num_stages, 1)
    blocks = (
        1 << ((shared_per_sm_bytes // total).bit_length() - 1)
        if total <= shared_per_sm_bytes
        else 0
    )
    return stage, total, blocks
