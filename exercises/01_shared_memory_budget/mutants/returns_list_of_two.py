# fails: ANSWER_FORM
def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    stage = -(-block_M * block_K * bits // 8) + -(-block_K * block_N * bits // 8)
    return [stage, stage * max(num_stages, 1)]
