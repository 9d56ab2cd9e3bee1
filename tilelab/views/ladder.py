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
    """One step: what it adds, the switch that turns it on ("" for the first), and its time.
    `measured`: how many times as fast as the first step on a GPU; None: not measured."""

    name: str
    switch: str
    time: float
    detail: str = ""
    measured: float | None = None


@register
@dataclass(frozen=True)
class LadderView(View):
    """Steps in order, each with those before it. `unit` is that of the times; `source` says who
    ran them, `remark` what such times leave out, `measurement` where the measured gains are from
    ("" for none)."""

    kind: ClassVar[str] = "ladder"
    kernel: str
    unit: str
    source: str
    remark: str
    steps: tuple[LadderStep, ...]
    measurement: str = ""

    def gain(self, number: int) -> float:
        """How many times as fast as the step before."""
        return self.steps[max(number - 1, 0)].time / self.steps[number].time

    def total(self, number: int) -> float:
        """How many times as fast as the first step."""
        return self.steps[0].time / self.steps[number].time

    def measured(self, number: int) -> str:
        """A step's measured gain to the last measured step before it, as text."""
        now = self.steps[number].measured
        if now is None:
            return "not measured"
        before = [s.measured for s in self.steps[:number] if s.measured is not None]
        return f"{now / before[-1]:.2f}x" if before else "1.00x"

    def notes(self) -> list[str]:
        """What the times leave out, and where the measured gains are from."""
        return [note for note in (self.remark, self.measurement) if note]

    def shown(self, number: int) -> str:
        """A step's time as text."""
        time = self.steps[number].time
        return f"{time:,.0f}" if time >= 100 else f"{time:.3g}"

    def headline(self) -> str:
        """From the first step to the last."""
        last = len(self.steps) - 1
        words = (
            f"{self.kernel}: {self.shown(0)} {self.unit} at first, {self.shown(last)} at last: "
            f"{self.total(last):.2f} times as fast, {self.source}"
        )
        found = [s.measured for s in self.steps if s.measured is not None]
        return f"{words}; {found[-1]:.2f} times, measured" if found else words

    def to_text(self) -> str:
        """The headline, and a row a step."""
        rows = [
            (step.name, step.switch or "-", self.shown(k), f"{self.gain(k):.2f}x",
             f"{self.total(k):.2f}x", self.measured(k), step.detail)
            for k, step in enumerate(self.steps)
        ]  # fmt: skip
        head = (
            "step",
            "switch",
            self.unit,
            "to the step before",
            "to the first",
            "measured",
            "has",
        )
        text = f"LADDER  {self.headline()}\n" + table(head, rows) + "\n"
        return text + "".join(wrapped("note: " + note) + "\n" for note in self.notes())

    def to_svg(self) -> str:
        """A bar a step, with its gain."""
        return ladder_svg.draw(self)
