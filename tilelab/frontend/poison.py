"""Values that must not be used: names whose region is closed, or that got no value.

Hides the long list of operations that have to raise.
"""

from __future__ import annotations

from typing import Any, NoReturn

from tilelab.errors import Loc, TileRuntimeError


class Poison:
    """Stands for a name after its region closed; any use raises TileRuntimeError."""

    def __init__(self, name: str, why: str, hint: str, code: str, defined: Loc | None) -> None:
        self.__dict__.update(_name=name, _why=why, _hint=hint, _code=code, _defined=defined)

    def __getattr__(self, attribute: str) -> NoReturn:
        raise_poison(self)

    def __repr__(self) -> str:
        return f"<{self._name}: {self._why}>"


def raise_poison(value: Poison) -> NoReturn:
    """Raise the error that `value` stands for."""
    state = value.__dict__
    notes = [f"the region begins at {state['_defined']}"] if state["_defined"] else []
    raise TileRuntimeError(
        f"{state['_name']} {state['_why']}", code=state["_code"], hint=state["_hint"], notes=notes
    )


def _raise(self: Poison, *_args: Any, **_kwargs: Any) -> NoReturn:
    raise_poison(self)


_OPERATORS = (
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow and rand or "
    "ror xor rxor lshift rlshift rshift rrshift lt le gt ge eq ne neg pos invert abs bool index "
    "int float call iter len getitem setitem contains enter exit next"
)
for _operator in _OPERATORS.split():
    setattr(Poison, f"__{_operator}__", _raise)
Poison.__hash__ = object.__hash__  # type: ignore[method-assign]


def unassigned(name: str) -> Poison:
    """A name that no statement executed so far has assigned."""
    return Poison(
        name, "has no value here: the branch that assigns it was not traced",
        f"assign {name} on every path, or before the branch", "TL1411", None,
    )  # fmt: skip


def outside(name: str, loc: Loc | None) -> Poison:
    """A name bound in a region that is closed now."""
    return Poison(
        name, "is used outside its defining region",
        f"make it `{name} = T.alloc_var(dtype)` before the region to carry the value out",
        "TL1410", loc,
    )  # fmt: skip
