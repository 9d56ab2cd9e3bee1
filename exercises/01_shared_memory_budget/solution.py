"""Exercise 01: what a tiled GEMM's pipeline costs in shared memory. See task.md."""


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    """Bytes per stage, bytes in all, and blocks per SM as far as shared memory alone decides."""
    ### BEGIN SOLUTION

    def tile_bytes(rows, columns):
        return (rows * columns * bits + 7) // 8

    bytes_per_stage = tile_bytes(block_M, block_K) + tile_bytes(block_K, block_N)
    total_bytes = bytes_per_stage * max(num_stages, 1)
    return {
        "bytes_per_stage": bytes_per_stage,
        "total_bytes": total_bytes,
        "blocks_per_sm": shared_per_sm_bytes // total_bytes,
    }
    ### END SOLUTION
