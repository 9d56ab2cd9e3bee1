"""Functions that the program brings itself (CUDA text), and bit-wise conversion.

A function of the program has a meaning in the simulator only when a Python twin is registered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelab.calls import answer_all
from tilelab.dtypes import DType
from tilelab.errors import TileNotSupported
from tilelab.thread.intrinsic import Array, Intrinsic, Machine, Param, Role, recorded
from tilelab.thread.intrinsics.helpers import INLINE

_TWINS: dict[str, Callable[..., Any]] = {}


@dataclass(frozen=True)
class ExternPointer:
    """What a Python twin gets for a pointer: consecutive elements can be read and written.

    Values are arrays (count, ..., blocks, lanes): every thread of every block at once.
    """

    machine: Machine
    place: Any

    def load(self, count: int = 1) -> Array:
        """The first `count` elements as axis 0."""
        return self.machine.load(self.place, count)

    def store(self, values: Array) -> None:
        """Write axis 0 of `values` to consecutive elements."""
        self.machine.store(self.place, values)


def register_extern(name: str, twin: Callable[..., Any]) -> None:
    """Give the C function `name` a meaning in the simulator: `twin(*args)` gets numbers or arrays
    for values, an ExternPointer for each pointer, and returns the function's value."""
    _TWINS[name] = twin


@recorded
def extern(name: str, roles: tuple[Role, ...]) -> Intrinsic:
    """A call of the C function `name`; `roles` says what it does with each argument."""
    names = [f"a{i}" for i in range(len(roles))]
    operands = tuple(Param(n, role) for n, role in zip(names, roles, strict=True))

    def meaning(m: Machine, *args: Any) -> Any:
        twin = _TWINS.get(name)
        if twin is None:
            raise TileNotSupported(
                f"the program calls the C function {name}, whose meaning the simulator cannot know",
                code="TL1761",
                hint=f"run on a GPU, or tilelab.register_extern({name!r}, python_function)",
            )
        given = zip(roles, args, strict=True)
        return twin(*(a if role == "value" else ExternPointer(m, a) for role, a in given))

    call = f"{name}(" + ", ".join("{" + n + "}" for n in names) + ")"
    return Intrinsic(f"extern_{name}", operands, call, "", meaning, cost="special")


@recorded
def reinterpret(source: DType, to: DType) -> Intrinsic:
    """The same bits as a value of another type of the same width."""
    text = f"""
template <typename To, typename From> {INLINE} To reinterpret(From value) {{
  To bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}}"""

    def meaning(m: Machine, value: Array) -> Array:
        array = np.ascontiguousarray(m.full(value).astype(source.numpy))
        return array.view(to.numpy)

    headers = tuple(d.header for d in (source, to) if d.header)
    call = f"tl::reinterpret<{to.cuda}>({{value}})"
    return Intrinsic(
        f"reinterpret_{source.name}_{to.name}", (Param("value", "value"),), call, text, meaning,
        includes=headers, source="C++ standard, bit_cast",
    )  # fmt: skip


answer_all(globals(), ("register_extern",), "tilelab")
