"""`show`: the pictures of one compiled kernel together, and how hosts display them.

Hides where the views' data lies in a kernel object, and what each host can show: a notebook gets
one output per picture as SVG (GitHub and nbconvert keep those), other hosts one HTML text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from tilelab.errors import TileValueError
from tilelab.layout import Fragment, TableFragment
from tilelab.passes.base import CompileTrace
from tilelab.passes.plan import LayoutDecision
from tilelab.thread.nodes import Program
from tilelab.views.base import View
from tilelab.views.compiled import Compiled, KernelResources
from tilelab.views.fragment import decision_view
from tilelab.views.memory import MemoryView, memory_view
from tilelab.views.passes import passes_view
from tilelab.views.pipeline import pipeline_view
from tilelab.views.roofline import point_of, roofline_view
from tilelab.views.sass import sass_view
from tilelab.views.schedule import schedule_views
from tilelab.views.source import source_view
from tilelab.views.timeline import timeline_views
from tilelab.views.variants import longest_run, modelled, variants


@dataclass(frozen=True)
class Report:
    """Some views of one kernel, in the order they are read. `subject` is the kernel, for hosts
    that draw more than pictures."""

    name: str
    views: tuple[View, ...]
    subject: Compiled | None = field(default=None, compare=False, repr=False)

    def to_text(self) -> str:
        """The text twins, one after another."""
        nothing = f"{self.name} has nothing of what was asked for."
        return "\n".join(view.to_text() for view in self.views) or nothing

    def to_html(self) -> str:
        """The pictures inline, each with its text twin folded beneath."""
        parts = [
            f'<figure style="margin:0 0 1em;overflow-x:auto">{view.to_svg()}<details>'
            f"<summary>as text</summary><pre>{escape(view.to_text())}</pre></details></figure>"
            for view in self.views
        ]
        body = "".join(parts) or f"<p>{escape(self.to_text())}</p>"
        return f'<section aria-label="{escape(self.name)}">{body}</section>'

    def __getitem__(self, kind: str) -> View:
        """The first view of a kind ("fragment", "pipeline", "memory", ...)."""
        for view in self.views:
            if view.kind == kind:
                return view
        raise KeyError(f"no {kind!r} in this report; it has: {[v.kind for v in self.views]}")

    def __str__(self) -> str:
        return self.to_text()

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.to_text(), "text/html": self.to_html()}

    def _ipython_display_(self) -> None:
        import IPython.display  # lazy: only ever called by IPython

        for view in self.views:
            IPython.display.display(view)  # pyright: ignore[reportUnknownMemberType]


DEFAULT_KINDS = ("fragment", "pipeline", "memory")


def _fragments(kernel: Compiled) -> list[View]:
    """The accumulator of the (last) gemm, else the largest fragment."""
    found = [d for d in kernel.trace.layouts if isinstance(d.layout, (Fragment, TableFragment))]
    return [decision_view(chosen)] if (chosen := _accumulator(kernel, found)) else []


def _accumulator(kernel: Compiled, found: Sequence[LayoutDecision]) -> LayoutDecision | None:
    by_name = {d.buffer.root.name: d for d in found}
    labels = [o.label for p in kernel.trace.pipelines for o in p.consumers if o.kind == "gemm"]
    for label in reversed(labels):
        for word in label.replace(",", " ").split():
            if word in by_name:
                return by_name[word]
    return max(found, key=lambda d: d.layout.num_registers, default=None)


def _pipelines(kernel: Compiled) -> list[View]:
    return [pipeline_view(plan) for plan in kernel.trace.pipelines]


def memory_views(
    program: Program, names: Sequence[str], trace: CompileTrace,
    resources: Mapping[str, KernelResources],
) -> list[MemoryView]:  # fmt: skip
    """The budget of each kernel of a program. `names`: of its CUDA functions, which may differ
    (C++ does not allow all names); `resources`: what ptxas reported of those that it compiled."""
    views: list[MemoryView] = []
    for part, name in zip(program.kernels, names, strict=True):
        used = resources.get(name)
        views.append(
            memory_view(
                part,
                trace.target,
                plans=trace.pipelines,
                registers=used.registers if used else None,
                spill_bytes=used.spill_stores if used else 0,
            )
        )
    return views


def _memory(kernel: Compiled) -> list[View]:
    names = kernel.source.kernel_names
    return [*memory_views(kernel.program, names, kernel.trace, kernel.resources)]


def _source(kernel: Compiled) -> list[View]:
    return [source_view(kernel.source, kernel.prim_func.loc)]


def _passes(kernel: Compiled) -> list[View]:
    return [passes_view(kernel.trace)]


def _sass(kernel: Compiled) -> list[View]:
    return [sass_view(kernel.program.name, kernel.get_sass())]


def _simulation(kernel: Compiled) -> list[View]:
    return list(timeline_views(kernel.simulate(*kernel.get_profiler().make_inputs())))


def _schedule(kernel: Compiled) -> list[View]:
    report = kernel.simulate(*kernel.get_profiler().make_inputs())
    plans = kernel.trace.pipelines
    return [*schedule_views(plans, report.events, source="modelled", block=report.block,
                            clock_hz=report.clock_hz)]  # fmt: skip


def _roofline(kernel: Compiled) -> list[View]:
    inputs = kernel.get_profiler().make_inputs()
    report = kernel.simulate(*inputs)
    point = point_of(report, inputs)
    return [roofline_view([point], kernel.trace.target)]


def _compare(kernel: Compiled) -> list[View]:
    found = variants(kernel)
    if len(found) < 2:
        return []
    inputs = kernel.get_profiler().make_inputs()
    return [modelled(found, [longest_run(v.kernel, inputs) for v in found])]


MAKERS: dict[str, Callable[[Compiled], list[View]]] = {
    "fragment": _fragments,
    "pipeline": _pipelines,
    "memory": _memory,
    "source": _source,
    "passes": _passes,
    "layout": _fragments,
    "sass": _sass,
    "sim": _simulation,
    "schedule": _schedule,
    "roofline": _roofline,
    "compare": _compare,
}
"""How to make the views of each kind: the names that `show` and the magics accept. "sim",
"schedule", "roofline" and "compare" run the kernel on the simulator, on random inputs."""

ALL_KINDS = ("fragment", "pipeline", "memory", "source", "passes", "sass")
"""What "all" means: every kind that needs no run, once."""


def show(kernel: Compiled, *kinds: str) -> Report:
    """The views of a compiled kernel: the fragment map, the pipeline and the memory budget, or
    the kinds that are named. A kind that the kernel has nothing of (no pipelined loop, say) is
    left out. TileValueError (TL1711) for a kind that does not exist."""
    views: list[View] = []
    for kind in kinds or DEFAULT_KINDS:
        maker = MAKERS.get(kind)
        if maker is None:
            raise TileValueError(
                f"there is no view {kind!r}", code="TL1711", hint="one of " + ", ".join(MAKERS)
            )
        views += maker(kernel)
    return Report(kernel.program.name, tuple(views), kernel)
