"""Shows a panel in a notebook through anywidget; with no browser its static twins stand in.

Hides how a script becomes one ESM text, how colours reach CSS, and the traits that carry state.
No server, no port, nothing from the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, cast

from tilelab.errors import TileError
from tilelab.views.palette import PAINTS
from tilelab.views.svg import stacked
from tilelab.widgets.panel import Panel

STATIC = files("tilelab.widgets") / "static"


@cache
def script(name: str) -> str:
    """The ESM text of a widget: the shared part, its own, and anywidget's entry."""
    parts = [(STATIC / f"{part}.js").read_text("utf-8") for part in ("core", name)]
    return "\n".join([*parts, "export default mount(draw);\n"])


@cache
def style() -> str:
    """The CSS of all widgets, with the palette of both themes."""
    rules = [(STATIC / "core.css").read_text("utf-8")]
    for theme in ("light", "dark"):
        scope = f'.tilelab[data-theme="{theme}"]'
        paints = {role: getattr(paint, theme) for role, paint in PAINTS.items()}
        rules.append(scope + "{" + "".join(f"--tl-{r}:{c};" for r, c in paints.items()) + "}")
        for role, colour in paints.items():
            # Pictures bring their own colours for hosts without this style sheet; the notebook's
            # theme is known here, and is not always the browser's.
            rules.append(f"{scope} .f-{role}{{fill:{colour}}}{scope} .s-{role}{{stroke:{colour}}}")
    return "\n".join(rules)


@cache
def _widget_class() -> Any:
    import anywidget  # lazy: an import of tilelab must not load it
    import traitlets

    class PanelWidget(anywidget.AnyWidget):  # type: ignore[misc]
        """A panel on the page. `state` goes out, `ask` comes in, `problem` is what went wrong;
        `answered` counts the wishes that were followed or refused."""

        state = traitlets.Dict().tag(sync=True)
        ask = traitlets.Dict().tag(sync=True)
        problem = traitlets.Unicode("").tag(sync=True)
        answered = traitlets.Int(0).tag(sync=True)

        def __init__(self, panel: Panel) -> None:
            self.panel = panel
            super().__init__(state=panel.state())
            self.observe(self._asked, "ask")

        def _asked(self, change: Any) -> None:
            self.answer({k: v for k, v in change["new"].items() if k != "serial"})
            self.answered += 1

        def answer(self, request: Mapping[str, Any]) -> None:
            """What a click sends: the panel follows, or says why not."""
            try:
                self.panel.answer(request)
            except TileError as error:
                self.problem = str(error)
                return
            self.problem = ""
            self.state = self.panel.state()

        def _repr_mimebundle_(self, **kwargs: Any) -> Any:
            found: Any = super()._repr_mimebundle_(**kwargs)  # pyright: ignore
            return with_twins(found, self.panel)

    return PanelWidget


LARGEST = 300_000
"""Bytes that a picture in an output may have."""


def static_bundle(panel: Panel) -> dict[str, str]:
    """Text and SVG of a panel's twins, of as many as LARGEST allows: what stays when the kernel is
    gone."""
    twins = panel.twins()
    bundle = {"text/plain": "\n".join(view.to_text() for view in twins)}
    pictures = [view.to_svg() for view in twins]
    while len(pictures) > 1 and sum(len(p.encode()) + 300 for p in pictures) > LARGEST:
        pictures.pop()
    return {**bundle, "image/svg+xml": stacked(pictures)} if pictures else bundle


def with_twins(found: Any, panel: Panel) -> Any:
    """What a widget library puts on the page (data, or data with metadata), with the static forms
    beside it."""
    parts = cast("tuple[Any, ...]", found if isinstance(found, tuple) else (found or {},))
    bundle = {**parts[0], **static_bundle(panel)}
    return (bundle, *parts[1:]) if isinstance(found, tuple) else bundle


@cache
def _class_for(name: str) -> Any:
    base = _widget_class()
    return type(f"{name.title()}Widget", (base,), {"_esm": script(name), "_css": style()})


def host(panel: Panel) -> Any:
    """The widget of a panel, to be displayed by a notebook."""
    return _class_for(panel.script)(panel)
