"""What a kernel exercise declares: tensors, cases, reference, structure, speed.

Read by the runner (which computes) and by the grader (which counts points). Hides nothing of
either: plain declarations, and the rules of structure that exercises choose from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

Sizes = dict[str, int]
Part = Literal["", "compile", "correctness", "edges", "structure", "performance"]
POINTS: dict[Part, int] = {
    "compile": 5, "correctness": 45, "edges": 20, "structure": 15, "performance": 15,
}  # fmt: skip
"""How 100 points are spread. "" is the part of public cases, which carry none."""


STEPS, STEPS_PER_TERM = 10_000, 8
"""Simulator steps of a call: for everything, and for each term of a sum that one thread may add
alone. Good kernels take hundreds; a loop without an end costs a second or two of one case."""


@dataclass(frozen=True)
class Tensor:
    """A parameter of the kernel, in order: its extents name sizes or are numbers. Contiguous."""

    name: str
    shape: tuple[str | int, ...]
    dtype: str
    output: bool = False

    def extents(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape for these sizes."""
        return tuple(sizes[s] if isinstance(s, str) else s for s in self.shape)


@dataclass(frozen=True)
class KernelCase:
    """One call. `id` is the same in every run; `scale` is the standard deviation of the inputs,
    `shift` their mean."""

    id: str
    category: str
    part: Part
    sizes: Sizes
    hidden: bool
    scale: float = 1.0
    shift: float = 0.0


@dataclass(frozen=True)
class Evidence:
    """What a rule of structure may look at, of one simulated call with `sizes`.

    counters: the simulator's totals; costs: cost classes of the instructions in the thread IR
    ("wgmma", "mma", "async", ..); opcodes: SASS opcodes with their counts, None where there is no
    NVRTC or disassembler; shared_bytes: of a block; ideal_bytes: all tensors read or written once;
    blocks: how many wrote to the output, and how many were launched; places: the
    line with the most "bytes", "sectors" or "banks" too many, and that of the "launch".
    """

    sizes: Sizes
    counters: Mapping[str, float]
    costs: frozenset[str]
    opcodes: Mapping[str, int] | None
    shared_bytes: int
    ideal_bytes: int
    bank_conflict_degree: float
    sector_ratio: float
    blocks: tuple[int, int]
    places: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Rule:
    """One demand on structure: `problem` gives what is wrong, "" when it is kept, None when it
    cannot be assessed here. From IR, counters and SASS, never from the student's text. `place` is
    the key of the line to look at in `Evidence.places`."""

    id: str
    category: str
    problem: Callable[[Evidence], str | None]
    hint: str
    place: str = ""


@dataclass(frozen=True)
class Performance:
    """Time against torch in the same run: points rise linearly from `floor` to `target` (ratios
    torch time / kernel time). Faster than `bytes` and `flops` allow on the chip is no result."""

    sizes: Sizes
    floor: float
    target: float
    baseline: Callable[..., Any]
    bytes: Callable[[Sizes], int]
    flops: Callable[[Sizes], int]
    rounds: int = 96


@dataclass(frozen=True)
class KernelTask:
    """An exercise answered with a kernel: the student writes `entry(**sizes)`.

    reference: torch tensors (float64, inputs in order) -> the output. magnitude: the same of the
    absolute inputs by default: the sum of the absolute terms of each element, to which rounding
    errors are proportional. reduction: how many terms are added for one element; terms: these, in
    order, from the element's index and the inputs, by which the report tells which are missing.
    """

    entry: str
    tensors: tuple[Tensor, ...]
    public: tuple[KernelCase, ...]
    draw: Callable[[Random], Sequence[KernelCase]]
    reference: Callable[..., Any]
    reduction: Callable[[Sizes], int]
    structure: tuple[Rule, ...]
    structure_sizes: Sizes
    performance: Performance
    starter_code: str
    hints: tuple[str, ...] = ()
    magnitude: Callable[..., Any] | None = None
    terms: Callable[..., Any] | None = None

    def max_steps(self, sizes: Sizes) -> int:
        """How many simulator steps a call may take: unlike seconds, the same on every machine."""
        return STEPS + STEPS_PER_TERM * self.reduction(sizes)

    @property
    def output(self) -> Tensor:
        """The one output."""
        return next(t for t in self.tensors if t.output)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The inputs, in order."""
        return tuple(t for t in self.tensors if not t.output)


def spread(points: int, count: int) -> list[int]:
    """`points` as `count` whole numbers that differ by at most one."""
    return [points // count + (i < points % count) for i in range(count)]


# -- rules of structure ---------------------------------------------------------------------------


def coalesced(most: float = 1.1) -> Rule:
    """Global accesses move at most `most` times the sectors that they need."""

    def problem(e: Evidence) -> str:
        found = e.sector_ratio
        return "" if found <= most else f"{found:.2f} sectors moved for each one needed"

    return Rule("structure.coalesced", "coalesced access", problem,
                "let neighbouring threads touch neighbouring elements", "sectors")  # fmt: skip


def traffic(most: float = 1.1) -> Rule:
    """Bytes to and from global memory against reading and writing every tensor once."""

    def problem(e: Evidence) -> str:
        moved = sum(v for k, v in e.counters.items() if k.startswith("global_bytes"))
        ratio = moved / e.ideal_bytes
        return "" if ratio <= most else f"{ratio:.2f} times the bytes that are needed"

    return Rule("structure.traffic", "bytes moved", problem,
                "read every element once; what stands outside of T.Parallel and tile operations is "
                "done by every thread", "bytes")  # fmt: skip


def tensor_cores() -> Rule:
    """A tensor-core instruction is in the program, and in the machine code."""

    def problem(e: Evidence) -> str:
        in_ir = bool(e.costs & {"mma", "wgmma"})
        in_sass = e.opcodes is None or bool({"HGMMA", "HMMA"} & set(e.opcodes))
        return "" if in_ir and in_sass else "no tensor-core instruction was generated"

    return Rule("structure.tensor_cores", "tensor cores", problem,
                "multiply tiles with T.gemm: both in shared memory and of one 16-bit type, extents "
                "multiples of 16, threads a multiple of 128")  # fmt: skip


def shared_at_most(limit: int) -> Rule:
    """Shared memory of a block."""

    def problem(e: Evidence) -> str:
        return "" if e.shared_bytes <= limit else f"{e.shared_bytes} bytes of shared memory"

    return Rule("structure.shared", "shared memory", problem,
                f"a block may use {limit} bytes: smaller tiles or fewer stages")  # fmt: skip


def conflict_free(most: float = 1.0) -> Rule:
    """Shared memory is accessed without bank conflicts."""

    def problem(e: Evidence) -> str:
        found = e.bank_conflict_degree
        return "" if found <= most else f"accesses take {found:.2f} times their wavefronts"

    return Rule("structure.banks", "bank conflicts", problem,
                "let tilelab choose the layout, or annotate a swizzle", "banks")  # fmt: skip


def busy_blocks(least: float = 0.9) -> Rule:
    """At least this share of the blocks writes to the output; the others were launched in vain."""

    def problem(e: Evidence) -> str:
        writing, launched = e.blocks
        if writing >= least * launched:
            return ""
        return f"{launched} blocks are launched, and {writing} of them write to the output"

    return Rule("structure.blocks", "the grid", problem,
                "launch one block for each tile: T.ceildiv(extent, tile)", "launch")  # fmt: skip
