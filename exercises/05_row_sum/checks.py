"""What the judge asks of exercise 05: tails on both axes, long rows, values with a large mean."""

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
    coalesced,
    traffic,
)


def row_sums(a: Any) -> Any:
    """The reference."""
    return a.sum(dim=1)


def _case(
    name: str, category: str, m: int, n: int, part: Any = "edges", shift: float = 0.0
) -> KernelCase:
    return KernelCase(f"{part}.{name}", category, part, {"M": m, "N": n}, True, 1.0, shift)


def draw(rng: Random) -> Sequence[KernelCase]:
    """Hidden cases: five of ordinary sizes, five at the edges."""
    few = rng.randrange(3, 30)
    ordinary = [
        _case("square", "multiples of the tile", 64, 128 * rng.randrange(1, 5), "correctness"),
        _case("tails", "tails on both axes", few, rng.randrange(130, 700), "correctness"),
        _case("tall", "many short rows", rng.randrange(300, 600), 40, "correctness"),
        _case("long", "a long row", 3, 16_385, "correctness"),
        _case("mean", "values with a large mean", few, rng.randrange(900, 1100), "correctness",
              40.0),
    ]  # fmt: skip
    edges = [
        _case("one", "a single element", 1, 1),
        _case("column", "a single column", rng.randrange(30, 200), 1),
        _case("below", "one less than a tile", 7, 127, shift=8.0),
        _case("above", "one more than a tile", 9, 257, shift=8.0),
        _case("prime", "primes", 13, rng.choice((509, 1021, 2039)), shift=8.0),
    ]
    return [*ordinary, *edges]


def baseline(a: Any) -> Any:
    """What torch's users write for it."""
    return torch.sum(a, dim=1, dtype=torch.float32)


def _bytes(sizes: Sizes) -> int:
    return 2 * sizes["M"] * sizes["N"] + 4 * sizes["M"]


def _flops(sizes: Sizes) -> int:
    return sizes["M"] * sizes["N"]


EXERCISE = KernelTask(
    entry="row_sum",
    tensors=(Tensor("A", ("M", "N"), "float16"), Tensor("S", ("M",), "float32", output=True)),
    public=(
        KernelCase("public.tile", "whole tiles", "", {"M": 64, "N": 256}, False),
        KernelCase("public.tails", "tails on both axes", "", {"M": 37, "N": 1000}, False, 1.0, 8.0),
        KernelCase("public.long", "a long row", "", {"M": 5, "N": 3001}, False),
    ),
    draw=draw,
    reference=row_sums,
    reduction=lambda sizes: sizes["N"],
    terms=lambda index, a: a[index[0]],
    structure=(coalesced(1.1), traffic(1.05), busy_blocks()),
    structure_sizes={"M": 64, "N": 1024},
    performance=Performance({"M": 8192, "N": 8192}, 0.6, 0.9, baseline, _bytes, _flops),
    starter_code="NOT_IMPLEMENTED",
    hints=(
        "keep one float32 fragment of partial sums per block, and clear it before the loop",
        'inside the loop add T.cast(A[...], "float32") to the fragment, element by element',
        "after the loop: T.reduce_sum(part, total, dim=1), then write `total` where rows exist",
    ),
)
