"""A kernel of the judge's own: when it runs rightly, the runner works.

Runs in the runner, before the first question and after each that ended badly. Hides the kernel:
what a student's kernel goes through (artefact, simulator, GPU, comparison) it goes through too.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import tilelab
from judge.doubled import N, doubled
from judge.failure import JudgeFailed, own
from judge.kernels import KernelCase, KernelTask, Performance, Tensor
from judge.running import load, run_case
from tilelab import artifact

CASE = KernelCase("control", "the judge's own kernel", "", {"N": N}, False)


def _twice(a: Any) -> Any:
    return a + a


def _no_bytes(sizes: dict[str, int]) -> int:
    return 0


TASK = KernelTask(
    entry="doubled",
    tensors=(Tensor("A", ("N",), "float32"), Tensor("B", ("N",), "float32", output=True)),
    public=(CASE,),
    draw=lambda rng: (),
    reference=_twice,
    reduction=lambda sizes: 1,
    structure=(),
    structure_sizes=CASE.sizes,
    performance=Performance(CASE.sizes, 0.0, 1.0, _twice, _no_bytes, _no_bytes),
    starter_code="",
)


@cache
def _artefact(target: str) -> dict[str, Any]:
    return artifact.save(tilelab.compile(doubled, target=target), target)


def check_runner(target: str, gpu: bool) -> None:
    """Run the control kernel. JudgeFailed where it cannot be run or gives a wrong result."""
    where = "on the GPU" if gpu else "in the simulator"
    with own(f"the judge's own control kernel does not run {where}"):
        kernel = load(TASK, _artefact(target), CASE.sizes)
        result = run_case(TASK, kernel, CASE, 1, gpu)
    if result["status"] != "pass":
        raise JudgeFailed(
            f"the judge's own control kernel fails {where}: {result['code']}, {result['message']}"
        )
