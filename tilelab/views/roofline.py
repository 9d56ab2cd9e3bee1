"""The roofline of a chip with a kernel's point: what bounds it, and how near it comes.

Source: Williams, Waterman, Patterson, "Roofline" (CACM 52, 2009). Hides how work and bytes are
counted and which peaks a target has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tilelab.errors import TileValueError
from tilelab.sim import SimReport
from tilelab.target import Target
from tilelab.views import roofline_svg
from tilelab.views.base import View, register
from tilelab.views.table import percent, table


@dataclass(frozen=True)
class Point:
    """A kernel: `flops` and DRAM `num_bytes` of one call; `seconds` it took, None if not timed.

    source: "measured", "modelled", or whose row of a benchmark it is.
    """

    name: str
    flops: float
    num_bytes: float
    seconds: float | None
    source: str

    @property
    def intensity(self) -> float:
        """Operations for each byte."""
        return self.flops / self.num_bytes

    @property
    def rate(self) -> float | None:
        """Operations a second."""
        return self.flops / self.seconds if self.seconds else None


@register
@dataclass(frozen=True)
class RooflineView(View):
    """Points under the roof of one chip; peaks in operations and bytes a second."""

    kind: ClassVar[str] = "roofline"
    target: str
    peak_flops: float
    peak_bytes: float
    points: tuple[Point, ...]

    def roof(self, intensity: float) -> float:
        """The most operations a second at an intensity."""
        return min(self.peak_flops, intensity * self.peak_bytes)

    @property
    def ridge(self) -> float:
        """The intensity from which on the tensor cores bound."""
        return self.peak_flops / self.peak_bytes

    def bound_of(self, point: Point) -> str:
        """What bounds a point, in words."""
        return "memory bandwidth" if point.intensity < self.ridge else "tensor cores"

    def to_text(self) -> str:
        """Each point with its bound and, where it was timed, its share of the roof."""
        rows = [
            (p.name, p.source, f"{p.intensity:.3g}", self.bound_of(p),
             f"{self.roof(p.intensity) / 1e12:.4g}",
             "-" if p.rate is None else f"{p.rate / 1e12:.4g}",
             "-" if p.rate is None else percent(p.rate / self.roof(p.intensity)))
            for p in self.points
        ]  # fmt: skip
        head = ("kernel", "time", "flop/byte", "bound by", "roof TFLOP/s", "TFLOP/s", "of the roof")
        peaks = f"{self.peak_flops / 1e12:.4g} TFLOP/s, {self.peak_bytes / 1e12:.3g} TB/s"
        return f"ROOFLINE  {self.target}: {peaks}; ridge {self.ridge:.0f} flop/byte\n" + (
            table(head, rows) + "\n"
        )

    def to_svg(self) -> str:
        """Both axes logarithmic, the roof as a line, points with their names."""
        return roofline_svg.draw(self)


def point_of(report: SimReport, inputs: Sequence[Any], *, seconds: float | None = None) -> Point:
    """The point of a simulated kernel: operations as the simulator counted them, the bytes of all
    its tensors (`inputs` and the report's outputs) once, and the time that was measured (else the
    modelled one)."""
    num_bytes = sum(t.nbytes for t in (*inputs, *report.outputs) if hasattr(t, "nbytes"))
    amounts = report.total().amounts
    flops = amounts.get("mma_flops", 0) + amounts.get("simt_flops", 0)
    timed = seconds if seconds is not None else report.modelled_ms / 1e3
    source = "modelled" if seconds is None else "measured"
    return Point(report.name or "kernel", max(flops, 1.0), num_bytes, timed or None, source)


def roofline_view(points: Sequence[Point], target: Target) -> RooflineView:
    """Points under the roof of a target's chip. TileValueError (TL1711) for a point without
    operations or bytes."""
    for point in points:
        if point.flops <= 0 or point.num_bytes <= 0:
            raise TileValueError(
                f"{point.name!r} has {point.flops} operations and {point.num_bytes} bytes",
                code="TL1711",
                hint="both must be above 0 to have a place under a roofline",
            )
    limits = target.limits
    return RooflineView(
        title=f"Roofline of {target.name}",
        target=target.name,
        peak_flops=limits.tensor_flops_16bit,
        peak_bytes=limits.dram_bytes_per_second,
        points=tuple(points),
    )
