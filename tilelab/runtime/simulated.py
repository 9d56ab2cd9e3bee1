"""Run a checked call on the simulator: CPU tensors become arrays over the same memory.

Hides which variant a call's tensors allow, how several schedules are tried, and how findings
become an error.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tilelab.errors import TileRuntimeError, warn
from tilelab.ir import TensorParam
from tilelab.runtime import reports
from tilelab.runtime.arguments import Binding, Signature, misaligned
from tilelab.runtime.builds import Builds
from tilelab.runtime.tensors import allocator, facts_of, numpy_view
from tilelab.sim import SimReport, simulate
from tilelab.thread.nodes import Program

_MOST_SHOWN = 20


@dataclass(frozen=True)
class Policy:
    """How calls are simulated that do not say it themselves. checks: as `sim.simulate` takes
    them; schedules: how many are tried; raises: whether a call's findings are an error."""

    checks: bool | tuple[str, ...] = True
    schedules: int = 1
    raises: bool = True


_policy = Policy()


@contextmanager
def simulating(policy: Policy) -> Generator[None]:
    """Inside, calls are simulated as `policy` says."""
    global _policy
    before, _policy = _policy, policy
    try:
        yield
    finally:
        _policy = before


def run_simulated(
    signature: Signature, builds: Builds, binding: Binding, options: Mapping[str, Any]
) -> tuple[list[Any], SimReport]:
    """The outputs of a call and the simulator's report."""
    numbers = signature.numbers(binding)
    values = list(binding.values)
    tensors = [v for v, fact in zip(values, binding.facts, strict=True) if fact is not None]
    allocate = allocator(tensors[0] if tensors else None, "cpu")
    arrays: dict[str, Any] = {}
    unset: list[str] = []
    for i, param in enumerate(signature.params):
        if isinstance(param, TensorParam):
            if values[i] is None:
                unset.append(param.name)
                values[i] = allocate(signature.shape_of(i, numbers), param.buffer)
            arrays[param.name] = numpy_view(values[i], param.buffer.dtype)
    scalars = {v.name: n for v, n in zip(signature.variables, numbers, strict=True)}
    program = _program_for(signature, builds, values)
    options = {"checks": _policy.checks, "unset": unset, **options}
    others: list[SimReport] = []
    for seed in range(1, _policy.schedules):  # before the call's own run changes anything
        copies = {name: array.copy() for name, array in arrays.items()}
        again: dict[str, Any] = {**options, "schedule": "random", "seed": seed}
        others.append(simulate(program, copies, scalars, to_tables=False, **again))
    report = simulate(program, arrays, scalars, registers=builds.registers(program), **options)
    for other in others:
        report = _with_findings(report, other)
    sys.stdout.writelines(f"{line}\n" for line in report.printed)
    reports.announce(report)
    return [values[i] for i in signature.outputs], report


def _with_findings(report: SimReport, other: SimReport) -> SimReport:
    """A report with what another schedule found too, once."""
    known = {(f.code, f.loc, f.buffer) for f in report.findings}
    more = [f for f in other.findings if (f.code, f.loc, f.buffer) not in known]
    return replace(report, findings=(*report.findings, *more))


def _program_for(signature: Signature, builds: Builds, values: Sequence[Any]) -> Program:
    """The variant whose assumption on rows the tensors keep, as on the GPU. Addresses are left
    out: where a CPU tensor starts says nothing about its copy on a GPU."""
    program = builds.build(aligned=True).lowered.program
    pairs = zip(signature.params, values, strict=True)
    rows = {p.name: replace(facts_of(v), pointer=0) for p, v in pairs if isinstance(p, TensorParam)}
    if misaligned(program.aligned, rows) is None:
        return program
    return builds.build(aligned=False).lowered.program


def tell(name: str, report: SimReport) -> None:
    """What a call says of its report: TileRuntimeError (TL1641) that lists the findings, or a
    TileWarning with the notes, if there are any."""
    if not _policy.raises:
        return
    if report.ok:
        if report.notes:
            text = "\n".join(map(str, report.notes[:_MOST_SHOWN]))
            warn(f"{name} ran, and perhaps not as meant:\n{text}")
        return
    count = len(report.findings)
    raise TileRuntimeError(
        f"the simulator found {'an error' if count == 1 else f'{count} errors'} in {name}",
        code="TL1641", loc=report.findings[0].loc,
        notes=[str(f) for f in report.findings[:_MOST_SHOWN]],
        hint="kernel.simulate(...) returns the report with every finding",
    )  # fmt: skip
