"""Forty mistakes in a cell: what was written in place of what, and the line of the cell that it is
on (the magic's own line is the first)."""

from __future__ import annotations

from tests.notebook.test_magics import BODY

SIZES = "M=128 N=128 K=128"
_CLEAR, _GEMM = "T.clear(c)", "T.gemm(a, b, c)"
_STORE = "T.copy(c, C[by * 128, bx * 128])"
_LOAD = "T.copy(A[by * 128, ko * block_K], a)"
_KERNEL, _LOOP = "threads=128)", "num_stages=stages)"
_A_TILE = 'T.alloc_shared((128, block_K), "float16")'

_SEEDED: tuple[tuple[int, str, str], ...] = (
    (17, _GEMM, "T.gem(a, b, c)"), (17, _GEMM, "T.gemm(A, b, c)"), (17, _GEMM, "T.gemm(a, b)"),
    (17, _GEMM, "T.gemm(a, b, c, policy='wide')"), (17, _GEMM, "T.gemm(b, a, c)"),
    (17, _GEMM, "T.gemm(a, b, c, transpose=True)"), (17, _GEMM, "c = a @ b"),
    (12, '"float32")', '"float33")'), (12, "(128, 128)", "(128, bx)"),
    (15, _LOAD, "T.copy(A[by * 128], a)"), (15, _LOAD, "T.copy(A[0, 0, 0], a)"),
    (15, _LOAD, "T.copy(A, a, b, c)"), (15, _LOAD, "T.copy(a)"),
    (15, _LOAD, "T.copy(A[by * 128, k0], a)"), (15, _LOAD, "T.copy(A['x', 0], a)"),
    (18, _STORE, "T.copy(c, C[by * 128, bx * 128], way='fast')"),
    (18, _STORE, "T.copy(c, C[by * 128])"), (18, _STORE, "T.copy(c, D[by * 128, bx * 128])"),
    (18, _STORE, "T.coppy(c, C[by * 128, bx * 128])"), (18, _STORE, "T.copy(c, C, C)"),
    (13, _CLEAR, "T.clear()"), (13, _CLEAR, "T.clear(sums)"), (13, _CLEAR, "T.fill(c)"),
    (13, _CLEAR, "c[0, 0, 0] = 1"), (13, _CLEAR, "c[0.5, 0] = 1"), (13, _CLEAR, "c[0, 0] = 'one'"),
    (13, _CLEAR, "c[0, 0] = total"), (13, _CLEAR, "T.reduce_max(c)"),
    (13, _CLEAR, "T.clear(c).wait()"), (13, _CLEAR, "T.copy(c, a)"),
    (13, _CLEAR, "class Sums: pass"), (13, _CLEAR, "T.copy(c)"),
    (13, _CLEAR, "with T.Kernel(1): T.clear(c)"), (13, _CLEAR, "if a: T.clear(c)"),
    (13, _CLEAR, "for i, j in T.Parallel(128): c[i, j] = 0"),
    (14, _LOOP, "num_stages=-1)"), (14, _LOOP, "num_stages='three')"),
    (9, _KERNEL, "threads=2048)"), (9, _KERNEL, "threads='many')"),
    (10, _A_TILE, "T.alloc_shared((128, -1), 'float16')"),
)  # fmt: skip


def _seed(right: str, wrong: str) -> str:
    assert right in BODY, right
    return BODY.replace(right, wrong, 1)


MISTAKES = tuple((wrong, line, _seed(right, wrong)) for line, right, wrong in _SEEDED)
"""(what was written, its line in the cell, the cell's body)."""
