# expects: TIMEOUT
"""Lets that clock strike while an answer is on its way."""

import signal


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    signal.setitimer(signal.ITIMER_REAL, 1e-6, 1e-6)
    stage = (block_M * block_K + block_K * block_N) * bits // 8
    total = stage * max(num_stages, 1)
    return stage, total, shared_per_sm_bytes // total
