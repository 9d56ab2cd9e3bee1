"""Widgets: interactive pictures of compiled kernels and layouts, for Jupyter.

    tilelab.widgets.layouts(kernel)    which thread, register and bank holds which element
    tilelab.widgets.timeline(kernel)   the planned pipeline and its times, re-planned by a slider
    tilelab.widgets.budget(kernel)     shared memory by buffer and stage on a chosen chip
    tilelab.widgets.passes(kernel)     the program before and after every pass
    tilelab.widgets.accesses(kernel, ...)  each access of a run: banks, wavefronts, sectors
    tilelab.widgets.player(kernel, ...)    a simulated block, step by step
    tilelab.widgets.roofline(kernel, ...)  what bounds the kernel, and how near it comes
    tilelab.widgets.compare(kernel, ...)   plain and fast side by side, and what each step gained

Each returns an anywidget; in a text terminal, on GitHub and after nbconvert its static picture
stands in. Nothing opens a port or loads from the network.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilelab.calls import answer_all
from tilelab.errors import TileTypeError
from tilelab.kernel import JITKernel
from tilelab.views.variants import Variant, variants
from tilelab.widgets import steps
from tilelab.widgets.benched import bench_rows, named_row, peer_points
from tilelab.widgets.compare import ComparePanel
from tilelab.widgets.host import host
from tilelab.widgets.layouts import Entry, LayoutPanel, entry, undecided
from tilelab.widgets.passes import PassPanel
from tilelab.widgets.plans import BudgetPanel, TimelinePanel
from tilelab.widgets.runs import AccessPanel, PlayerPanel, RooflinePanel

__all__ = ["accesses", "budget", "compare", "layouts", "passes", "player", "roofline", "timeline"]


def layouts(*subjects: Any, buffer: str | None = None) -> Any:
    """The layout explorer of a kernel's buffers, or of layouts made by hand.

    subjects: one compiled kernel, or any number of `tilelab.layout` objects. buffer: the name of
    the kernel's buffer to begin with. TileTypeError (TL1711) for anything else.
    """
    return host(layout_panel(*subjects, buffer=buffer))


def layout_panel(*subjects: Any, buffer: str | None = None) -> LayoutPanel:
    """The panel behind `layouts`."""
    entries: list[Entry] = []
    for number, subject in enumerate(subjects):
        if isinstance(subject, JITKernel):
            entries += _entries(subject)
        else:
            entries.append(entry(f"layout {number + 1}", subject))
    panel = LayoutPanel(entries)
    names = [e.name for e in entries]
    if buffer is not None:
        if buffer not in names:
            raise TileTypeError(
                f"buffer={buffer!r} is none of this kernel's",
                code="TL1711",
                hint="one of " + ", ".join(names),
            )
        panel.answer({"show": 0, "buffer": names.index(buffer)})
    elif len(entries) > 1 and not any(isinstance(s, JITKernel) for s in subjects):
        panel.answer({"show": 1, "buffer": 1})
    return panel


def _entries(kernel: JITKernel) -> list[Entry]:
    """The kernel's layouts, fragments first, as the compiler explains them, then the tiles of
    single threads, which stay row-major."""
    found = sorted(
        [*kernel.trace.layouts, *undecided(kernel)], key=lambda d: hasattr(d.layout, "offsets")
    )
    return [
        entry(
            d.buffer.root.name,
            d.layout,
            dtype=str(d.buffer.root.dtype),
            bits=d.buffer.root.dtype.bits,
            reason=d.reason,
            line=d.buffer.root.loc.line if d.buffer.root.loc else None,
        )
        for d in found
    ]


def _kernel(kernel: Any) -> JITKernel:
    if not isinstance(kernel, JITKernel):
        raise TileTypeError(
            f"kernel={kernel!r} is no compiled kernel",
            code="TL1711",
            hint="give what tilelab.compile(...) or a @tilelab.jit function returns",
        )
    return kernel


def _given(kernel: JITKernel, inputs: Sequence[Any]) -> Sequence[Any]:
    """The reader's inputs, or random ones where none are given."""
    return inputs or kernel.get_profiler().make_inputs()


def timeline(kernel: JITKernel, *inputs: Any) -> Any:
    """The planned schedule of a kernel's pipelined loops, with a slider for num_stages, and the
    times of a run when they are asked for. inputs: the kernel's arguments for that run, on the
    CPU (default: random ones)."""
    return host(TimelinePanel(_kernel(kernel), inputs))


def budget(kernel: JITKernel) -> Any:
    """Shared memory by buffer and stage against a chip's limit, and the blocks that fit."""
    return host(BudgetPanel(_kernel(kernel)))


def passes(kernel: JITKernel) -> Any:
    """Every pass with the program before and after it, linked to Python, CUDA and SASS."""
    return host(PassPanel(_kernel(kernel)))


def accesses(kernel: JITKernel, *inputs: Any) -> Any:
    """The accesses of a run on the simulator, the worst first: which lanes meet in which bank or
    sector. inputs: the kernel's arguments, on the CPU (default: random ones)."""
    return host(AccessPanel(_kernel(kernel).simulate(*_given(kernel, inputs))))


def player(kernel: JITKernel, *inputs: Any) -> Any:
    """A simulated block step by step: who is busy when, which line is at work, what was found.
    inputs: the kernel's arguments, on the CPU (default: random ones)."""
    return host(PlayerPanel(_kernel(kernel), _given(kernel, inputs)))


def roofline(
    kernel: JITKernel, *inputs: Any, seconds: float | None = None, bench: str | Path | None = None,
    row: str = "",
) -> Any:  # fmt: skip
    """What bounds a kernel on a chip, with its point: the modelled time of a simulated run, or
    the measured `seconds` of one call. inputs: the kernel's arguments, on the CPU. bench: a file
    of `tilelab bench --json FILE`, of which the columns of the row named `row` are drawn beside
    it. TileValueError (TL1716) for a file or a row that is not there."""
    peers = () if bench is None else peer_points(named_row(bench_rows(bench), row))
    given = _given(_kernel(kernel), inputs)
    return host(RooflinePanel(kernel, given, seconds=seconds, peers=peers))


def compare(
    kernel: JITKernel, plain: JITKernel | None = None, *inputs: Any,
    bench: str | Path | None = None, row: str = "",
) -> Any:  # fmt: skip
    """Two structures of a kernel side by side, and a ladder of what each step between them gained.

    kernel: the fast one. plain: another kernel of the same parameters; by default the same
    program in the textbook's structure, with a step for each switch that changes its code.
    inputs: the kernel's arguments for the runs, on the CPU (default: random ones). bench: a file
    of `tilelab bench ladder --json FILE`, of which the rows that begin with `row` give each step
    its measured gain; a step without one says so. TileValueError (TL1711) where nothing differs,
    (TL1716) for a wrong file.
    """
    return host(compare_panel(kernel, plain, *inputs, bench=bench, row=row))


def compare_panel(
    kernel: JITKernel, plain: JITKernel | None = None, *inputs: Any,
    bench: str | Path | None = None, row: str = "",
) -> ComparePanel:  # fmt: skip
    """The panel behind `compare`."""
    if plain is None:
        found = variants(_kernel(kernel))
    else:
        own, other = _kernel(kernel).name, _kernel(plain).name
        other = f"{other} (plain)" if other == own else other
        found = [Variant(other, "", plain), Variant(own, "", kernel)]
    gains = None if bench is None else steps.measured(bench_rows(bench), row)
    return ComparePanel(found, inputs, gains)


answer_all(globals(), __all__, "widgets")
