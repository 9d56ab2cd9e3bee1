"""A page with nothing but one widget: no notebook, a strict content security policy, a stub model.

What VS Code's renderer, Colab's output frames and nbconvert's HTML have in common with JupyterLab
is the module protocol of anywidget, and that is all that this page offers. `Bare.show` loads a
panel's module from a blob, as anywidget does, and answers its wishes from Python.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.browser.conftest import CHROMIUM, FLAGS
from tilelab.errors import TileError
from tilelab.widgets.host import script, style
from tilelab.widgets.panel import Panel

ADDRESS = "http://tilelab.test/"
POLICY = (
    "default-src 'none'; script-src 'self' blob:; style-src 'unsafe-inline'; "
    "connect-src 'none'; font-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'"
)
"""No eval, no inline script, nothing from elsewhere. anywidget puts styles inline everywhere."""

# The page's own script: it keeps a list of everything that a widget must not touch.
LOADER = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.violatedDirective}: ${event.blockedURI}`));
for (const name of ["localStorage", "sessionStorage", "indexedDB"])
  Object.defineProperty(window, name, { get() {
    window.violations.push(name);
    throw new DOMException("no storage here", "SecurityError");
  } });

// The members that anywidget's front-end module protocol promises, and no other.
const PROMISED = ["get", "set", "on", "off", "save_changes", "send", "widget_manager"];

function makeModel(state, answer, comm) {
  const data = { state, ask: {}, problem: "", answered: 0 }, listeners = {};
  const model = {
    get: (name) => data[name],
    set: (name, value) => { data[name] = value; },
    on: (name, call) => (listeners[name] ??= new Set()).add(call),
    off: (name, call) => {
      if (!name) for (const key of Object.keys(listeners)) delete listeners[key];
      else if (!call) delete listeners[name];
      else listeners[name]?.delete(call);
    },
    save_changes: () => {
      if (comm === "none") throw new Error("no comm");
      if (comm === "silent") return;
      answer(JSON.stringify(data.ask)).then((text) => {
        for (const [name, value] of Object.entries(JSON.parse(text))) {
          if (JSON.stringify(data[name]) === JSON.stringify(value)) continue;
          data[name] = value;
          for (const call of listeners[`change:${name}`] ?? []) call();
        }
      });
    },
    send: () => { throw new Error("no custom messages here"); },
    widget_manager: {},
  };
  model.count = () => Object.values(listeners).reduce((n, set) => n + set.size, 0);
  window.model = model;
  return new Proxy(model, { get(target, name) {
    if (!PROMISED.includes(name)) window.violations.push(`model.${String(name)}`);
    return target[name];
  } });
}

window.start = async ({ esm, css, state, comm, protocol }) => {
  const sheet = document.createElement("style");
  sheet.textContent = css;
  document.head.append(sheet);
  const model = makeModel(state, window.answer, comm);
  const url = URL.createObjectURL(new Blob([esm], { type: "text/javascript" }));
  const module = await import(url);
  URL.revokeObjectURL(url);
  const widget = typeof module.default === "function" ? await module.default() : module.default;
  const el = document.createElement("div");
  document.body.replaceChildren(el);
  const began = performance.now();
  if (protocol === "signal") {  // anywidget 0.10 and later: an abort signal ends a view
    const ending = new AbortController();
    await widget.initialize?.({ model, signal: ending.signal });
    const cleanup = await widget.render({ model, el, signal: ending.signal });
    window.end = () => { ending.abort(); cleanup?.(); };
  } else {  // anywidget 0.9: a function that is called at the end
    await widget.initialize?.({ model });
    window.end = (await widget.render({ model, el })) ?? (() => {});
  }
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - began;
};
"""


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
def bare_page(width: int = 1280, height: int = 900, scheme: Any = "light") -> Iterator[Bare]:
    """A fresh browser with the bare page; nothing outside of it can be reached."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
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
        route.fulfill(body=LOADER, content_type="text/javascript")
    else:
        route.abort()
