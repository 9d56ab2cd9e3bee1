"""Elementwise loops over tiles with a tail: right for every size, guard, type and alignment, and
16 bytes an access wherever a whole tile exists."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tilelab
from tests.kernels import AMPERE, HOPPER
from tests.ops.tail_programs import FORMS, Shape, tensors
from tilelab.runtime.sass import disassemble, instructions

DTYPES = ("float32", "float16", "bfloat16")


def _check(name: str, s: Shape, target: Any = HOPPER, **options: Any) -> None:
    """The kernel on the simulator with all checks, elements outside of the guard untouched."""
    form = FORMS[name]
    a, b, c = tensors(form, s)
    want = form.want(a, b, c, s)
    kernel = tilelab.compile(form.make(s), target=target)
    report = kernel.simulate(a, b, c, **options)
    assert report.ok, str(report)
    assert torch.equal(c, want), (name, s)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FORMS)
def test_form(name: str, dtype: str) -> None:
    """Every form on several blocks, the last of them with a tail of no whole vector."""
    _check(name, Shape(N=1003, limit=709, block=512, threads=64, dtype=dtype))


SPANS = st.tuples(st.integers(1, 1100), st.floats(0, 1))


@settings(max_examples=60)
@given(
    name=st.sampled_from(list(FORMS)),
    span=SPANS,
    block=st.sampled_from([32, 64, 96, 200, 256, 512, 1024]),
    threads=st.sampled_from([32, 64, 128]),
    dtype=st.sampled_from(DTYPES),
    rows=st.integers(1, 9),
    dynamic=st.booleans(),
    target=st.sampled_from([HOPPER, AMPERE]),
    schedule=st.sampled_from(["late", "eager", "random"]),
)
def test_any_size(
    name: str,
    span: tuple[int, float],
    block: int,
    threads: int,
    dtype: str,
    rows: int,
    dynamic: bool,
    target: Any,
    schedule: str,
) -> None:
    """Any size, tile, number of threads and kind of size gives the same as torch does."""
    N, share = span
    limit = max(int(N * share), 1)
    fixed = FORMS[name].static
    s = Shape(N, limit, block, threads, dtype, rows, dynamic and not fixed)
    _check(name, s, target, schedule=schedule)


def _opcodes(name: str, s: Shape, **options: Any) -> list[str]:
    kernel = tilelab.compile(FORMS[name].make(s), target=HOPPER, **options)
    return [i.opcode for i in instructions(disassemble(kernel.cubin.image))]


def _wide(opcodes: list[str], base: str) -> int:
    return sum(o.startswith(base) and ".128" in o for o in opcodes)


ROWS_APART = ("rows", "columns", "both", "neither")  # rows that begin anywhere: nothing is wide
WIDE = [n for n in FORMS if n not in (*ROWS_APART, "twice")]


@pytest.mark.parametrize(
    ("name", "dtype"), [(n, d) for n in WIDE for d in DTYPES[:2]] + [("guard", "bfloat16")]
)
def test_machine_code(name: str, dtype: str) -> None:
    """Where N is odd: 16 bytes at once for whole tiles, single elements for the others, nothing in
    local memory."""
    s = Shape(N=100_003, limit=70_001, block=1024, threads=128, dtype=dtype)
    opcodes = _opcodes(name, s)
    loads = 1 if name in ("choice", "two_ways") else 2
    loads -= name == "neighbours"  # A[p + 1] begins between vectors
    assert _wide(opcodes, "LDG") >= loads and _wide(opcodes, "STG") >= 1, opcodes
    assert any(o.startswith("STG") and ".128" not in o for o in opcodes)
    assert not any(o.startswith(("LDL", "STL")) for o in opcodes)


@pytest.mark.parametrize("name", ["guard", "both", "vectorized"])
def test_guard_of_whole_vectors(name: str) -> None:
    """Where N is whole vectors, one version is enough: each vector exists or does not."""
    s = Shape(N=100_000, limit=70_000, block=1024, threads=128, dtype="float16")
    opcodes = _opcodes(name, s)
    assert all(".128" in o for o in opcodes if o.startswith(("LDG", "STG")))


def test_shape_that_divides() -> None:
    """No guard, no second version."""
    kernel = tilelab.compile(FORMS["guard"].make(Shape(4096, 4096, 1024, 128)), target=HOPPER)
    assert "if (" not in kernel.get_kernel_source()


def test_several_loads_in_flight() -> None:
    """All loads of a tile stand before the first store."""
    opcodes = _opcodes("guard", Shape(100_003, 100_003, 2048, 128))
    first = next(i for i, o in enumerate(opcodes) if o.startswith("STG") and ".128" in o)
    assert _wide(opcodes[:first], "LDG") == 8


def test_reason_and_switch() -> None:
    """The trace says that there are two versions; tl.whole_tiles turns the first one off."""
    s = Shape(100_003, 100_003, 1024, 128)
    kernel = tilelab.compile(FORMS["guard"].make(s), target=HOPPER)
    assert any("for whole tiles" in note.text for _, note in kernel.trace.notes())
    opcodes = _opcodes("guard", s, pass_configs={"tl.whole_tiles": False})
    assert _wide(opcodes, "LDG") == 0
