"""What hosts that cannot be run here ask of a widget, as far as a test can hold it: VS Code and
Colab. docs/notebook.md says what was tried where."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("anywidget")
from ipywidgets.widgets.widget import _remove_buffers

from tilelab.layout import atoms
from tilelab.widgets import layout_panel
from tilelab.widgets.host import host, script, style

SCRIPTS = ("layouts", "timeline", "budget", "passes", "accesses", "player", "roofline", "compare")
JUPYTER = Path(sys.prefix) / "share" / "jupyter"
COLAB = """
import json, sys, types
output = types.ModuleType("google.colab.output")
asked = []
output.enable_custom_widget_manager = lambda *a: asked.append(a)
output._widgets = types.SimpleNamespace(_installed_url="https://colab.test/manager.js")
for name in ("google", "google.colab"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["google.colab.output"] = output
from tilelab.layout import atoms
from tilelab.widgets import layout_panel
from tilelab.widgets.host import host
data, metadata = host(layout_panel(atoms.mma_c()))._repr_mimebundle_()
print(json.dumps([len(asked), sorted(data), metadata]))
"""


def test_colab_is_asked_for_its_manager_of_custom_widgets() -> None:
    """Colab shows a custom widget only where its manager was asked for, and finds it by the
    output's metadata; the static twins stand beside it there too."""
    done = subprocess.run(
        [sys.executable, "-c", COLAB], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    asked, kinds, metadata = json.loads(done.stdout)
    assert asked >= 1
    widget = "application/vnd.jupyter.widget-view+json"
    assert kinds == [widget, "image/svg+xml", "text/plain"]
    assert metadata[widget]["colab"]["custom_widget_manager"]["url"]


@pytest.mark.parametrize("name", ["nbextensions", "labextensions"])
def test_the_loader_of_modules_lies_beside_the_kernel(name: str) -> None:
    """VS Code and Notebook look there before they ask a network for a widget's code."""
    assert any((JUPYTER / name / "anywidget").rglob("*.js"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_only_state_goes_over_the_comm(name: str) -> None:
    """VS Code carries messages from the renderer to the kernel through its extension's process:
    plain state survives that everywhere; custom messages and a manager of one's own do not."""
    assert not re.search(
        r"model\.send|msg:custom|widget_manager|navigator\.|window\.top", script(name)
    )


def test_state_is_plain_json_of_bounded_size() -> None:
    widget = host(
        layout_panel(atoms.wgmma_accumulator(256).repeat(4, 1))
    )  # the largest that is drawn
    state, paths, buffers = _remove_buffers(widget.get_state())
    assert not paths and not buffers
    assert len(json.dumps(state)) < 2_000_000


def test_height_follows_the_content() -> None:
    """Output frames are as high as what is in them: nothing may ask for a part of the window."""
    assert not re.search(r"\d(?:vh|vw|vmin|vmax)\b|position:\s*(?:fixed|sticky)", style())


def test_the_theme_is_read_from_every_host_it_is_told_by() -> None:
    for mark in (
        "jpThemeLight",
        "vscodeThemeKind",
        'getAttribute("theme")',
        "prefers-color-scheme",
    ):
        assert mark in script("layouts")
