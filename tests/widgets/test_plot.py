"""Matplotlib twins: they draw what the views say, into any Axes, and refuse what they cannot."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import matplotlib
import numpy as np
import pytest

import tilelab
from tests.kernels import gemm
from tilelab import plot
from tilelab.errors import TileError
from tilelab.layout import atoms, row_major, swizzled
from tilelab.views import LadderStep, LadderView, access_of, fragment_view, shared_view, show

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def kernel() -> Any:
    return tilelab.compile(gemm(256, 256, 512), target="sm_90a", out_idx=-1)


def test_a_map_shows_every_lane() -> None:
    fragment = atoms.wgmma_accumulator(128).repeat(2, 1)
    ax = plot.layout(fragment)
    shown = np.asarray(ax.images[0].get_array())
    assert (shown == fragment_view(fragment).owner_grid() % 32).all()
    banks = np.asarray(plot.layout(swizzled((64, 64), 16)).images[0].get_array())
    assert (banks == shared_view(swizzled((64, 64), 16)).bank_grid()).all()


def test_small_maps_are_labelled_and_a_given_axes_is_used() -> None:
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    assert plot.layout(atoms.mma_c(), ax) is ax
    assert any(t.get_text() == "T0\nR0" for t in ax.texts)


def test_kernel_pictures(kernel: Any) -> None:
    (loop,) = show(kernel, "pipeline").views
    assert len(plot.pipeline(kernel).patches) == 2 * len(loop.iterations)
    (budget,) = show(kernel, "memory").views
    assert len(plot.memory(kernel).patches) == len(budget.rows)
    assert plot.layout(kernel).get_title().startswith("C_local")
    assert plot.roofline(kernel).get_ylabel() == "TFLOP/s"


def test_an_access_has_a_row_for_each_wavefront() -> None:
    view = access_of(shared_view(row_major((64, 64), 16)), "ldmatrix", 8)
    shown = np.ma.asarray(plot.access(view).images[0].get_array())
    assert shown.shape == (32, 32) and set(shown.compressed()) == set(range(32))


def test_times_and_steps(kernel: Any) -> None:
    (times,) = show(kernel, "schedule").views
    ax = plot.schedule(times)
    assert [t.get_text() for t in ax.get_yticklabels()] == [
        "slot 0",
        "slot 1",
        "slot 2",
        "consumer",
    ]
    assert len(ax.patches) == 5 * len(times.uses)
    steps = (LadderStep("textbook", "", 200.0), LadderStep("a switch", "tl.x", 100.0))
    view = LadderView("Steps", "gemm", "cycles", "modelled", "", steps)
    shown = plot.ladder(view)
    assert [p.get_width() for p in shown.patches] == [200.0, 100.0]
    assert any("2.00x" in t.get_text() for t in shown.texts)


@pytest.mark.parametrize("stages", [2, 4])
def test_a_long_loop_has_no_text_upon_text_and_none_is_cut(stages: int) -> None:
    long = tilelab.compile(gemm(256, 256, 4096, stages=stages), target="sm_90a", out_idx=-1)
    for draw in (plot.pipeline, plot.schedule, plot.memory):
        ax = draw(long)
        figure = ax.figure
        figure.canvas.draw()
        renderer = figure.canvas.get_renderer()
        texts = [t for t in [*ax.texts, ax.title] if t.get_text()]
        boxes = [t.get_window_extent(renderer) for t in texts]
        for one, other in combinations(boxes, 2):
            assert not one.overlaps(other)
        assert all(b.x0 >= 0 and b.x1 <= figure.bbox.width for b in boxes)


@pytest.mark.parametrize(
    "draw", [plot.layout, plot.pipeline, plot.memory, plot.roofline, plot.schedule, plot.ladder]
)
def test_what_cannot_be_drawn_is_named(draw: Any) -> None:
    with pytest.raises(TileError, match="int cannot be drawn"):
        draw(3)
