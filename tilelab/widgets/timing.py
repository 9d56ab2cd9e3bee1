"""How long the notebook's pictures take: `python -m tilelab.widgets.timing` prints JSON.

Runs in a process of its own, so that its imports and its first compile are those of a reader who
has just started a kernel. Hides which pictures stand for all.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from tilelab.demo.kernels import gemm
from tilelab.kernel import JITKernel
from tilelab.layout import atoms
from tilelab.target import SM90A
from tilelab.views import fragment_view, show
from tilelab.widgets import layout_panel
from tilelab.widgets.bare import bare_page, chromium
from tilelab.widgets.plans import TimelinePanel

ROUNDS = 5
FRAGMENTS = {
    "128x128": lambda: atoms.wgmma_accumulator(128).repeat(2, 1),
    "256x256": lambda: atoms.wgmma_accumulator(256).repeat(4, 1),
}


def product() -> JITKernel:
    """The kernel that a reader begins with."""
    return JITKernel(gemm(1024, 1024, 1024).function, target=SM90A, out_idx=-1)


def least(what: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Seconds of the quickest of some rounds."""
    found: list[float] = []
    for _ in range(rounds):
        started = time.perf_counter()
        what()
        found.append(time.perf_counter() - started)
    return min(found)


def first_picture() -> float:
    """Seconds from a program to the SVG of its layout map, the first of this process."""
    started = time.perf_counter()
    _ = show(product(), "fragment").views[0].to_svg()
    return time.perf_counter() - started


def painted() -> dict[str, float]:
    """Seconds in a browser: the first paint of each fragment's explorer, and from a wish of the
    reader to the new picture. Empty where there is no browser to ask."""
    if not chromium():
        return {}
    try:
        with bare_page() as bare:
            found = {
                f"paint {name}": min(bare.show(layout_panel(make())) for _ in range(3)) / 1e3
                for name, make in FRAGMENTS.items()
            }
            bare.show(TimelinePanel(product()))
            for key, slider in (("reaction", "ArrowLeft"), ("reaction again", "ArrowRight")):
                control = bare.page.locator("[data-key=stages]")
                control.focus()
                before = bare.page.locator(".tilelab").get_attribute("data-painted")
                started = time.perf_counter()
                control.press(slider)
                bare.page.wait_for_function(
                    "n => document.querySelector('.tilelab').dataset.painted !== n", arg=before
                )
                found[key] = time.perf_counter() - started
            return found
    except ModuleNotFoundError:  # no playwright
        return {}


def main() -> None:
    """Measure, and write one JSON object of seconds."""
    found = {"first picture": first_picture()}
    for name, make in FRAGMENTS.items():
        fragment = make()
        found[f"svg {name}"] = least(lambda made=fragment: fragment_view(made).to_svg())
    json.dump({**found, **painted()}, sys.stdout)


if __name__ == "__main__":
    main()
