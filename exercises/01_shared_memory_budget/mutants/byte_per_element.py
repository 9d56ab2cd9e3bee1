# fails: WHOLE_BYTES_PER_ELEMENT
def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    stage = (block_M + block_N) * block_K * max(bits // 8, 1)
    total = stage * max(num_stages, 1)
    blocks = shared_per_sm_bytes // total if total else 0
    return stage, total, blocks
