"""The step of an online softmax between the two gemms of attention, as a macro."""

import tilelang.language as T  # pyright: ignore[reportMissingImports]


def online_softmax(rows, columns, dim, scale):
    """`step(score, acc, top, before, fade, total)`: turn scores (rows, columns) into weights
    exp2((score - top) * scale), with sums in `total` and `acc` (rows, dim) scaled to the new top.
    """

    @T.macro
    def step(score, acc, top, before, fade, total):
        T.copy(top, before)
        T.reduce_max(score, top, dim=1, clear=False)
        for i in T.Parallel(rows):
            fade[i] = T.exp2(before[i] * scale - top[i] * scale)
        for i, j in T.Parallel(rows, columns):
            score[i, j] = T.exp2(score[i, j] * scale - top[i] * scale)
        for i in T.Parallel(rows):
            total[i] *= fade[i]
        T.reduce_sum(score, total, dim=1, clear=False)
        for i, j in T.Parallel(rows, dim):
            acc[i, j] *= fade[i]

    return step
