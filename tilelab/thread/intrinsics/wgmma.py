"""wgmma: asynchronous matrix products of a warpgroup, operands in shared memory or registers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tilelab.target import Feature
from tilelab.thread.intrinsic import Array, Intrinsic, Machine, Param, recorded
from tilelab.thread.intrinsics.helpers import INLINE, helper
from tilelab.thread.intrinsics.tensor_core import ACCUMULATORS, OPERANDS

_SOURCE = "PTX ISA, wgmma.mma_async"
ROWS, MAX_COLS = 64, 256


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
    pointer: str, leading: int, stride: int, swizzle: int, advance: str = "", slot: str = ""
) -> str:
    """CUDA text of a SharedDescriptor; `advance` and `slot` are the texts of (bytes >> 4), or "".
    A slot's distance is no compile-time constant: as an unsigned word it needs no sign extension,
    which costs a shift for each descriptor."""
    text = f"tl::wgmma_descriptor<{swizzle}>({pointer}, {leading}, {stride})"
    text += f" + u64(u32({slot}))" if slot else ""
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


@recorded
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


@dataclass(frozen=True)
class Kind:
    """Which wgmma: PTX types of A and B (`OPERANDS`) and of the accumulators (`ACCUMULATORS`)."""

    n: int
    a: str
    b: str
    acc: str

    def __post_init__(self) -> None:
        assert wgmma_width(self.n, self.acc), f"wgmma has no width {self.n} with {self.acc}"
        assert OPERANDS[self.a].bits == OPERANDS[self.b].bits < 64, f"no wgmma of {self}"

    @property
    def k(self) -> int:
        return OPERANDS[self.a].k

    @property
    def types(self) -> str:
        """The types as a part of names: f16 stands for f16 operands and f32 accumulators."""
        alike = (self.a, self.acc) == (self.b, "f32")
        return self.a if alike else f"{self.a}_{self.b}_{self.acc}"

    @property
    def cuda(self) -> str:
        """The operand types as template arguments."""
        a, b = OPERANDS[self.a].cuda, OPERANDS[self.b].cuda
        return a if a == b else f"{a}, {b}"

    @property
    def sums(self) -> str:
        """The accumulator type in CUDA."""
        return ACCUMULATORS[self.acc].cuda

    @property
    def template(self) -> tuple[str, bool]:
        """Which primary template a helper specialises: by accumulator, and two types or one."""
        return self.sums, self.a != self.b

    @property
    def headers(self) -> tuple[str, ...]:
        found = (OPERANDS[self.a].header, OPERANDS[self.b].header, ACCUMULATORS[self.acc].header)
        return tuple(dict.fromkeys(h for h in found if h))

    def flags(self, *trans: bool) -> str:
        """The immediates after scale-d: integers have no signs, 16-bit types transpose."""
        text = "" if self.acc == "s32" else ", 1, 1"
        return text + "".join(f", {int(t)}" for t in trans if OPERANDS[self.a].transposes)

    def outputs(self) -> list[str]:
        """The asm operands of the n/2 accumulators of a thread."""
        return ACCUMULATORS[self.acc].outputs(self.n // 2)


def wgmma_width(n: int, acc: str) -> bool:
    """Whether wgmma has an instruction of n columns; integers have fewer widths than floats."""
    wide = n % 8 == 0 and 8 <= n <= MAX_COLS
    return wide and (acc != "s32" or n % 16 == 0 or n < 32)


def _instruction(kind: Kind, operands: str, flags: str, inputs: str) -> str:
    """The asm statement of one wgmma with its accumulators bound to `d`."""
    bound = kind.outputs()
    count, flag = len(bound), inputs.count('"(') - 1  # the accumulate flag is the last input
    outs = _wrap(bound, "      ")
    shape, types = f"m64n{kind.n}k{kind.k}", f"{kind.acc}.{kind.a}.{kind.b}"
    packing, place = ACCUMULATORS[kind.acc].packing, count + flag
    return f"""{packing}  asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{place}, 0;\\n"
      "wgmma.mma_async.sync.aligned.{shape}.{types} {{"
{_quoted([f"%{i}" for i in range(count)], "      ")}
      "}}, {operands}, p{flags};\\n}}\\n"
      :
{outs}
      : {inputs});"""


def _templates(name: str, flags: str, a: str) -> dict[tuple[str, bool], str]:
    """The primary templates of wgmma_ss or wgmma_rs, by accumulator type and mixed operands."""
    made: dict[tuple[str, bool], str] = {}
    for acc in ("float", "half", "int"):
        for mixed, types in ((False, "typename T"), (True, "typename A, typename B")):
            first = a.replace("T*", "A*") if mixed else a
            text = (
                f"template <int M, int N, int K, {types}, {flags}>\n"
                f"{INLINE} void {name}({first} a, u64 b, {acc}* d, int accumulate);"
            )
            made[acc, mixed] = helper(f"{name}_{acc}" + ("_mixed" if mixed else ""), text)
    return made


_SS_TEMPLATES = _templates("wgmma_ss", "int TRANS_A, int TRANS_B", "u64")
_RS_TEMPLATES = _templates("wgmma_rs", "int TRANS_B", "const T*")


@recorded
def wgmma_ss(
    n: int, a: str, trans_a: bool = False, trans_b: bool = False, *, b: str = "", acc: str = "f32"
) -> Intrinsic:
    """D (+)= A * B, 64 x n x 32 bytes, both operands in shared memory.

    `a`, `b` (default: as `a`), `acc`: PTX types. `trans_a`/`trans_b`: the operand is stored with
    M or N contiguous instead of K (16-bit types only). D holds n/2 elements a thread, laid out as
    `layout.atoms.wgmma_accumulator(n)`.
    """
    kind = Kind(n, a, b or a, acc)
    assert OPERANDS[a].transposes or not (trans_a or trans_b), f"wgmma does not transpose {a}"
    count, ta, tb = len(kind.outputs()), int(trans_a), int(trans_b)
    arguments = f"64, {n}, {kind.k}, {kind.cuda}, {ta}, {tb}"
    inputs = '"l"(a), "l"(b), "r"(accumulate)'
    flags = kind.flags(trans_a, trans_b)
    text = f"""
