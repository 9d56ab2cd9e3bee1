"""Accesses to shared memory with known bank behaviour, as programs of one warp: what
tests/gpu/record_banks.py measures on a GPU, and the simulator is compared with.

Each program fills 16 KiB of shared memory with 4-byte stores free of conflicts, then makes one
access per lane. Addresses are in units of the access' width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.sim.programs import Block, lanes, load, loop, ref, when
from tilelab.ir import Expr, Var
from tilelab.layout import SharedLayout, swizzled
from tilelab.thread import Program
from tilelab.thread import intrinsics as I

WORDS = 4096  # of 4 bytes
FILLS = WORDS // 32
Unit = Callable[[Expr], Any]

SCALAR: dict[str, Unit] = {
    f"stride_{n}": (lambda tx, n=n: tx * n) for n in (1, 2, 4, 8, 16, 32, 33)
} | {"broadcast": lambda tx: tx * 0, "pairs": lambda tx: tx // 2, "reversed": lambda tx: 31 - tx}
VECTOR: dict[str, Unit] = {
    "next": lambda tx: tx, "every_2nd": lambda tx: tx * 2, "every_8th": lambda tx: tx * 8,
    "broadcast": lambda tx: tx * 0, "by_2": lambda tx: tx // 2, "by_4": lambda tx: tx // 4,
    "by_8": lambda tx: tx // 8, "by_16": lambda tx: tx // 16, "mod_2": lambda tx: tx % 2,
    "mod_4": lambda tx: tx % 4, "mod_8": lambda tx: tx % 8, "mod_16": lambda tx: tx % 16,
    "xor_2": lambda tx: tx // 4 * 2 + tx % 2, "pair_far": lambda tx: tx // 2 + tx % 2 * 32,
    "halves_far": lambda tx: tx // 2 % 8 + tx // 16 * 32,
    "half_by_2": lambda tx: tx // 2 + tx // 16 * (tx - tx // 2),
    "by_2_then_xor_2": lambda tx: tx // 2 + tx // 16 * (tx // 4 * 2 + tx % 2 - tx // 2),
}  # fmt: skip


def _filled(words: int = WORDS) -> tuple[Block, Any, Any]:
    """A block whose shared words hold what src does; (block, words, out tensor)."""
    b = Block(32)
    src, s = b.tensor("src", (words,)), b.shared("S", (words,), "float32")
    i = Var("i", lo=0, hi=words // 32 - 1)
    b.add(
        loop(i, words // 32, b.store(s, i * 32 + b.tx, load(src, i * 32 + b.tx))),
        b.call(I.SYNCTHREADS),
    )
    return b, s, b.tensor("out", (32, 4))


def _write_out(b: Block, out: Any, v: Any, count: int) -> None:
    r = Var("r", lo=0, hi=count - 1)
    b.add(lanes(r, count, b.store(out, (b.tx, r), load(v, r))))


def read(unit: Unit, count: int) -> Block:
    """Each lane reads `count` words at unit(lane) * count."""
    b, s, out = _filled()
    v = b.local("v", count)
    b.add(b.copy(ref(v, 0, count=count), ref(s, unit(b.tx) * count, count=count), count))
    _write_out(b, out, v, count)
    return b


PART: dict[str, tuple[Unit, Unit]] = {
    "even_lanes": (lambda tx: tx % 2 == 0, lambda tx: tx // 2),
    "pairs_of_4": (lambda tx: tx % 4 < 2, lambda tx: tx // 4 * 2 + tx % 2),
    "ends_of_4": (lambda tx: (tx % 4 == 0) | (tx % 4 == 3), lambda tx: tx // 4 * 2 + tx % 2),
    "three_of_4": (lambda tx: tx % 4 < 3, lambda tx: tx),
    "first_half": (lambda tx: tx < 16, lambda tx: tx),
    "quarters": (lambda tx: tx % 16 < 8, lambda tx: tx // 16 * 8 + tx % 8),
}
"""(which lanes run, unit)."""


def read_some(name: str, count: int) -> Block:
    """The lanes of PART[name] read `count` words."""
    runs, unit = PART[name]
    b, s, out = _filled()
    v, r = b.local("v", count), Var("r", lo=0, hi=count - 1)
    b.add(
        when(
            runs(b.tx),
            b.copy(ref(v, 0, count=count), ref(s, unit(b.tx) * count, count=count), count),
            lanes(r, count, b.store(out, (b.tx, r), load(v, r))),
        )
    )
    return b


def write(unit: Unit, count: int) -> Block:
    """Each lane writes `count` words at unit(lane) * count, then the warp reads some back."""
    b, s, out = _filled()
    v, r = b.local("v", count), Var("r", lo=0, hi=count - 1)
    b.add(
        lanes(r, count, b.store(v, r, load(b.tensors[0], b.tx * count + r))),
        b.call(I.SYNCTHREADS),
        b.copy(ref(s, unit(b.tx) * count, count=count), ref(v, 0, count=count), count),
        b.call(I.SYNCTHREADS),
        b.store(out, (b.tx, 0), load(s, b.tx)),
    )
    return b


def _tile(layout: SharedLayout | None, pitch: int = 64) -> tuple[Block, Any, Any]:
    """32 rows of halves (row-major, or as `layout` says), filled without conflicts."""
    b = Block(32)
    src = b.tensor("src", (32, pitch), "float16")
    s = b.shared("S", (32, pitch), "float16", layout=layout)
    i = Var("i", lo=0, hi=pitch - 1)
    at = i * 32 + b.tx
    where = (at // pitch, at % pitch)
    b.add(loop(i, pitch, b.store(s, where, load(src, *where))), b.call(I.SYNCTHREADS))
    return b, s, b.tensor("out", (32, 8), "float16")


def matrices(
    num: int, trans: bool, layout: SharedLayout | None, pitch: int = 64, row: Unit = lambda tx: tx
) -> Block:
    """ldmatrix of a column of `num` 8x8 matrices; lane l gives row(l)."""
    b, s, out = _tile(layout, pitch)
    v = b.local("v", 2 * num, "float16")
    b.add(b.call(I.ldmatrix(num, trans), ref(v, 0, count=2 * num), ref(s, row(b.tx), 16)))
    _write_out(b, out, v, 2 * num)
    return b


def stored_matrices(num: int, layout: SharedLayout | None) -> Block:
    """stmatrix to a column of `num` 8x8 matrices, then one element a lane read back."""
    b, s, out = _tile(layout)
    v, r = b.local("v", 2 * num, "float16"), Var("r", lo=0, hi=2 * num - 1)
    b.add(
        lanes(r, 2 * num, b.store(v, r, load(b.tensors[0], b.tx, r))),
        b.call(I.SYNCTHREADS),
        b.call(I.stmatrix(num, False), ref(s, b.tx, 16), ref(v, 0, count=2 * num)),
        b.call(I.SYNCTHREADS),
        b.store(out, (b.tx, 0), load(s, 0, b.tx)),
    )
    return b


def column(layout: SharedLayout | None, pitch: int = 64) -> Block:
    """Lane l reads the third 16 bytes of row l."""
    b, s, out = _tile(layout, pitch)
    v = b.local("v", 8, "float16")
    b.add(b.copy(ref(v, 0, count=8), ref(s, b.tx, 16, count=8), 8))
    _write_out(b, out, v, 8)
    return b


def _swizzled() -> SharedLayout:
    return swizzled((32, 64), 16, 128)


PATTERNS: dict[str, Callable[[], Block]] = {
    **{f"read_4_{n}": (lambda u=u: read(u, 1)) for n, u in SCALAR.items()},
    **{f"read_8_{n}": (lambda u=u: read(u, 2)) for n, u in VECTOR.items()},
    **{f"read_16_{n}": (lambda u=u: read(u, 4)) for n, u in VECTOR.items()},
    **{f"write_4_stride_{n}": (lambda n=n: write(SCALAR[f"stride_{n}"], 1)) for n in (1, 2, 32)},
    "write_4_stride_33": lambda: write(SCALAR["stride_33"], 1),
    "write_8_next": lambda: write(VECTOR["next"], 2),
    "write_8_every_2nd": lambda: write(VECTOR["every_2nd"], 2),
    "write_8_by_2": lambda: write(VECTOR["by_2"], 2),
    "write_16_by_2": lambda: write(VECTOR["by_2"], 4),
    **{f"read_{4 * c}_{n}": (lambda n=n, c=c: read_some(n, c)) for n in PART for c in (1, 2, 4)},
    "write_16_next": lambda: write(VECTOR["next"], 4),
    "write_16_every_8th": lambda: write(VECTOR["every_8th"], 4),
    "column_16_plain": lambda: column(None),
    "column_16_padded": lambda: column(None, 72),
    "column_16_swizzled": lambda: column(_swizzled()),
    **{f"ldmatrix_x{n}_plain": (lambda n=n: matrices(n, False, None)) for n in (1, 2, 4)},
    "ldmatrix_x4_swizzled": lambda: matrices(4, False, _swizzled()),
    "ldmatrix_x2_swizzled": lambda: matrices(2, False, _swizzled()),
    "ldmatrix_x4_trans_plain": lambda: matrices(4, True, None),
    "ldmatrix_x4_same_row": lambda: matrices(4, False, None, row=lambda tx: tx * 0),
    "ldmatrix_x4_row_pairs": lambda: matrices(4, False, _swizzled(), row=lambda tx: tx // 2),
    "ldmatrix_x4_padded": lambda: matrices(4, False, None, 72),
    "stmatrix_x4_plain": lambda: stored_matrices(4, None),
    "stmatrix_x4_swizzled": lambda: stored_matrices(4, _swizzled()),
    "stmatrix_x1_plain": lambda: stored_matrices(1, None),
}


def program(name: str) -> Program:
    """The pattern's program, its kernel called bank_NAME."""
    made = PATTERNS[name]().program()
    kernel = replace(made.kernels[0], name=f"bank_{name}")
    return replace(made, name=f"bank_{name}", kernels=(kernel,))
