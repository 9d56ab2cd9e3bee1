"""The demo: compile the GEMM for every target, check it, print a table, write the page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilelab.commands.progress import progress
from tilelab.demo.kernels import gemm
from tilelab.demo.measure import COUNTED, SIZES, Facts, Outcome, check, facts, place
from tilelab.demo.page import Section, page
from tilelab.kernel import JITKernel
from tilelab.target import TARGETS, Target
from tilelab.tile.structure import PLAIN
from tilelab.views import show, source_view
from tilelab.views.table import bytes_text, table

DRAWN = 1024  # size of the kernel that is drawn: the pipeline's whole length fits the page


@dataclass(frozen=True)
class Column:
    """One target's results."""

    target: Target
    facts: Facts
    outcome: Outcome


@dataclass(frozen=True)
class Demo:
    """What the demo found; `right` is False when a result differs from torch's."""

    text: str
    right: bool


_TEXTBOOK = {PLAIN: True}  # the structure that the page explains


def _kernel(size: int, target: Target) -> JITKernel:
    program: Any = gemm(size, size, size)
    return JITKernel(program.function, out_idx=[2], target=target, pass_configs=_TEXTBOOK)


def demo(output: Path, size: int | None = None) -> Demo:
    """Run everything; the page goes to `output`."""
    columns: list[Column] = []
    sections: list[Section] = []
    # The newest target comes first: it is the one the story is about.
    for name, target in sorted(TARGETS.items(), reverse=True):
        with progress(f"compiling the GEMM for {name}"):
            drawn = _kernel(DRAWN, target)
            known = facts(drawn)
        with progress(f"drawing it for {name}"):
            report = show(drawn)
            sections.append(Section(name, report, source_view(drawn.source, drawn.prim_func.loc)))
        on = place(target)
        n = size or SIZES[on]
        with progress(f"running {n} x {n} x {n} for {name}"):
            outcome = check(_kernel(n, target), n, on)
        columns.append(Column(target, known, outcome))
    head, rows = ["", *(c.target.name for c in columns)], _rows(columns)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(page(head, rows, sections), encoding="utf-8")
    right = all(c.outcome.right for c in columns)
    verdict = "every result agrees with torch" if right else "A RESULT DIFFERS FROM TORCH'S"
    text = f"{table(head, rows, indent='')}\n\n{verdict}; pictures and code: {output}"
    return Demo(text, right)


def _rows(columns: list[Column]) -> list[list[str]]:
    def row(name: str, values: list[str]) -> list[str]:
        return [name, *values]

    facts_, outcomes = [c.facts for c in columns], [c.outcome for c in columns]
    rows = [
        row("Python lines", [str(f.python_lines) for f in facts_]),
        row("CUDA lines", [str(f.cuda_lines) for f in facts_]),
    ]
    rows += [row(kind, [str(f.instructions[kind]) for f in facts_]) for kind in COUNTED]
    rows += [
        row("mbarriers", [str(f.mbarriers) for f in facts_]),
        row("threads a block", [str(f.threads) for f in facts_]),
        row("dynamic shared memory", [bytes_text(f.dynamic_bytes) for f in facts_]),
        row("registers a thread", [_known(f.registers) for f in facts_]),
        row("bytes spilled", [_known(f.spill_bytes) for f in facts_]),
        row("checked at size", [str(o.size) for o in outcomes]),
        row("error against torch", [f"{o.error:.1e}" for o in outcomes]),
        row("time", [o.time_text() for o in outcomes]),
        row("ran on", [o.where for o in outcomes]),
    ]
    return rows


def _known(value: int | None) -> str:
    return "needs NVRTC" if value is None else str(value)
