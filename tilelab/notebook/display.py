"""Rich display in a notebook: kernels, reports, views and layouts as widgets with static twins.

Hides which view has a widget. Every output also holds text and SVG, so it stays readable on
GitHub, in nbconvert and nbviewer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tilelab.kernel import JITKernel
from tilelab.layout import Fragment, SharedLayout, TableFragment
from tilelab.views import FragmentView, Report, View, show
from tilelab.widgets import compare_panel, layout_panel
from tilelab.widgets.host import host
from tilelab.widgets.panel import Panel
from tilelab.widgets.passes import PassPanel
from tilelab.widgets.plans import BudgetPanel, TimelinePanel
from tilelab.widgets.runs import PlayerPanel, RooflinePanel

LAYOUTS = (Fragment, TableFragment, SharedLayout)


def _layouts(kernel: JITKernel, view: View) -> Panel:
    assert isinstance(view, FragmentView)
    return layout_panel(kernel, buffer=view.buffer)


def _timed(kernel: JITKernel, view: View) -> Panel:
    panel = TimelinePanel(kernel)
    panel.answer({"times": "modelled"})
    return panel


PANELS: dict[str, Callable[[JITKernel, View], Panel]] = {
    "fragment": _layouts,
    "pipeline": lambda kernel, _: TimelinePanel(kernel),
    "memory": lambda kernel, _: BudgetPanel(kernel),
    "passes": lambda kernel, _: PassPanel(kernel),
    "timeline": lambda kernel, _: PlayerPanel(kernel, kernel.get_profiler().make_inputs()),
    "schedule": _timed,
    "roofline": lambda kernel, _: RooflinePanel(kernel, kernel.get_profiler().make_inputs()),
    "ladder": lambda kernel, _: compare_panel(kernel),
}
"""The widget of each kind of view; a kind that is not here is shown as its picture."""


def _display(shown: Any) -> None:
    import IPython.display  # lazy: only ever called by IPython

    IPython.display.display(shown)  # pyright: ignore[reportUnknownMemberType]


def show_report(report: Report) -> None:
    """Display a report's views, as widgets where its kernel is at hand."""
    if not report.views:
        sys.stdout.write(report.to_text() + "\n")
    done: set[str] = set()
    for view in report.views:
        make = PANELS.get(view.kind)
        if make is None or not isinstance(report.subject, JITKernel):
            _display(view)
        elif view.kind not in done:  # a widget shows all loops, or all kernels, at once
            _display(host(make(report.subject, view)))
        done.add(view.kind)


def _show_kernel(kernel: JITKernel) -> None:
    show_report(show(kernel))


def _show_layout(layout: Any) -> None:
    _display(host(layout_panel(layout)))


def install(shell: Any) -> None:
    """Register the formatters."""
    formatter = shell.display_formatter.ipython_display_formatter
    formatter.for_type(JITKernel, _show_kernel)
    formatter.for_type(Report, show_report)
    for kind in LAYOUTS:
        formatter.for_type(kind, _show_layout)


def remove(shell: Any) -> None:
    """Take the formatters back."""
    formatter = shell.display_formatter.ipython_display_formatter
    for kind in (JITKernel, Report, *LAYOUTS):
        formatter.pop(kind, None)
