"""A page with nothing but one widget: no notebook, a strict content security policy, a stub model.

What VS Code's renderer, Colab's output frames and nbconvert's HTML have in common with JupyterLab
is the module protocol of anywidget, and that is all that this page offers. `Bare.show` loads a
panel's module from a blob, as anywidget does, and answers its wishes from Python.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from tilelab.errors import TileError
from tilelab.widgets.host import STATIC, script, style
from tilelab.widgets.panel import Panel

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
ADDRESS = "http://tilelab.test/"
POLICY = (
    "default-src 'none'; script-src 'self' blob:; style-src 'unsafe-inline'; "
    "connect-src 'none'; font-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'"
)
"""No eval, no inline script, nothing from elsewhere. anywidget puts styles inline everywhere."""


def chromium() -> str:
    """The installed browser; an empty text for none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), "")


class Bare:
    """One browser page; `show` puts a panel on it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.panel: Panel | None = None
        page.expose_function("answer", self._answer)

    def _answer(self, text: str) -> str:
        assert self.panel is not None
        request = json.loads(text)
        problem = ""
        try:
            self.panel.answer({k: v for k, v in request.items() if k != "serial"})
        except TileError as error:
            problem = str(error)
        return json.dumps(
            {"problem": problem, "state": self.panel.state(), "answered": request["serial"]}
        )

    def show(self, panel: Panel, comm: str = "live", protocol: str = "signal") -> float:
        """Milliseconds from the call of `render` to the first paint.

        comm: "live", "silent" (a kernel that never answers) or "none" (sending fails).
        """
        self.panel = panel
        self.page.goto(ADDRESS)
        given = {
            "esm": script(panel.script), "css": style(), "state": panel.state(), "comm": comm,
            "protocol": protocol,
        }  # fmt: skip
        return float(self.page.evaluate("given => window.start(given)", given))

    @property
    def violations(self) -> list[str]:
        """What the widget touched that it must not."""
        return list(self.page.evaluate("window.violations"))


@contextmanager
def bare_page(width: int = 1280, height: int = 900, scheme: Any = "light") -> Generator[Bare]:
    """A fresh browser with the bare page; nothing outside of it can be reached."""
    from playwright.sync_api import sync_playwright  # lazy: a tool for tests and benchmarks

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=FLAGS)
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        context.route("**/*", _serve)
        try:
            yield Bare(context.new_page())
        finally:
            browser.close()


def _serve(route: Any) -> None:
    address = route.request.url
    if address == ADDRESS:
        text = (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>bare</title>'
            '<script src="/loader.js"></script></head><body></body></html>'
        )
        headers = {"content-security-policy": POLICY}
        route.fulfill(body=text, content_type="text/html", headers=headers)
    elif address == f"{ADDRESS}loader.js":
        route.fulfill(body=(STATIC / "bare.js").read_text("utf-8"), content_type="text/javascript")
    else:
        route.abort()
