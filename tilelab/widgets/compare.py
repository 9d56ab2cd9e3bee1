"""Plain and fast side by side: two steps of a kernel's structure with the same picture of each, and
the ladder of what every step gained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from tilelab.errors import TileValueError
from tilelab.sim import SimReport
from tilelab.views import LadderView, View, show, timeline_views
from tilelab.views.variants import Variant, longest_run, modelled
from tilelab.widgets import steps
from tilelab.widgets.panel import wish

PICTURES = {
    "sim": "run, modelled", "schedule": "uses of the slots, modelled",
    "pipeline": "planned pipeline", "memory": "shared memory", "source": "Python and CUDA",
}  # fmt: skip
"""Kind of view -> what the list of pictures calls it."""


class ComparePanel:
    """Two variants side by side. `gains`: measured ones, shown beside the modelled times.
    TileValueError (TL1711) for variants without a difference, (TL1716) for gains of none of the
    steps."""

    script: ClassVar[str] = "compare"

    def __init__(
        self, found: Sequence[Variant], inputs: Sequence[Any] = (),
        gains: steps.Gains | None = None,
    ) -> None:  # fmt: skip
        if len(found) < 2:
            raise TileValueError(
                f"{found[0].kernel.program.name} has the textbook's structure: nothing differs",
                code="TL1711",
                hint="compare a kernel with a T.Pipelined loop, or give two kernels",
            )  # fmt: skip
        if gains is not None and not {v.name for v in found} & {*gains.times}:
            raise TileValueError(
                f"none of the steps of {found[-1].kernel.program.name} was measured there: "
                f"{', '.join(gains.times)}",
                code="TL1716",
                hint="make the file with this version: tilelab bench ladder --json FILE",
            )
        self.variants = list(found)
        self._inputs = tuple(inputs)
        self._gains = gains or steps.Gains({}, "")
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
        runs = [self._run(number) for number in range(len(self.variants))]
        return modelled(self.variants, runs, self._gains.times, self._gains.remark)

    def state(self) -> dict[str, Any]:
        """The ladder, and both sides with the chosen picture."""
        ladder = self.ladder
        return {
            "title": f"Structure of {self.variants[-1].kernel.program.name}",
            "headline": ladder.headline(),
            "names": [v.name for v in self.variants],
            "sides": [
                {"variant": number, "facts": steps.room(self.variants[number].kernel),
                 "svgs": [view.to_svg() for view in views]}
                for number, views in zip(self.sides, self._pictures(), strict=True)
            ],
            "picture": self.picture,
            "pictures": PICTURES,
            "ladder": ladder.to_svg(),
            "head": ["step", ladder.unit, "to the step before", "to the first", "measured",
                     "has"],
            "rows": [
                [s.name, round(s.time, 1), f"{ladder.gain(k):.2f}x", f"{ladder.total(k):.2f}x",
                 ladder.measured(k), s.detail]
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
        return (self.ladder, *(view for views in self._pictures() for view in views))

    def _pictures(self) -> list[list[View]]:
        return steps.on_one_axis([self._views(number) for number in self.sides])

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
