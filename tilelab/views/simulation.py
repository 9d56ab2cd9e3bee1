"""A simulation's report with pictures: what `kernel.simulate` returns and a notebook shows.

Hides which views a report has.
"""

from __future__ import annotations

from dataclasses import fields, replace
from html import escape
from typing import Any, Self

from tilelab.sim import SimReport
from tilelab.views.timeline import TimelineView, timeline_views


class SimulationReport(SimReport):
    """A SimReport that shows itself: text everywhere, and its timeline as SVG in notebooks."""

    @classmethod
    def of(cls, report: SimReport, outputs: tuple[Any, ...] = ()) -> Self:
        """The same report with the tensors that the call returns."""
        kept = {f.name: getattr(report, f.name) for f in fields(SimReport)}
        return replace(cls(**kept), outputs=outputs)

    def views(self) -> list[TimelineView]:
        """The timeline of each kernel."""
        return timeline_views(self)

    def to_html(self) -> str:
        """The text, and the timelines with their text twins folded beneath."""
        figures = [
            f'<figure style="margin:0 0 1em">{view.to_svg()}<details><summary>as text</summary>'
            f"<pre>{escape(view.to_text())}</pre></details></figure>"
            for view in self.views()
        ]
        return (
            f'<section aria-label="simulation of {escape(self.name)}"><p>{escape(self.headline())}'
            f"</p>{''.join(figures)}<details{' open' if self.findings else ''}><summary>findings "
            f"and counters</summary><pre>{escape(str(self))}</pre></details></section>"
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        bundle = {"text/plain": str(self), "text/html": self.to_html()}
        for view in self.views()[:1]:
            bundle["image/svg+xml"] = view.to_svg()
        return bundle
