"""Another way to round up, and a list."""


def launch(M, N, block_M, block_N, sms, blocks_per_sm):
    rows, columns = (M + block_M - 1) // block_M, (N + block_N - 1) // block_N
    blocks = rows * columns
    room = sms * blocks_per_sm
    waves = -(-blocks // room)
    last = (blocks - 1) % room + 1
    wasted = blocks * block_M * block_N - M * N
    return [blocks, waves, last, wasted]
