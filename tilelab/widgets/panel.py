"""What a widget is before it has a browser: plain state, answers to wishes, and static twins.

Panels import no widget library, so their logic is tested without one; `host.py` shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from tilelab.errors import TileValueError
from tilelab.views import View


class Panel(Protocol):
    """One interactive picture. `script` names its file in `static/`."""

    script: ClassVar[str]

    def state(self) -> dict[str, Any]:
        """JSON-able data that the script draws; always with a "title"."""
        ...

    def answer(self, request: Mapping[str, Any]) -> None:
        """Follow a reader's wish. A TileError is shown to the reader, and nothing changes."""
        ...

    def twins(self) -> tuple[View, ...]:
        """The views that stand for it where no widget lives (GitHub, nbconvert, a terminal)."""
        ...


def wish(request: Mapping[str, Any], key: str, allowed: tuple[Any, ...]) -> Any:
    """A value of a request, which must be one of `allowed`; TileValueError (TL1711) otherwise."""
    value = request.get(key)
    if value not in allowed:
        raise TileValueError(
            f"{key}={value!r} cannot be shown",
            code="TL1711",
            hint="one of " + ", ".join(map(str, allowed)),
        )
    return value
