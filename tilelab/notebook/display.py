"""Rich display in a notebook: kernels, reports, views and layouts as widgets with static twins.

Hides which view has a widget. Every output also holds text and SVG, so it stays readable on
GitHub, in nbconvert and nbviewer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from tilelab.commands.progress import NotebookLine, progress
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


_shown: dict[str, tuple[int, list[Any]]] = {}
"""Cell -> the number of its last run, and the widgets that this module showed there."""


def _own(widget: Any) -> None:
    """Remember a widget that nobody else holds, and close those of the cell's last run, which the
    notebook has cleared: a cell that is run again and again keeps one widget, not all of them."""
    import IPython  # lazy, as above

    shell: Any = IPython.get_ipython()  # pyright: ignore[reportPrivateImportUsage]
    header: Any = getattr(shell, "parent_header", None) or {}
    cell = header.get("metadata", {}).get("cellId")  # what JupyterLab and VS Code call it
    if cell is None:
        return
    run, old = _shown.get(cell, (shell.execution_count, []))
    if run != shell.execution_count:
        for each in old:
            each.layout.close()  # a model of its own, which the widget leaves open
            each.close()
        old = []
    _shown[cell] = (shell.execution_count, [*old, widget])


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
            with progress(f"drawing the {view.kind} of {report.name}", NotebookLine()):
                widget = host(make(report.subject, view))
            _own(widget)
            _display(widget)
        done.add(view.kind)


def pictures(kernel: JITKernel, kinds: Sequence[str]) -> Report:
    """The views of a kernel; a run of many blocks tells how long it takes."""
    with progress(f"drawing {kernel.name}", NotebookLine()):
        return show(kernel, *kinds)


def _show_kernel(kernel: JITKernel) -> None:
    show_report(show(kernel))


def _show_layout(layout: Any) -> None:
    widget = host(layout_panel(layout))
    _own(widget)
    _display(widget)


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
