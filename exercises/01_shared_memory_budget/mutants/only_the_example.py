# fails: WRONG_BYTES_PER_STAGE
def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return 32768, 98304, 2
