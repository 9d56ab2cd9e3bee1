"""Exercise 01: what a tiled GEMM's pipeline costs in shared memory. See task.md."""


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    """Bytes per stage, bytes in all, and blocks per SM as far as shared memory alone decides."""
    raise NotImplementedError("write your solution here")
