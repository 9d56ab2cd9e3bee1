"""JupyterLab in a real browser: one server, one notebook of widgets, one page for a module's tests.

For a module, not for the session: Playwright runs once in a process at a time, and other modules
open pages of their own."""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tilelab.widgets.bare import FLAGS, chromium

expect = pytest.importorskip("playwright.sync_api").expect
pytest.importorskip("jupyterlab")
CHROMIUM = chromium()
ROOT = Path(__file__).parents[2]

PRELUDE = """%load_ext tilelab
import tilelab, tilelab.widgets as widgets
from tilelab import layout
from tests.kernels import gemm
plain = {"tl.plain_pipeline": True}
kernel = tilelab.compile(gemm(256, 256, 512), target="sm_90a", out_idx=-1, pass_configs=plain)
fast = tilelab.compile(gemm(128, 128, 128), target="sm_90a", out_idx=-1)
import torch, tilelab.language as T
a, b = torch.ones(256, 512).half(), torch.ones(512, 256).half()
@T.prim_func
def transpose(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128) as bx:
        s = T.alloc_shared((64, 64), "float32")
        T.annotate_layout({s: layout.row_major((64, 64), 32)})
        for i, j in T.Parallel(64, 64):
            s[i, j] = A[i, j]
        for i, j in T.Parallel(64, 64):
            B[i, j] = s[j, i]
copied = tilelab.compile(transpose, target="sm_90a", out_idx=-1)
def listening():
    import os, pathlib
    own = {os.readlink(f) for f in pathlib.Path("/proc/self/fd").iterdir() if f.is_symlink()}
    rows = [l.split() for t in ("tcp", "tcp6") if os.path.exists(f"/proc/self/net/{t}")
            for l in open(f"/proc/self/net/{t}").readlines()[1:]]
    return sorted(r[1] for r in rows if r[3] == "0A" and f"socket:[{r[9]}]" in own)
sockets = listening()
"""
CELLS = {
    "layouts": "widgets.layouts(kernel)",
    "by_hand": "widgets.layouts(layout.row_major((64, 64), 16), layout.swizzled((64, 64), 16))",
    "timeline": "widgets.timeline(kernel)",
    "budget": "widgets.budget(kernel)",
    "passes": "widgets.passes(kernel)",
    "accesses": "widgets.accesses(copied, torch.ones(64, 64))",
    "player": "widgets.player(kernel, a, b)",
    "roofline": "widgets.roofline(kernel, a, b)",
    "compare": "widgets.compare(fast)",
}
LAST = "print('same sockets:', sockets == listening())"


def _notebook(folder: Path) -> None:
    sources = [PRELUDE, *CELLS.values(), LAST]
    cells = [
        {"cell_type": "code", "id": f"c{k}", "metadata": {}, "outputs": [],
         "execution_count": None, "source": source}
        for k, source in enumerate(sources)
    ]  # fmt: skip
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    text = json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})
    (folder / "widgets.ipynb").write_text(text, "utf-8")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the notebook in a JupyterLab of its own."""
    with served(tmp_path_factory.mktemp("lab"), "jupyterlab") as (address, token):
        yield f"{address}/lab/tree/widgets.ipynb?reset&token={token}"


@contextmanager
def served(folder: Path, module: str) -> Generator[tuple[str, str]]:
    """The address and the token of a server of `module` with the notebook of widgets."""
    if not CHROMIUM:
        pytest.skip("no chromium is installed (apt-get install chromium)")
    _notebook(folder)
    quiet = folder / "config/lab/user-settings/@jupyterlab/apputils-extension"
    quiet.mkdir(parents=True)
    (quiet / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}', "utf-8")
    port, token = _free_port(), secrets.token_hex(16)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
    }
    command = [
        sys.executable, "-m", module, "--no-browser", "--ip=127.0.0.1", f"--port={port}",
        f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}", "--allow-root",
       ]  # fmt: skip
    log = (folder / "log.txt").open("w")
    server = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{address}/api?token={token}", server, folder / "log.txt")
        yield address, token
    finally:
        server.terminate()
        server.wait(30)
        log.close()


def _wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        if server.poll() is not None:
            break
        try:
            urllib.request.urlopen(address, timeout=2).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"the server did not start:\n{log.read_text()[-3000:]}")


@pytest.fixture(scope="module")
def page(lab: str) -> Iterator[Any]:
    """The notebook with every cell run and every widget painted."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = offline_page(browser)
        page.goto(lab)
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
        page.wait_for_selector("text=Python 3 (ipykernel) | Idle", timeout=60_000)
        run_all(page)
        yield page
        browser.close()


def offline_page(browser: Any) -> Any:
    """A page to which nothing may come from elsewhere: widgets work offline."""
    context = browser.new_context(viewport={"width": 1500, "height": 1200})
    outside: list[str] = []
    context.route(
        lambda url: not url.startswith(("http://127.0.0.1", "ws://127.0.0.1", "data:", "blob:")),
        lambda route: (outside.append(route.request.url), route.abort())[1],
    )
    page = context.new_page()
    page.outside = outside
    return page


def run_all(page: Any) -> None:
    """Run every cell, and wait until every widget is painted."""
    for _ in range(6):  # a front end that asks for a kernel first forgets what was to be run
        page.evaluate("document.querySelector('.jp-Dialog .jp-mod-accept')?.click()")
        page.keyboard.press("Escape")
        page.click("text=Run >> nth=0")
        page.click("text=Run All Cells >> nth=0")
        running = page.locator(".jp-InputPrompt", has_text=re.compile(r"\[(\*|\d+)\]"))
        with suppress(AssertionError):
            expect(running.first).to_be_visible(timeout=20_000)
            break
    page.wait_for_function(
        """n => {
          document.querySelector('.jp-Dialog .jp-mod-accept')?.click();
          return document.querySelectorAll('.tilelab[data-painted]').length >= n;
        }""",
        arg=len(CELLS), timeout=120_000, polling=200,
    )  # fmt: skip


@pytest.fixture
def widget(page: Any, request: pytest.FixtureRequest) -> Any:
    """The widget of the cell that the test's module or mark names."""
    name = request.param
    return page.locator(".tilelab").nth(list(CELLS).index(name))
