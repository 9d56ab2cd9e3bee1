"""TMA: whole boxes between global and shared memory, by tensor descriptor.

A map operand prints as the kernel parameter, `const __grid_constant__ TensorMap A_desc`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilelab.target import Feature
from tilelab.thread.intrinsic import Array, Intrinsic, Machine, Param, recorded
from tilelab.thread.intrinsics.helpers import INLINE, SMEM_ADDR

_MAP = Param("map", "map")


def _prefetch(m: Machine, tensor_map: Any) -> None:
    """A hint: changes nothing that a program can see."""


_PREFETCH_TENSORMAP_TEXT = f"""
{INLINE} void prefetch_tensormap(const TensorMap& map) {{
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}}"""
PREFETCH_TENSORMAP = Intrinsic(
    "prefetch_tensormap", (_MAP,), "tl::prefetch_tensormap({map})", _PREFETCH_TENSORMAP_TEXT,
    _prefetch, cost="free", needs=Feature.TMA, source="PTX ISA, prefetch",
)  # fmt: skip
"""Bring a descriptor into the cache before its first use."""


def _coords(rank: int) -> list[str]:
    assert 1 <= rank <= 5, f"a tensor map has 1 to 5 dimensions, not {rank}"
    return [f"c{i}" for i in range(rank)]


@recorded
def tma_load(rank: int) -> Intrinsic:
    """One box from global to shared memory; its bytes are counted at the mbarrier."""
    names = _coords(rank)
    places = ", ".join(f"%{3 + i}" for i in range(rank))
    text = f"""
{INLINE} void tma_load(const TensorMap& map, u64& bar, void* dst, {_ints(names)}) {{
  asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes "
               "[%0], [%1, {{{places}}}], [%2];"
               ::"r"(smem_addr(dst)), "l"(&map), "r"(smem_addr(&bar)), {_inputs(names)}
               : "memory");
}}"""

    def meaning(m: Machine, tensor_map: Any, bar: Any, dst: Any, *coords: Array) -> None:
        m.tma_load(tensor_map, bar, dst, coords)

    operands = (_MAP, Param("bar", "barrier"), Param("dst", "writes"), *_params(names))
    return Intrinsic(
        f"tma_load_{rank}d", operands, _call("tma_load", operands), text, meaning, cost="async",
        needs=Feature.TMA, is_async=True, source="PTX ISA, cp.async.bulk.tensor",
        requires=(SMEM_ADDR,),
    )  # fmt: skip


@recorded
def tma_store(rank: int) -> Intrinsic:
    """One box from shared to global memory; parts outside the tensor are dropped."""
    names = _coords(rank)
    places = ", ".join(f"%{2 + i}" for i in range(rank))
    text = f"""
{INLINE} void tma_store(const TensorMap& map, const void* src, {_ints(names)}) {{
  asm volatile("cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group "
               "[%0, {{{places}}}], [%1];"
               ::"l"(&map), "r"(smem_addr(src)), {_inputs(names)} : "memory");
}}"""

    def meaning(m: Machine, tensor_map: Any, src: Any, *coords: Array) -> None:
        m.tma_store(tensor_map, src, coords)

    operands = (_MAP, Param("src", "reads"), *_params(names))
    return Intrinsic(
        f"tma_store_{rank}d", operands, _call("tma_store", operands), text, meaning, cost="async",
        needs=Feature.TMA, is_async=True, source="PTX ISA, cp.async.bulk.tensor",
        requires=(SMEM_ADDR,),
    )  # fmt: skip


def _ints(names: list[str]) -> str:
    return ", ".join(f"int {n}" for n in names)


def _inputs(names: list[str]) -> str:
    return ", ".join(f'"r"({n})' for n in names)


def _params(names: list[str]) -> list[Param]:
    return [Param(n, "value") for n in names]


def _call(name: str, operands: tuple[Param, ...]) -> str:
    return f"tl::{name}(" + ", ".join("{" + p.name + "}" for p in operands) + ")"


def _commit(m: Machine) -> None:
    m.bulk_commit()


_TMA_STORE_COMMIT_TEXT = f"""
{INLINE} void tma_store_commit() {{ asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }}"""
TMA_STORE_COMMIT = Intrinsic(
    "tma_store_commit", (), "tl::tma_store_commit()", _TMA_STORE_COMMIT_TEXT, _commit, cost="async",
    needs=Feature.TMA, is_async=True, source="PTX ISA, cp.async.bulk.commit_group",
)  # fmt: skip
"""Close the group of TMA stores that this thread issued since the last commit."""


def _store_wait(name: str, suffix: str, n: int, read_only: bool) -> Intrinsic:
    text = f"""
template <int N> {INLINE} void {name}() {{
  asm volatile("cp.async.bulk.wait_group{suffix} %0;" ::"n"(N) : "memory");
}}"""

    def meaning(m: Machine) -> Iterator[Any]:
        yield from m.bulk_wait(n, read_only)

    return Intrinsic(
        f"{name}_{n}", (), f"tl::{name}<{n}>()", text, meaning, cost="wait", needs=Feature.TMA,
        waits=True, source="PTX ISA, cp.async.bulk.wait_group",
    )  # fmt: skip


@recorded
def tma_store_wait_read(n: int) -> Intrinsic:
    """Wait until all but the `n` newest groups have read their shared memory."""
    return _store_wait("tma_store_wait_read", ".read", n, True)


@recorded
def tma_store_wait(n: int) -> Intrinsic:
    """Wait until all but the `n` newest groups have written global memory."""
    return _store_wait("tma_store_wait", "", n, False)
