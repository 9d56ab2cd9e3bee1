"""A kernel's structure step by step, from the textbook's to the one that is generated: what each
step gained, modelled or measured.

The view keeps names and times only; who ran the steps is its maker's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilelab.views import ladder_svg
from tilelab.views.base import View, register
from tilelab.views.table import table, wrapped


@dataclass(frozen=True)
class LadderStep:
    """One step: what it adds, the switch that turns it on ("" for the first), and its time."""

    name: str
    switch: str
    time: float
    detail: str = ""


@register
@dataclass(frozen=True)
class LadderView(View):
    """Steps in order, each with those before it. `unit` is that of the times; `source` says who
    ran them, `remark` what such times leave out."""

    kind: ClassVar[str] = "ladder"
    kernel: str
    unit: str
    source: str
    remark: str
    steps: tuple[LadderStep, ...]

    def gain(self, number: int) -> float:
        """How many times as fast as the step before."""
        return self.steps[max(number - 1, 0)].time / self.steps[number].time

    def total(self, number: int) -> float:
        """How many times as fast as the first step."""
        return self.steps[0].time / self.steps[number].time

    def shown(self, number: int) -> str:
        """A step's time as text."""
        time = self.steps[number].time
        return f"{time:,.0f}" if time >= 100 else f"{time:.3g}"

    def headline(self) -> str:
        """From the first step to the last."""
        last = len(self.steps) - 1
        return (
            f"{self.kernel}: {self.shown(0)} {self.unit} at first, {self.shown(last)} at last: "
            f"{self.total(last):.2f} times as fast, {self.source}"
        )

    def to_text(self) -> str:
        """The headline, and a row a step."""
        rows = [
            (step.name, step.switch or "-", self.shown(k), f"{self.gain(k):.2f}x",
             f"{self.total(k):.2f}x", step.detail)
            for k, step in enumerate(self.steps)
        ]  # fmt: skip
        head = ("step", "switch", self.unit, "to the step before", "to the first", "has")
        text = f"LADDER  {self.headline()}\n" + table(head, rows) + "\n"
        return text + (wrapped("note: " + self.remark) + "\n" if self.remark else "")

    def to_svg(self) -> str:
        """A bar a step, with its gain."""
        return ladder_svg.draw(self)
