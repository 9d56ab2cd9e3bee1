"""Plain and fast side by side: two steps of a kernel's structure with the same picture of each, and
the ladder of what every step gained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from tilelab.errors import TileValueError
from tilelab.sim import SimReport
from tilelab.views import LadderView, View, show, timeline_views
from tilelab.views.variants import Variant, facts, longest_run, modelled
from tilelab.widgets import steps
from tilelab.widgets.panel import wish

PICTURES = {
    "sim": "run, modelled", "schedule": "uses of the slots, modelled",
    "pipeline": "planned pipeline", "memory": "shared memory", "source": "Python and CUDA",
}  # fmt: skip
"""Kind of view -> what the list of pictures calls it."""


class ComparePanel:
    """Two variants side by side. `ladder`: measured steps to draw in place of the modelled ones."""

    script: ClassVar[str] = "compare"

    def __init__(
        self, found: Sequence[Variant], inputs: Sequence[Any] = (),
        ladder: LadderView | None = None,
    ) -> None:  # fmt: skip
        if len(found) < 2:
            raise TileValueError(
                f"{found[0].kernel.program.name} has the textbook's structure: nothing differs",
                code="TL1711",
                hint="compare a kernel with a T.Pipelined loop, or give two kernels",
            )  # fmt: skip
        self.variants = list(found)
        self._inputs = tuple(inputs)
        self._measured = ladder
        self._runs: dict[int, SimReport] = {}
        self.sides = [0, len(found) - 1]
        self.picture = "sim"

    @cached_property
    def inputs(self) -> Sequence[Any]:
        """What the variants run on."""
        return self._inputs or self.variants[-1].kernel.get_profiler().make_inputs()

    @cached_property
    def ladder(self) -> LadderView:
        """The steps with their times."""
        return self._measured or modelled(
            self.variants, [self._run(number) for number in range(len(self.variants))]
        )

    def state(self) -> dict[str, Any]:
        """The ladder, and both sides with the chosen picture."""
        ladder = self.ladder
        return {
            "title": f"Structure of {self.variants[-1].kernel.program.name}",
            "headline": ladder.headline(),
            "names": [v.name for v in self.variants],
            "sides": [self._side(number) for number in self.sides],
            "picture": self.picture,
            "pictures": PICTURES,
            "ladder": ladder.to_svg(),
            "head": ["step", ladder.unit, "to the step before", "to the first", "has"],
            "rows": [
                [s.name, round(s.time, 1), f"{ladder.gain(k):.2f}x", f"{ladder.total(k):.2f}x",
                 s.detail]
                for k, s in enumerate(ladder.steps)
            ],
        }  # fmt: skip

    def answer(self, request: Mapping[str, Any]) -> None:
        """{"side": 0|1, "variant": number} or {"picture": kind}."""
        if "picture" in request:
            self.picture = wish(request, "picture", tuple(PICTURES))
        else:
            side: int = wish(request, "side", (0, 1))
            self.sides[side] = wish(request, "variant", tuple(range(len(self.variants))))

    def twins(self) -> tuple[View, ...]:
        """The ladder, then the chosen picture of both sides."""
        pictures = [v for number in self.sides for v in self._views(number)]
        return (self.ladder, *pictures)

    def _views(self, number: int) -> Sequence[View]:
        kernel = self.variants[number].kernel
        if self.picture == "sim":
            return timeline_views(self._run(number))
        if self.picture == "schedule":
            return steps.schedules(kernel, self._run(number))
        return show(kernel, self.picture).views

    def _run(self, number: int) -> SimReport:
        """A variant's run, made once: the ladder and the pictures tell of the same block."""
        if number not in self._runs:
            self._runs[number] = longest_run(self.variants[number].kernel, self.inputs)
        return self._runs[number]

    def _side(self, number: int) -> dict[str, Any]:
        variant = self.variants[number]
        return {
            "variant": number,
            "facts": facts(variant.kernel),
            "svgs": [view.to_svg() for view in self._views(number)],
        }
