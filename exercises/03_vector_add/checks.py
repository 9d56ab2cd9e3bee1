"""What the judge asks of exercise 03: sizes around the block, all float types' worth of values."""

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

PRIMES = (251, 509, 1021, 2039)
LARGE = 10_000_000


def add(a: Any, b: Any) -> Any:
    """The reference."""
    return a + b


def _case(name: str, category: str, n: int, part: Any = "edges", scale: float = 1.0) -> KernelCase:
    return KernelCase(f"{part}.{name}", category, part, {"N": n}, True, scale)


def draw(rng: Random) -> Sequence[KernelCase]:
    """Hidden cases: five of ordinary lengths, five at the edges."""
    ordinary = [
        _case("multiple", "a multiple of the block", 256 * rng.randrange(2, 9), "correctness"),
        _case("tail", "a tail", 256 * rng.randrange(2, 9) + rng.randrange(2, 255), "correctness"),
        _case("small", "large and small values", rng.randrange(300, 900), "correctness", 1e-3),
        _case("wide", "large and small values", rng.randrange(300, 900), "correctness", 1e3),
        _case("many", "many blocks", rng.randrange(20_000, 60_000), "correctness"),
    ]
    edges = [
        _case("one", "a single element", 1),
        _case("below", "one less than a block", 256 * rng.randrange(1, 5) - 1),
        _case("above", "one more than a block", 256 * rng.randrange(1, 5) + 1),
        _case("prime", "a prime", rng.choice(PRIMES)),
        _case("large", "a large vector", rng.randrange(200_000, 300_000)),
    ]
    return [*ordinary, *edges]


def _bytes(sizes: Sizes) -> int:
    return 3 * 4 * sizes["N"]


def _flops(sizes: Sizes) -> int:
    return sizes["N"]


EXERCISE = KernelTask(
    entry="vector_add",
    tensors=(
        Tensor("A", ("N",), "float32"),
        Tensor("B", ("N",), "float32"),
        Tensor("C", ("N",), "float32", output=True),
    ),
    public=(
        KernelCase("public.block", "one block", "", {"N": 256}, False),
        KernelCase("public.tail", "a tail", "", {"N": 1000}, False),
        KernelCase("public.many", "many blocks", "", {"N": 5000}, False),
    ),
    draw=draw,
    reference=add,
    reduction=lambda sizes: 1,
    structure=(coalesced(1.1), traffic(1.05), busy_blocks()),
    structure_sizes={"N": 8192},
    performance=Performance({"N": LARGE}, 0.6, 0.9, torch.add, _bytes, _flops),
    starter_code="NOT_IMPLEMENTED",
    hints=(
        "the i-th element of block bx is number bx * block + i",
        "the grid needs T.ceildiv(N, block) blocks; N // block leaves the tail out",
        "guard the tail: `if bx * block + i < N:` around the assignment",
    ),
)
