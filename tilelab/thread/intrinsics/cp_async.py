"""cp.async: copies from global to shared memory that the copying thread waits for in groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilelab.target import Feature
from tilelab.thread.intrinsic import Array, Intrinsic, Machine, Param, recorded
from tilelab.thread.intrinsics.helpers import INLINE, SMEM_ADDR

_SOURCE = "PTX ISA, cp.async"
_DST, _SRC = Param("dst", "writes"), Param("src", "reads")
PREDICATE = Param("ok", "value")
"""The last operand of copies that write zeros, without reading the source, where it is false."""


@recorded
def cp_async(nbytes: int) -> Intrinsic:
    """Copy 4, 8 or 16 bytes; 16 bytes pass the first-level cache by."""
    text = f"""
template <int N> {INLINE} void cp_async(void* dst, const void* src) {{
  if constexpr (N == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(smem_addr(dst)), "l"(src)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(smem_addr(dst)), "l"(src),
                 "n"(N) : "memory");
}}"""

    def meaning(m: Machine, dst: Any, src: Any) -> None:
        m.cp_async(dst, src, nbytes, None)

    return Intrinsic(
        f"cp_async_{_width(nbytes)}", (_DST, _SRC), f"tl::cp_async<{nbytes}>({{dst}}, {{src}})",
        text, meaning, cost="async", needs=Feature.CP_ASYNC, is_async=True, source=_SOURCE,
        requires=(SMEM_ADDR,),
    )  # fmt: skip


@recorded
def cp_async_zfill(nbytes: int) -> Intrinsic:
    """Copy where `ok`; elsewhere write zeros without reading the source."""
    text = f"""
template <int N> {INLINE} void cp_async_zfill(void* dst, const void* src, bool ok) {{
  u32 size = ok ? N : 0;
  if constexpr (N == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(smem_addr(dst)), "l"(src),
                 "r"(size) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(smem_addr(dst)), "l"(src),
                 "n"(N), "r"(size) : "memory");
}}"""

    def meaning(m: Machine, dst: Any, src: Any, ok: Array) -> None:
        m.cp_async(dst, src, nbytes, ok)

    return Intrinsic(
        f"cp_async_zfill_{_width(nbytes)}", (_DST, _SRC, PREDICATE),
        f"tl::cp_async_zfill<{nbytes}>({{dst}}, {{src}}, {{ok}})", text, meaning,
        cost="async", needs=Feature.CP_ASYNC, is_async=True, source=_SOURCE,
        requires=(SMEM_ADDR,),
    )  # fmt: skip


def _width(nbytes: int) -> int:
    assert nbytes in (4, 8, 16), f"cp.async copies 4, 8 or 16 bytes, not {nbytes}"
    return nbytes


def _commit(m: Machine) -> None:
    m.cp_async_commit()


_CP_ASYNC_COMMIT_TEXT = f"""
{INLINE} void cp_async_commit() {{ asm volatile("cp.async.commit_group;" ::: "memory"); }}"""
CP_ASYNC_COMMIT = Intrinsic(
    "cp_async_commit", (), "tl::cp_async_commit()", _CP_ASYNC_COMMIT_TEXT, _commit, cost="async",
    needs=Feature.CP_ASYNC, is_async=True, source="PTX ISA, cp.async.commit_group",
)  # fmt: skip
"""Close the group of cp.async issued since the last commit."""


@recorded
def cp_async_wait(n: int) -> Intrinsic:
    """Wait until at most the `n` newest groups of this thread are still under way."""
    text = f"""
template <int N> {INLINE} void cp_async_wait() {{
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}}"""

    def meaning(m: Machine) -> Iterator[Any]:
        yield from m.cp_async_wait(n)

    return Intrinsic(
        f"cp_async_wait_{n}", (), f"tl::cp_async_wait<{n}>()", text, meaning, cost="wait",
        needs=Feature.CP_ASYNC, waits=True, source="PTX ISA, cp.async.wait_group",
    )  # fmt: skip
