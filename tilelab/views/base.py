"""What every view is: frozen plain data with JSON, a text twin and a picture.

Hides how data classes become JSON and come back, so that pictures can be kept beside a cubin.
"""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

_KINDS: dict[str, type[View]] = {}
ViewT = TypeVar("ViewT", bound="type[View]")


@dataclasses.dataclass(frozen=True)
class View:
    """A picture's data. Subclasses add fields (numbers, strings, tuples, data classes) only."""

    kind: ClassVar[str] = ""
    title: str

    def to_json(self) -> str:
        """The data as JSON text; `from_json` makes an equal view of it."""
        return json.dumps({"kind": self.kind, **dataclasses.asdict(self)}, separators=(",", ":"))

    def to_text(self) -> str:
        """The same facts for a terminal or a screen reader."""
        raise NotImplementedError

    def to_svg(self) -> str:
        """A self-contained picture."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.to_text()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.to_text(), "image/svg+xml": self.to_svg()}


def register(cls: ViewT) -> ViewT:
    """Make a view class known to `from_json` by its `kind`."""
    _KINDS[cls.kind] = cls
    return cls


def from_json(text: str) -> View:
    """The view that `to_json` wrote. KeyError for a kind that is not known."""
    data = json.loads(text)
    return _decode_class(_KINDS[data.pop("kind")], data)


def _decode_class(kind: type[Any], data: dict[str, Any]) -> Any:
    hints = get_type_hints(kind)
    fields = [f.name for f in dataclasses.fields(kind)]
    return kind(**{name: _decode(hints[name], data[name]) for name in fields})


def _decode(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    if dataclasses.is_dataclass(hint):
        return _decode_class(hint, value)  # type: ignore[arg-type]
    decoder = _DECODERS.get(get_origin(hint))
    return decoder(get_args(hint), value) if decoder else value


def _decode_tuple(args: tuple[Any, ...], value: Sequence[Any]) -> tuple[Any, ...]:
    if args[-1] is not Ellipsis:
        return tuple(_decode(a, v) for a, v in zip(args, value, strict=True))
    if args[0] in (int, float, str):
        return tuple(value)
    return tuple(_decode(args[0], v) for v in value)


def _decode_union(args: tuple[Any, ...], value: Any) -> Any:
    return _decode(next(a for a in args if a is not types.NoneType), value)


_DECODERS: dict[Any, Callable[[tuple[Any, ...], Any], Any]] = {
    tuple: _decode_tuple,
    types.UnionType: _decode_union,
}
