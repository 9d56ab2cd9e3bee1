"""Exercise 02: how a grid covers a matrix, and what it wastes. See task.md."""


def launch(M, N, block_M, block_N, sms, blocks_per_sm):
    """Blocks, waves, blocks in the last wave, and elements that lie outside the matrix."""
    ### BEGIN SOLUTION
    rows = -(-M // block_M)
    columns = -(-N // block_N)
    blocks = rows * columns
    at_once = sms * blocks_per_sm
    waves = -(-blocks // at_once)
    return {
        "blocks": blocks,
        "waves": waves,
        "last_wave": blocks - (waves - 1) * at_once,
        "wasted": blocks * block_M * block_N - M * N,
    }
    ### END SOLUTION
