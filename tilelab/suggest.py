"""suggest_config: tile sizes for a matrix product on a chip, each with the reasons for it.

The candidates and the model that ranks them are `carver.template`'s; here they become arguments
of a kernel, with what limits each one in words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilelab.calls import answer_all
from tilelab.carver.arch.cuda import CUDA
from tilelab.carver.roller.hint import Hint
from tilelab.carver.template import MatmulTemplate
from tilelab.dtypes import as_dtype
from tilelab.errors import TileValueError
from tilelab.target import Limits


@dataclass(frozen=True)
class SuggestedConfig:
    """Tile sizes (elements), stages of the loop over K, threads of a block; `modelled_us` is the
    time that ranks it, in microseconds, and no measurement. `why` says what limits it."""

    block_M: int
    block_N: int
    block_K: int
    num_stages: int
    threads: int
    modelled_us: float
    why: tuple[str, ...]

    def __str__(self) -> str:
        head = (
            f"{self.block_M}x{self.block_N}x{self.block_K}, {self.num_stages} stages, "
            f"{self.threads} threads (modelled: {self.modelled_us:.1f} us)"
        )
        return "\n".join([head, *(f"  {reason}" for reason in self.why)])


def suggest_config(
    M: int,
    N: int,
    K: int,
    dtype: Any = "float16",
    target: Any = None,
    *,
    count: int = 3,
    trans_A: bool = False,
    trans_B: bool = False,
) -> list[SuggestedConfig]:
    """The `count` best tile sizes for C (M x N) = A (M x K) @ B (K x N), best first.

    `dtype` is the operands' type (sums are float32), `target` what is compiled for (None: this
    machine's GPU, or the default). `trans_A`, `trans_B`: the operand is stored transposed. One
    suggestion for each tile of C; autotune measures. Raises TileValueError (TL1671) for extents
    that are no positive integers and for operands that no tensor core of the target multiplies.
    """
    for name, value in (("M", M), ("N", N), ("K", K), ("count", count)):
        if not isinstance(value, int) or value < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TileValueError(
                f"suggest_config: {name} is {value!r}", code="TL1671",
                hint="give positive integers: extents of the product, and how many suggestions",
            )  # fmt: skip
    chip = CUDA("cuda" if target is None else target)
    kind = as_dtype(dtype)
    sums = "int32" if kind.is_int else "float64" if kind.bits == 64 else "float32"
    problem = MatmulTemplate(M, N, K, trans_A, trans_B, kind, kind, sums, arch=chip)
    best: dict[tuple[int, int], Hint] = {}
    for hint in sorted(problem.recommend_hints(topk=10_000), key=_rank):
        best.setdefault(hint.block, hint)
    if not best:
        raise TileValueError(
            f"suggest_config: no tile of {kind} fits {M}x{N}x{K} on {chip.target}", code="TL1671",
            hint="use a type that tensor cores multiply, and K of at least 64 bytes",
        )  # fmt: skip
    limits = chip.target.limits
    return [_config(h, problem, limits) for h in list(best.values())[:count]]


def _rank(hint: Hint) -> tuple[float, float]:
    """By modelled time; times that the model cannot tell apart by bytes loaded for each FLOP."""
    rows, cols = hint.block
    return (float(f"{hint.modelled_ms:.2g}"), 1 / rows + 1 / cols)


def _config(hint: Hint, problem: MatmulTemplate, limits: Limits) -> SuggestedConfig:
    (rows, cols), (depth,) = hint.block, hint.rstep
    why = (
        f"registers: {hint.registers} of {limits.registers_per_thread} a thread, "
        f"{rows * cols // hint.threads} of them sums",
        f"shared memory: {hint.shared_bytes} of {limits.shared_per_block} bytes, "
        f"{hint.blocks_per_sm} block(s) on a multiprocessor",
        _waves(hint, problem, limits),
        _loads(hint, problem),
    )
    return SuggestedConfig(
        rows, cols, depth, hint.pipeline_stage, hint.threads, 1e3 * hint.modelled_ms, why
    )


def _waves(hint: Hint, problem: MatmulTemplate, limits: Limits) -> str:
    rows, cols = hint.block
    tiles = -(-problem.M // rows) * -(-problem.N // cols)
    at_once = limits.sms * hint.blocks_per_sm
    waves = -(-tiles // at_once)
    used = problem.M * problem.N / (waves * at_once * rows * cols)
    return f"waves: {tiles} tiles in {waves} of {at_once} blocks, {used:.0%} of it useful work"


def _loads(hint: Hint, problem: MatmulTemplate) -> str:
    rows, cols = hint.block
    element = as_dtype(problem.in_dtype).bytes
    each = (rows + cols) * element / (2 * rows * cols) * 1000
    flying = (hint.pipeline_stage - 1) * (rows + cols) * hint.rstep[0] * element
    return f"loads: {each:.1f} bytes for 1000 FLOP, {flying} bytes of a block under way"


answer_all(globals(), ("suggest_config",), "tilelab")
