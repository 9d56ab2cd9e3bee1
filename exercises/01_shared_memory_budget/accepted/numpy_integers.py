"""Counts with numpy and returns numpy integers."""

import numpy as np


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    elements = np.array([block_M * block_K, block_K * block_N], dtype=np.int64)
    stage = np.sum((elements * bits + 7) // 8)
    total = stage * max(num_stages, 1)
    return {
        "bytes_per_stage": stage,
        "total_bytes": total,
        "blocks_per_sm": np.int64(shared_per_sm_bytes) // total,
    }
