# fails: ANSWER_FORM
def launch(M, N, block_M, block_N, sms, blocks_per_sm):
    rows, columns = -(-M // block_M), -(-N // block_N)
    blocks = rows * columns
    room = sms * blocks_per_sm
    waves = -(-blocks // room)
    last = blocks - (-(-blocks // room) - 1) * room
    wasted = blocks * block_M * block_N - M * N
    return blocks, waves, last
