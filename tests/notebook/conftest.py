"""A shell with the extension loaded, and what it published."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("IPython")

from tilelab.notebook import unload_ipython_extension


@pytest.fixture
def shell() -> Iterator[Any]:
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell

    InteractiveShell.clear_instance()
    made = InteractiveShell.instance(colors="nocolor")
    made.display_pub = CapturingDisplayPublisher()
    made.run_line_magic("load_ext", "tilelab")
    yield made
    unload_ipython_extension(made)
    InteractiveShell.clear_instance()
