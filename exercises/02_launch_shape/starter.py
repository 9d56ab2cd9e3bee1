"""Exercise 02: how a grid covers a matrix, and what it wastes. See task.md."""


def launch(M, N, block_M, block_N, sms, blocks_per_sm):
    """Blocks, waves, blocks in the last wave, and elements that lie outside the matrix."""
    raise NotImplementedError("write your solution here")
