"""The structure of a kernel switched on step by step: the same program, compiled several times.

Hides which switches change a kernel (`tile.structure`), and which blocks stand for its time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilelab.sim import SimReport
from tilelab.tile.structure import PLAIN, SWITCHES
from tilelab.views.compiled import Compiled
from tilelab.views.ladder import LadderStep, LadderView

TEXTBOOK = "as in a textbook"
MODEL = (
    "modelled: one block alone on a multiprocessor. What a step gains because a second block has "
    "room there, because neighbours share L2, or because blocks stay is not in the model; "
    "`tilelab bench ladder --json FILE` measures it on a GPU, and bench=FILE puts it here."
)


@dataclass(frozen=True)
class Variant:
    """A kernel with the switches up to one step."""

    name: str
    switch: str
    kernel: Compiled


def variants(kernel: Compiled) -> list[Variant]:
    """From the textbook's structure to the kernel's own: a variant for each switch whose value by
    default changes the generated code. What the program sets itself holds in all of them."""
    base = {k: v for k, v in kernel.pass_configs.items() if k != PLAIN}
    on: dict[str, Any] = {**base, PLAIN: True}
    found = [Variant(TEXTBOOK, "", kernel.remade(pass_configs=on))]
    for switch in SWITCHES:
        if switch.key in base:
            continue
        on = {**on, switch.key: switch.default}
        made = kernel.remade(pass_configs=on)
        if made.source.text != found[-1].kernel.source.text:
            found.append(Variant(switch.what, switch.key, made))
    return found


def modelled(
    found: Sequence[Variant], runs: Sequence[SimReport],
    measured: Mapping[str, float] | None = None, measurement: str = "",
) -> LadderView:  # fmt: skip
    """The steps with the cycles of their runs, each as `longest_run` gives it, and the measured
    gains over the first step by the names of steps."""
    known = measured or {}
    steps = [LadderStep(v.name, v.switch, run.cycles, facts(v.kernel), known.get(v.name))
             for v, run in zip(found, runs, strict=True)]  # fmt: skip
    name = found[0].kernel.program.name
    return LadderView(f"Steps of {name}", name, "cycles", "modelled", MODEL, tuple(steps),
                      measurement)  # fmt: skip


def longest_run(kernel: Compiled, inputs: Sequence[Any]) -> SimReport:
    """A simulated run with the timeline of the longer of the first and the last block; of the
    first where all blocks have the same work."""
    first = kernel.simulate(*inputs, checks=False)
    if first.blocks < 2 or all(p.trip_count is not None for p in kernel.trace.pipelines):
        return first
    last = kernel.simulate(*inputs, checks=False, timeline_block=first.blocks - 1)
    return max(first, last, key=lambda run: run.cycles)


def facts(kernel: Compiled) -> str:
    """Threads, roles and shared memory of a kernel's parts, in a few words."""
    parts: list[str] = []
    for part in kernel.program.kernels:
        size = part.dynamic_bytes + part.static_bytes
        parts.append(f"{part.num_threads} threads, {size:,} B of shared memory")
    return "; ".join(parts)
