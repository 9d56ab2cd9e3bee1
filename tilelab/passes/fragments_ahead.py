"""A cp.async loop over a gemm by mma.sync, whose fragments come one step of K before their use.

    before:  wait for tile 0; barrier; fetch step 0
    loop k:  for each step: fetch the next one; multiply this one
             behind the first fetch: start the copies of a later iteration
             before the last fetch:  wait for tile k+1; barrier; it fetches that tile's step 0

So neither the barrier nor the first ldmatrix of a tile leaves the tensor cores idle (measured on an
H200 with 128x128x64 tiles: 374 to 407 TFLOP/s). A slot has been read before the barrier of its
iteration's last step. Hides which loops allow it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilelab.ir import Buffer, Expr, For, If, Stmt, as_expr, binary, call, const_int
from tilelab.passes.versions import in_slot, sequence
from tilelab.tile.context import LowerContext
from tilelab.tile.ops.gemm import Gemm
from tilelab.tile.ops.gemm_steps import Steps, steps_of


@dataclass(frozen=True)
class Ahead:
    """The loop's only work, a gemm, in the slots of a ring of `stages`; how it is taken apart."""

    loop: For
    gemm: Gemm
    slots: dict[int, Buffer]
    stages: int
    steps: Steps

    def _in_slot(self, trip: Expr) -> Gemm:
        moved = in_slot((self.gemm,), self.slots, trip % self.stages)[0]
        assert isinstance(moved, Gemm)
        return moved

    def before(self, arrival: Sequence[Stmt]) -> list[Stmt]:
        """What precedes the loop: `arrival` waits for a tile and joins the threads."""
        first = (*arrival, self.steps.fetch(self._in_slot(as_expr(0)), 0))
        some = binary(">", self.loop.extent, 0)
        known = const_int(some)
        if known is not None:
            return list(first) if known else []
        return [If(some, sequence(first, self.loop), loc=self.loop.loc)]

    def body(self, arrival: Sequence[Stmt], issue: Sequence[Stmt]) -> list[Stmt]:
        """An iteration; `issue` starts the copies of a later one."""
        loop, steps = self.loop, self.steps
        trip = (loop.var - loop.start) // loop.step
        now = self._in_slot(trip)
        # The last iteration fetches its own tile once more: a branch would part the instructions.
        following = self._in_slot(call("min", trip + 1, loop.extent - 1))
        out: list[Stmt] = []
        for step in range(steps.count):
            last = step + 1 == steps.count
            out += arrival if last else ()
            out.append(steps.fetch(following, 0) if last else steps.fetch(now, step + 1))
            out += issue if step == 0 else ()
            out.append(steps.multiply(now, step))
        return out


def ahead_of(
    loop: For, work: Sequence[Stmt], slots: dict[int, Buffer], stages: int, lower: LowerContext
) -> Ahead | None:
    """How a loop with this work is taken apart; None for others."""
    gemm = work[0] if len(work) == 1 else None
    if not isinstance(gemm, Gemm) or not gemm.waits:
        return None
    moved = in_slot((gemm,), slots, as_expr(0))[0]
    steps = steps_of(moved, lower) if isinstance(moved, Gemm) else None
    return None if steps is None else Ahead(loop, gemm, slots, stages, steps)


__all__ = ["Ahead", "ahead_of"]
