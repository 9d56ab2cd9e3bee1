"""A shell with the extension loaded, and what it published."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("IPython")


@pytest.fixture
def shell() -> Iterator[Any]:
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell

    InteractiveShell.clear_instance()
    made = InteractiveShell.instance(colors="nocolor")
    made.display_pub = CapturingDisplayPublisher()
    made.run_line_magic("load_ext", "tilelab")
    yield made
    made.run_line_magic("unload_ext", "tilelab")
    InteractiveShell.clear_instance()
