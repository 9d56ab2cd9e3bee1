"""wgmma: asynchronous matrix products of a warpgroup, operands in shared memory or registers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from tilelab.target import Feature
from tilelab.thread.intrinsic import Array, Intrinsic, Machine, Param
from tilelab.thread.intrinsics.helpers import INLINE, helper
from tilelab.thread.intrinsics.mma import CUDA_HEADERS, CUDA_TYPES

_SOURCE = "PTX ISA, wgmma.mma_async"
_K = 16  # 16-bit operands: 32 bytes of k per instruction


# The start address is in units of 16 bytes: `advance` bytes are added to it as advance >> 4.
WGMMA_DESCRIPTOR = helper(
    "wgmma_descriptor",
    f"""
template <int SWIZZLE> {INLINE} u64 wgmma_descriptor(const void* p, u32 leading, u32 stride) {{
  u64 mode = SWIZZLE == 128 ? 1 : SWIZZLE == 64 ? 2 : SWIZZLE == 32 ? 3 : 0;
  return (u64)((smem_addr(p) & 0x3FFFF) >> 4) | ((u64)(leading >> 4) << 16) |
         ((u64)(stride >> 4) << 32) | (mode << 62);
}}
""",
    ("smem_addr",),
)
"""Name of the helper that `descriptor_text` calls (PTX ISA, "Matrix-descriptor format")."""
DESCRIPTOR_HELPERS = (WGMMA_DESCRIPTOR,)


def descriptor_text(
    pointer: str, leading: int, stride: int, swizzle: int, advance: str = ""
) -> str:
    """CUDA text of a SharedDescriptor; `advance` is the text of (advance bytes >> 4), or ""."""
    text = f"tl::wgmma_descriptor<{swizzle}>({pointer}, {leading}, {stride})"
    return f"{text} + ({advance})" if advance and advance != "0" else text


def _fence(m: Machine) -> None:
    m.fence("wgmma")


_ARRIVE = f"""
{INLINE} void warpgroup_arrive() {{ asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }}"""
WARPGROUP_ARRIVE = Intrinsic(
    "warpgroup_arrive", (), "tl::warpgroup_arrive()", _ARRIVE, _fence, group="warpgroup",
    cost="sync", needs=Feature.WGMMA, source="PTX ISA, wgmma.fence",
)  # fmt: skip
"""Order earlier register and shared-memory accesses before the wgmmas that follow."""


def _commit(m: Machine) -> None:
    m.wgmma_commit()


_COMMIT = f"""
{INLINE} void warpgroup_commit() {{
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}}"""
WARPGROUP_COMMIT = Intrinsic(
    "warpgroup_commit", (), "tl::warpgroup_commit()", _COMMIT, _commit, group="warpgroup",
    cost="async", needs=Feature.WGMMA, is_async=True,
    source="PTX ISA, wgmma.commit_group",
)  # fmt: skip
"""Close the group of wgmmas issued since the last commit."""


@cache
def warpgroup_wait(n: int) -> Intrinsic:
    """Wait until at most the `n` newest wgmma groups are still under way."""
    text = f"""
template <int N> {INLINE} void warpgroup_wait() {{
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}}"""

    def meaning(m: Machine) -> Iterator[Any]:
        yield from m.wgmma_wait(n)

    return Intrinsic(
        f"warpgroup_wait_{n}", (), f"tl::warpgroup_wait<{n}>()", text, meaning,
        group="warpgroup", cost="wait", needs=Feature.WGMMA, waits=True,
        source="PTX ISA, wgmma.wait_group",
    )  # fmt: skip


def _wrap(items: Sequence[str], indent: str, width: int = 96) -> str:
    """Comma-separated items in lines of at most `width` characters."""
    lines: list[str] = []
    line = indent
    for i, item in enumerate(items):
        piece = item + ("," if i < len(items) - 1 else "")
        if len(line) + len(piece) > width and line.strip():
            lines.append(line.rstrip())
            line = indent
        line += piece + " "
    return "\n".join([*lines, line.rstrip()])


def _quoted(items: Sequence[str], indent: str) -> str:
    """The same as adjacent string literals, one a line."""
    return "\n".join(f'{indent}"{line} "' for line in _wrap(items, "", 84).split("\n"))


def _instruction(n: int, dtype: str, a: str, tail: str, inputs: str) -> str:
    """The asm statement of one wgmma with n/2 accumulators bound to `d`."""
    count = n // 2
    flag = inputs.count('"(') - 1  # the accumulate flag is the last input
    outs = _wrap([f'"+f"(d[{i}])' for i in range(count)], "      ")
    return f"""  asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{count + flag}, 0;\\n"
      "wgmma.mma_async.sync.aligned.m64n{n}k{_K}.f32.{dtype}.{dtype} {{"
{_quoted([f"%{i}" for i in range(count)], "      ")}
      "}}, {a}, p, 1, 1{tail};\\n}}\\n"
      :
{outs}
      : {inputs});"""


def _check(n: int, dtype: str) -> None:
    assert dtype in CUDA_TYPES, f"wgmma records exist for {sorted(CUDA_TYPES)}, not {dtype!r}"
    assert n % 8 == 0 and 8 <= n <= 256, f"wgmma has no width {n}"


SS_TEMPLATE = helper(
    "wgmma_ss",
    "template <int M, int N, int K, typename T, int TRANS_A, int TRANS_B>\n"
    f"{INLINE} void wgmma_ss(u64 a, u64 b, float* d, int accumulate);",
)
RS_TEMPLATE = helper(
    "wgmma_rs",
    "template <int M, int N, int K, typename T, int TRANS_B>\n"
    f"{INLINE} void wgmma_rs(const T* a, u64 b, float* d, int accumulate);",
)


@cache
def wgmma_ss(n: int, dtype: str, trans_a: bool = False, trans_b: bool = False) -> Intrinsic:
    """D (+)= A * B, 64 x n x 16, both operands in shared memory.

    `trans_a`/`trans_b`: the operand is stored with M or N contiguous instead of K. D holds n/2
    registers, laid out as `layout.atoms.wgmma_accumulator(n)`.
    """
    _check(n, dtype)
    cuda, count, ta, tb = CUDA_TYPES[dtype], n // 2, int(trans_a), int(trans_b)
    arguments = f"64, {n}, {_K}, {cuda}, {ta}, {tb}"
    inputs = '"l"(a), "l"(b), "r"(accumulate)'
    body = _instruction(n, dtype, f"%{count}, %{count + 1}", f", {ta}, {tb}", inputs)
    text = f"""
