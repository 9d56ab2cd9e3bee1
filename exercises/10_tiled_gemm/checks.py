"""What the judge asks of exercise 10: tails on every axis, tensor cores, modest shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import torch

from judge.kernels import (
    KernelCase,
    KernelTask,
    Performance,
    Sizes,
    Tensor,
    busy_blocks,
    conflict_free,
    shared_at_most,
    tensor_cores,
)


def product(a: Any, b: Any) -> Any:
    """The reference."""
    return a @ b


def _case(
    name: str, category: str, m: int, n: int, k: int, part: Any = "edges", shift: float = 0.0
) -> KernelCase:
    sizes = {"M": m, "N": n, "K": k}
    return KernelCase(f"{part}.{name}", category, part, sizes, True, 1.0, shift)


def draw(rng: Random) -> Sequence[KernelCase]:
    """Hidden cases: five of ordinary sizes, five at the edges."""
    ordinary = [
        _case("tile", "one tile", 128, 128, 64 * rng.randrange(1, 3), "correctness"),
        _case("steps", "several k-steps", 64, 128, 64 * rng.randrange(3, 6), "correctness"),
        _case("wide", "wider than tall", 40, 8 * rng.randrange(17, 33), 96, "correctness"),
        _case("tall", "taller than wide", 8 * rng.randrange(17, 33), 40, 96, "correctness"),
        _case("mean", "values with a mean", 96, 104, 8 * rng.randrange(9, 20), "correctness", 1.0),
    ]
    edges = [
        _case("one", "single elements", 1, 1, 1),
        _case("below", "around a tile", 127, 129, 65),
        _case("prime", "odd sizes", 131, rng.choice((67, 101, 113)), 37),
        _case("k_one", "a single k", rng.randrange(30, 90), rng.randrange(30, 90), 1),
        _case("several", "several tiles with tails", 257, 191, 130),
    ]
    return [*ordinary, *edges]


def _bytes(sizes: Sizes) -> int:
    m, n, k = sizes["M"], sizes["N"], sizes["K"]
    return 2 * (m * k + k * n + m * n)


def _flops(sizes: Sizes) -> int:
    return 2 * sizes["M"] * sizes["N"] * sizes["K"]


EXERCISE = KernelTask(
    entry="gemm",
    tensors=(
        Tensor("A", ("M", "K"), "float16"),
        Tensor("B", ("K", "N"), "float16"),
        Tensor("C", ("M", "N"), "float16", output=True),
    ),
    public=(
        KernelCase("public.tile", "one tile", "", {"M": 128, "N": 128, "K": 64}, False),
        KernelCase("public.tails", "tails on every axis", "", {"M": 100, "N": 72, "K": 200}, False),
        KernelCase("public.several", "several tiles", "", {"M": 136, "N": 264, "K": 136}, False),
    ),
    draw=draw,
    reference=product,
    reduction=lambda sizes: sizes["K"],
    terms=lambda index, a, b: a[index[0]] * b[:, index[1]],
    structure=(tensor_cores(), shared_at_most(64 << 10), conflict_free(1.05), busy_blocks()),
    structure_sizes={"M": 256, "N": 256, "K": 128},
    performance=Performance(
        {"M": 2048, "N": 2048, "K": 2048}, 0.2, 0.4, torch.matmul, _bytes, _flops
    ),
    starter_code="NOT_IMPLEMENTED",
    hints=(
        "T.copy(A[by * block_M, k * block_K], a_tile) copies the tile that starts there",
        "clear the float32 fragment once, before the loop over k; T.gemm adds to it",
        "after the loop: T.copy(total, C[by * block_M, bx * block_N])",
    ),
)