template <> {INLINE} void wgmma_ss<{arguments}>(u64 a, u64 b, {kind.sums}* d,
                                                int accumulate) {{
{_instruction(kind, f"%{count}, %{count + 1}", flags, inputs)}
}}"""

    def meaning(m: Machine, x: Any, y: Any, d: Any, accumulate: Array) -> None:
        m.whole(128, "wgmma")
        m.wgmma(n, d, x, y, accumulate, (trans_a, trans_b), kind.k)

    return Intrinsic(
        f"wgmma_ss_n{n}_{kind.types}_{ta}{tb}",
        (Param("a", "descriptor"), Param("b", "descriptor"), Param("d", "updates"),
         Param("accumulate", "value")),
        f"tl::wgmma_ss<{arguments}>({{a}}, {{b}}, {{d}}, {{accumulate}})", text, meaning,
        group="warpgroup", cost="wgmma", flops=2 * 64 * n * kind.k, needs=Feature.WGMMA,
        is_async=True, source=_SOURCE,
        includes=kind.headers, requires=(_SS_TEMPLATES[kind.template], *DESCRIPTOR_HELPERS),
    )  # fmt: skip


@recorded
def wgmma_rs(n: int, a: str, trans_b: bool = False, *, b: str = "", acc: str = "f32") -> Intrinsic:
    """D (+)= A * B with A in registers: 16 bytes a thread, as `atoms.wgmma_a_registers`."""
    kind = Kind(n, a, b or a, acc)
    assert OPERANDS[a].transposes or not trans_b, f"wgmma does not transpose {a}"
    count, tb = len(kind.outputs()), int(trans_b)
    arguments = f"64, {n}, {kind.k}, {kind.cuda}, {tb}"
    regs = ", ".join(f"%{count + i}" for i in range(4))
    inputs = ", ".join(f'"r"(x[{i}])' for i in range(4)) + ', "l"(b), "r"(accumulate)'
    text = f"""
template <> {INLINE} void wgmma_rs<{arguments}>(const {OPERANDS[a].cuda}* a, u64 b,
                                                {kind.sums}* d, int accumulate) {{
  const u32* x = (const u32*)a;
{_instruction(kind, f"{{{regs}}}, %{count + 4}", kind.flags(trans_b), inputs)}
}}"""

    def meaning(m: Machine, x: Any, y: Any, d: Any, accumulate: Array) -> None:
        m.whole(128, "wgmma")
        m.wgmma(n, d, x, y, accumulate, (False, trans_b), kind.k)

    return Intrinsic(
        f"wgmma_rs_n{n}_{kind.types}_{tb}",
        (Param("a", "reads"), Param("b", "descriptor"), Param("d", "updates"),
         Param("accumulate", "value")),
        f"tl::wgmma_rs<{arguments}>({{a}}, {{b}}, {{d}}, {{accumulate}})", text, meaning,
        group="warpgroup", cost="wgmma", flops=2 * 64 * n * kind.k, needs=Feature.WGMMA,
        is_async=True, source=_SOURCE,
        includes=kind.headers, requires=(_RS_TEMPLATES[kind.template], *DESCRIPTOR_HELPERS),
    )  # fmt: skip


def _keep(m: Machine, d: Any) -> None:
    """Binds the compiler, not the machine."""


@recorded
def fence_registers(n: int, acc: str = "f32") -> Intrinsic:
    """Keep uses of `n` accumulators of PTX type `acc` behind this point in the compiled program."""
    sums = ACCUMULATORS[acc]
    place = "d[i]" if sums.per_register == 1 else "packed[i]"
    count = "N" if sums.per_register == 1 else f"N / {sums.per_register}"
    text = f"""
template <int N> {INLINE} void fence_registers({sums.cuda}* d) {{
{sums.packing}#pragma unroll
  for (int i = 0; i < {count}; ++i) asm volatile("" : "+{sums.constraint}"({place})::"memory");
}}"""
    return Intrinsic(
        f"fence_registers_{n}" + ("" if acc == "f32" else f"_{acc}"),
        (Param("d", "updates"),), f"tl::fence_registers<{n}>({{d}})",
        text, _keep, cost="free", source="PTX ISA, wgmma.fence (register accesses)",
        includes=(sums.header,) if sums.header else (),
    )  # fmt: skip
