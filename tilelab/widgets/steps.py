"""The structure of a kernel switched on step by step: the same program, compiled several times.

Hides which switches change a kernel (`tile.structure`), and how a benchmark's ladder is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilelab.errors import TileValueError
from tilelab.kernel import JITKernel
from tilelab.sim import SimReport
from tilelab.tile.structure import PLAIN, SWITCHES
from tilelab.views import LadderStep, LadderView, ScheduleView, schedule_views

TEXTBOOK = "as in a textbook"
MODEL = (
    "modelled: one block alone on a multiprocessor. What a step gains by sharing L2 or by blocks "
    "that stay resident is not in the model; `tilelab bench ladder` measures it."
)


@dataclass(frozen=True)
class Variant:
    """A kernel with the switches up to one step."""

    name: str
    switch: str
    kernel: JITKernel


def variants(kernel: JITKernel) -> list[Variant]:
    """From the textbook's structure to the kernel's own: a variant for each switch whose value by
    default changes the generated code. What the program sets itself holds in all of them."""
    base = {k: v for k, v in kernel.pass_configs.items() if k != PLAIN}
    on: dict[str, Any] = {**base, PLAIN: True}
    found = [Variant(TEXTBOOK, "", _with(kernel, on))]
    for switch in SWITCHES:
        if switch.key in base:
            continue
        on = {**on, switch.key: switch.default}
        made = _with(kernel, on)
        if made.get_kernel_source() != found[-1].kernel.get_kernel_source():
            found.append(Variant(switch.what or switch.key, switch.key, made))
    return found


def _with(kernel: JITKernel, configs: Mapping[str, Any]) -> JITKernel:
    outputs = () if kernel.prim_func.outputs else kernel.out_idx
    return JITKernel(
        kernel.prim_func, out_idx=outputs or None, target=kernel.trace.target, pass_configs=configs
    )


def modelled(found: Sequence[Variant], inputs: Sequence[Any]) -> LadderView:
    """The steps on the simulator: the cycles of the longer of the first and the last block."""
    steps = [LadderStep(v.name, v.switch, _cycles(v.kernel, inputs), facts(v.kernel))
             for v in found]  # fmt: skip
    name = found[0].kernel.name
    return LadderView(f"Steps of {name}", name, "cycles", "modelled", MODEL, tuple(steps))


def _cycles(kernel: JITKernel, inputs: Sequence[Any]) -> float:
    """One block's; two are asked where blocks have unequal work."""
    report = kernel.simulate(*inputs, checks=False)
    found = [max((e.end for e in report.events), default=0.0)]
    if any(p.trip_count is None for p in kernel.trace.pipelines) and report.blocks > 1:
        last = kernel.simulate(*inputs, checks=False, timeline_block=report.blocks - 1)
        found.append(max((e.end for e in last.events), default=0.0))
    return max(found)


def measured(rows: Sequence[Mapping[str, Any]], name: str) -> LadderView:
    """The steps of a measured ladder: rows of `tilelab bench ladder --json FILE` whose names begin
    with `name`. TileValueError (TL1716) for none, or for rows of several kernels."""
    found = [r for r in rows if str(r["name"]).startswith(name) and "to step before" in r["values"]]
    kernels = list(dict.fromkeys(str(r["name"]).split(": ")[0] for r in found))
    if len(kernels) != 1:
        have = dict.fromkeys(
            str(r["name"]).split(": ")[0] for r in rows if "to step before" in r["values"]
        )
        raise TileValueError(
            f"row={name!r} names {'several ladders' if kernels else 'no ladder'} of the file",
            code="TL1716",
            hint="one of: " + "; ".join(have)
            if have
            else "make one with: tilelab bench ladder --json FILE",
        )
    steps = [
        LadderStep(str(r["name"]).split(": ", 1)[1], "", 1e3 / r["values"]["to textbook"],
                   f"{r['values']['tilelab']:.0f} {r['unit']}")
        for r in found
    ]  # fmt: skip
    remark = f"measured on {found[0]['machine']}, {found[0]['date']}"
    return LadderView(f"Steps of {kernels[0]}", kernels[0], "thousandths of the first",
                      "measured", remark, tuple(steps))  # fmt: skip


def schedules(kernel: JITKernel, report: SimReport) -> list[ScheduleView]:
    """The times of a run's slots."""
    return schedule_views(kernel.trace.pipelines, report.events, source="modelled",
                          block=report.block, clock_hz=report.clock_hz)  # fmt: skip


def facts(kernel: JITKernel) -> str:
    """Threads, roles and shared memory of a kernel's parts, in a few words."""
    parts: list[str] = []
    for part in kernel.program.kernels:
        size = part.dynamic_bytes + part.static_bytes
        parts.append(f"{part.num_threads} threads, {size:,} B of shared memory")
    return "; ".join(parts)
