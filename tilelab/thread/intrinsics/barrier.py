"""Barriers: of the block, named, and mbarriers in shared memory.

A barrier operand prints as an lvalue of type u64, such as `full[slot]`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilelab.target import Feature
from tilelab.thread.intrinsic import Array, Cost, Intrinsic, Machine, Meaning, Param
from tilelab.thread.intrinsics.helpers import INLINE, SMEM_ADDR

_BAR = Param("bar", "barrier")


def _sync_threads(m: Machine) -> Iterator[Any]:
    yield from m.sync_threads(0, None)


def _named_sync(m: Machine, barrier: Array, threads: Array) -> Iterator[Any]:
    yield from m.sync_threads(barrier, threads)


def _named_arrive(m: Machine, barrier: Array, threads: Array) -> None:
    m.arrive_threads(barrier, threads)


def _add_expected(m: Machine, bar: Any, num_bytes: Array) -> None:
    m.mbarrier_expect(bar, num_bytes)


def _arrive_after_copies(m: Machine, bar: Any) -> None:
    m.cp_async_arrive(bar)


def _init(m: Machine, bar: Any, count: Array) -> None:
    m.mbarrier_init(bar, count)


def _expect(m: Machine, bar: Any, num_bytes: Array) -> None:
    m.mbarrier_arrive(bar, num_bytes)


def _arrive(m: Machine, bar: Any) -> None:
    m.mbarrier_arrive(bar, 0)


def _wait(m: Machine, bar: Any, parity: Array) -> Iterator[Any]:
    yield from m.mbarrier_wait(bar, parity)


def _init_fence(m: Machine) -> None:
    m.fence("mbarrier_init")


def _proxy_fence(m: Machine) -> None:
    m.fence("proxy_async")


SYNCTHREADS = Intrinsic(
    "syncthreads", (), "__syncthreads()", "", _sync_threads,
    group="block", cost="sync", waits=True, source="PTX ISA, bar, barrier",
)  # fmt: skip
"""All threads of the block wait for each other."""


_NAMED_BARRIER_SYNC_TEXT = f"""
{INLINE} void named_barrier_sync(int id, int threads) {{
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}}"""
NAMED_BARRIER_SYNC = Intrinsic(
    "named_barrier_sync", (Param("id", "value"), Param("threads", "value")),
    "tl::named_barrier_sync({id}, {threads})", _NAMED_BARRIER_SYNC_TEXT, _named_sync,
    group="warp", cost="sync", waits=True, source="PTX ISA, bar, barrier",
)  # fmt: skip
"""`threads` threads (whole warps) wait for each other at one of the 16 named barriers."""


_NAMED_BARRIER_ARRIVE_TEXT = f"""
{INLINE} void named_barrier_arrive(int id, int threads) {{
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}}"""
NAMED_BARRIER_ARRIVE = Intrinsic(
    "named_barrier_arrive", (Param("id", "value"), Param("threads", "value")),
    "tl::named_barrier_arrive({id}, {threads})", _NAMED_BARRIER_ARRIVE_TEXT, _named_arrive,
    group="warp", cost="sync", source="PTX ISA, bar, barrier",
)  # fmt: skip
"""Count in at a named barrier that `threads` threads use, without waiting."""


def _between_kernels(m: Machine) -> None:
    """Kernels run one after another: nothing to wait for or to let go."""


def _grid_control(name: str, instruction: str) -> Intrinsic:
    """griddepcontrol, and nothing at all where the chip has none."""
    text = f"""
{INLINE} void {name}() {{
  asm volatile("griddepcontrol.{instruction};" ::: "memory");
}}"""
    plain = Intrinsic(
        f"{name}_nothing", (), f"tl::{name}()", f"{INLINE} void {name}() {{}}", _between_kernels,
        cost="free", source="PTX ISA, griddepcontrol",
    )  # fmt: skip
    return Intrinsic(
        name, (), f"tl::{name}()", text, _between_kernels, cost="sync",
        needs=Feature.GRID_CONTROL, source="PTX ISA, griddepcontrol", otherwise=plain,
    )  # fmt: skip


GRID_WAIT = _grid_control("grid_wait", "wait")
"""Wait for the grids that this one depends on and their writes."""
GRID_LAUNCH_DEPENDENTS = _grid_control("grid_launch_dependents", "launch_dependents")
"""Let grids that depend on this one begin."""


def _mbarrier(
    name: str,
    extra: str,
    asm: str,
    meaning: Meaning,
    source: str,
    *,
    cost: Cost = "sync",
    needs: Feature = Feature.MBARRIER,
    waits: bool = False,
    otherwise: Intrinsic | None = None,
) -> Intrinsic:
    """A record of an instruction on one mbarrier with at most one more operand."""
    operands = (_BAR, Param(extra, "value")) if extra else (_BAR,)
    parameter = f", u32 {extra}" if extra else ""
    inputs = f', "r"({extra})' if extra else ""
    text = f"""
{INLINE} void mbarrier_{name}(u64& bar{parameter}) {{
  asm volatile("{asm}" ::"r"(smem_addr(&bar)){inputs}
               : "memory");
}}"""
    shown = ", {" + extra + "}" if extra else ""
    return Intrinsic(
        f"mbarrier_{name}", operands, f"tl::mbarrier_{name}({{bar}}{shown})", text, meaning,
        cost=cost, needs=needs, waits=waits, source=source, requires=(SMEM_ADDR,),
        otherwise=otherwise,
    )  # fmt: skip


MBARRIER_INIT = _mbarrier(
    "init", "count", "mbarrier.init.shared.b64 [%0], %1;", _init,
    "PTX ISA, mbarrier.init",
)  # fmt: skip
"""Make a place in shared memory an mbarrier that expects `count` arrivals per phase."""


_MBARRIER_INIT_FENCE_TEXT = f"""
{INLINE} void mbarrier_init_fence() {{
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}}"""
MBARRIER_INIT_FENCE = Intrinsic(
    "mbarrier_init_fence", (), "tl::mbarrier_init_fence()", _MBARRIER_INIT_FENCE_TEXT, _init_fence,
    cost="sync", needs=Feature.TMA, source="PTX ISA, membar, fence",
)  # fmt: skip
"""Make initialised mbarriers visible to the asynchronous proxy."""


MBARRIER_EXPECT_TX = _mbarrier(
    "expect_tx", "bytes", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;", _expect,
    "PTX ISA, mbarrier.arrive (.expect_tx)", needs=Feature.TMA,
)  # fmt: skip
"""Arrive, and make the phase wait for `bytes` more bytes of asynchronous copies."""


MBARRIER_ADD_EXPECTED = _mbarrier(
    "add_expected", "bytes", "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;",
    _add_expected, "PTX ISA, mbarrier.expect_tx", needs=Feature.TMA,
)  # fmt: skip
"""Make the phase wait for `bytes` more bytes of asynchronous copies, without arriving."""


CP_ASYNC_ARRIVE = _mbarrier(
    "arrive_after_copies", "", "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];",
    _arrive_after_copies, "PTX ISA, cp.async.mbarrier.arrive", cost="async",
)  # fmt: skip
"""One arrival of the calling thread once all its earlier cp.async have come."""


_MBARRIER_ARRIVE_TEXT = f"""
{INLINE} void mbarrier_arrive(u64& bar) {{
  u64 state;
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(smem_addr(&bar))
               : "memory");
}}"""
MBARRIER_ARRIVE = Intrinsic(
    "mbarrier_arrive", (_BAR,), "tl::mbarrier_arrive({bar})", _MBARRIER_ARRIVE_TEXT, _arrive,
    cost="sync", needs=Feature.MBARRIER, source="PTX ISA, mbarrier.arrive",
    requires=(SMEM_ADDR,),
)  # fmt: skip
"""One arrival of the calling thread."""


_WAIT_LOOP = (
    "{\\n.reg .pred done;\\nAGAIN:\\n"
    '"\n               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\\n'
    '"\n               "@!done bra AGAIN;\\n}\\n'
)
MBARRIER_TEST_WAIT = _mbarrier(
    "test_wait", "parity", _WAIT_LOOP.replace("try_wait", "test_wait"), _wait,
    "PTX ISA, mbarrier.test_wait, try_wait", cost="wait", waits=True,
)  # fmt: skip
"""As MBARRIER_WAIT, asking again and again: for chips whose threads cannot sleep at a barrier."""

MBARRIER_WAIT = _mbarrier(
    "wait", "parity", _WAIT_LOOP, _wait, "PTX ISA, mbarrier.test_wait, try_wait",
    cost="wait", needs=Feature.TMA, waits=True, otherwise=MBARRIER_TEST_WAIT,
)  # fmt: skip
"""Wait until the phase of the given parity has completed (a fresh barrier passes parity 1)."""


_FENCE_PROXY_ASYNC_TEXT = f"""
{INLINE} void fence_proxy_async() {{
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}}"""
FENCE_PROXY_ASYNC = Intrinsic(
    "fence_proxy_async", (), "tl::fence_proxy_async()", _FENCE_PROXY_ASYNC_TEXT, _proxy_fence,
    cost="sync", needs=Feature.TMA, source="PTX ISA, membar, fence",
)  # fmt: skip
"""Order earlier ordinary accesses to shared memory before later asynchronous ones."""


_FENCE_PROXY_ASYNC_ALL_TEXT = f"""
{INLINE} void fence_proxy_async_all() {{
  asm volatile("fence.proxy.async;" ::: "memory");
}}"""
FENCE_PROXY_ASYNC_ALL = Intrinsic(
    "fence_proxy_async_all", (), "tl::fence_proxy_async_all()", _FENCE_PROXY_ASYNC_ALL_TEXT,
    _proxy_fence, cost="sync", needs=Feature.TMA, source="PTX ISA, membar, fence",
)  # fmt: skip
"""The same for shared and global memory."""