template <> {INLINE} void wgmma_ss<{arguments}>(u64 a, u64 b, float* d, int accumulate) {{
{body}
}}"""

    def meaning(m: Machine, a: Any, b: Any, d: Any, accumulate: Array) -> None:
        m.whole(128, "wgmma")
        m.wgmma(n, d, a, b, accumulate, (trans_a, trans_b), _K)

    return Intrinsic(
        f"wgmma_ss_n{n}_{dtype}_{ta}{tb}",
        (Param("a", "descriptor"), Param("b", "descriptor"), Param("d", "updates"),
         Param("accumulate", "value")),
        f"tl::wgmma_ss<{arguments}>({{a}}, {{b}}, {{d}}, {{accumulate}})", text, meaning,
        group="warpgroup", cost="wgmma", needs=Feature.WGMMA, is_async=True, source=_SOURCE,
        includes=(CUDA_HEADERS[dtype],), requires=(SS_TEMPLATE, *DESCRIPTOR_HELPERS),
    )  # fmt: skip


@cache
def wgmma_rs(n: int, dtype: str, trans_b: bool = False) -> Intrinsic:
    """D (+)= A * B with A in registers: 8 elements a thread, as `atoms.wgmma_a_registers()`."""
    _check(n, dtype)
    cuda, count, tb = CUDA_TYPES[dtype], n // 2, int(trans_b)
    arguments = f"64, {n}, {_K}, {cuda}, {tb}"
    regs = ", ".join(f"%{count + i}" for i in range(4))
    inputs = ", ".join(f'"r"(x[{i}])' for i in range(4)) + ', "l"(b), "r"(accumulate)'
    body = _instruction(n, dtype, f"{{{regs}}}, %{count + 4}", f", {tb}", inputs)
    text = f"""
template <> {INLINE} void wgmma_rs<{arguments}>(const {cuda}* a, u64 b, float* d,
                                                int accumulate) {{
  const u32* x = (const u32*)a;
{body}
}}"""

    def meaning(m: Machine, a: Any, b: Any, d: Any, accumulate: Array) -> None:
        m.whole(128, "wgmma")
        m.wgmma(n, d, a, b, accumulate, (False, trans_b), _K)

    return Intrinsic(
        f"wgmma_rs_n{n}_{dtype}_{tb}",
        (Param("a", "reads"), Param("b", "descriptor"), Param("d", "updates"),
         Param("accumulate", "value")),
        f"tl::wgmma_rs<{arguments}>({{a}}, {{b}}, {{d}}, {{accumulate}})", text, meaning,
        group="warpgroup", cost="wgmma", needs=Feature.WGMMA, is_async=True, source=_SOURCE,
        includes=(CUDA_HEADERS[dtype],), requires=(RS_TEMPLATE, *DESCRIPTOR_HELPERS),
    )  # fmt: skip


def _keep(m: Machine, d: Any) -> None:
    """Binds the compiler, not the machine."""


@cache
def fence_registers(n: int) -> Intrinsic:
    """Keep uses of `n` accumulators behind this point in the compiled program."""
    text = f"""
template <int N> {INLINE} void fence_registers(float* d) {{
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(d[i])::"memory");
}}"""
    return Intrinsic(
        f"fence_registers_{n}", (Param("d", "updates"),), f"tl::fence_registers<{n}>({{d}})",
        text, _keep, cost="free", source="PTX ISA, wgmma.fence (register accesses)",
    )  # fmt: skip
