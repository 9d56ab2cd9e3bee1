"""Names of TileLang's host side that cannot act here: they say so when they are used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from tilelab.errors import TileNameError, TileNotSupported

ABSENT = "TL1654"


def not_here(name: str, why: str, hint: str) -> TileNotSupported:
    """The error for something of TileLang that tilelab cannot do (TL1654)."""
    return TileNotSupported(f"{name} cannot act here: {why}", code=ABSENT, hint=hint)


def absent(name: str, why: str, hint: str) -> Callable[..., NoReturn]:
    """A function that says, when called, why it is not there."""

    def refuse(*_args: Any, **_kwargs: Any) -> NoReturn:
        raise not_here(name, why, hint)

    refuse.__name__ = refuse.__qualname__ = name.rpartition(".")[2]
    refuse.__doc__ = f"Raises TileNotSupported (TL1654): {why}."
    return refuse


def missing_name(module: str, name: str, known: Mapping[str, Any], why: str) -> AttributeError:
    """The error for a name that a small stand-in module lacks: an AttributeError for Python's own
    look-ups, and for others TileNameError (TL1654) with the names that are there."""
    if name.startswith("__"):
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    names = ", ".join(sorted(n for n in known if not n.startswith("_")))
    return TileNameError(f"{module}.{name} cannot act here: {why}", code=ABSENT,
                         hint=f"there are: {names}")  # fmt: skip
