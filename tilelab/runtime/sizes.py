"""Dynamic sizes of a call, solved from the shapes and strides of its tensors.

Hides which equation gives which size: a size alone on an axis first, then linear equations with
one unknown left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilelab.errors import TileValueError
from tilelab.ir import Expr, ScalarParam, TensorParam, Var
from tilelab.ir.simplify import linear
from tilelab.runtime.evaluate import free_variables, function_of, python_text
from tilelab.runtime.tensors import TensorFacts


@dataclass(frozen=True, eq=False)
class _Extent:
    """One symbolic axis (or stride of an axis) of an input."""

    position: int
    axis: int
    what: str  # "shape" or "strides"
    param: str
    extent: Expr
    scale: int = 1  # elements for one of the tensor's units, along and across packed rows


@dataclass(frozen=True, eq=False)
class _Equation:
    """`coefficient * unknown + rest(knowns) = axis of a tensor`."""

    at: _Extent
    unknown: int  # index of the size
    coefficient: int
    rest: Callable[..., tuple[Any, ...]]

    def value(self, facts: Sequence[TensorFacts | None]) -> int | None:
        """What the axis is in this call; None when it says nothing: a tensor that is not passed,
        the stride of an axis with one element or of an empty tensor."""
        fact, axis = facts[self.at.position], self.at.axis
        if fact is None:
            return None
        if self.at.what == "shape":
            return fact.shape[axis] * self.at.scale
        known = fact.shape[axis] > 1 and 0 not in fact.shape
        return fact.strides[axis] * self.at.scale if known else None

    @property
    def place(self) -> str:
        word = "axis" if self.at.what == "shape" else "the stride of axis"
        return f"{word} {self.at.axis} of {self.at.param}"


class SizeSolver:
    """Finds the sizes of one signature; planned once, run at each new call signature."""

    def __init__(
        self,
        kernel: str,
        params: Sequence[TensorParam | ScalarParam],
        sizes: Sequence[Var],
        inputs: Sequence[int],
    ) -> None:
        self._kernel = kernel
        self._params = params
        self._sizes = sizes
        self._scalars = [p.var for p in params if isinstance(p, ScalarParam)]
        self._plan = self._order(inputs)

    @staticmethod
    def text(e: Expr | int) -> str:
        """An extent in the names the user gave: "2*n", not its generated form."""
        if not isinstance(e, Expr):
            return str(e)
        names = {id(v): v.name for v in free_variables(e)}
        text = python_text(e, names)
        return text[1:-1] if text.startswith("(") and text.endswith(")") else text

    def solve(self, facts: Sequence[TensorFacts | None], values: Sequence[Any]) -> tuple[int, ...]:
        """The value of every size. TileValueError (TL1616) when tensors disagree on one."""
        scalars = [values[i] for i, p in enumerate(self._params) if isinstance(p, ScalarParam)]
        found: list[int] = [0] * len(self._sizes)
        source: list[_Equation | None] = [None] * len(self._sizes)
        for equation in self._plan:
            got = equation.value(facts)
            if got is None:
                continue
            value = self._value(equation, got, (*found, *scalars))
            known = source[equation.unknown]
            if known is None:
                found[equation.unknown], source[equation.unknown] = value, equation
            elif value != found[equation.unknown]:
                raise self._disagree(equation, value, known, found[equation.unknown])
        return tuple(found)

    def _value(self, equation: _Equation, got: int, numbers: tuple[Any, ...]) -> int:
        rest = got - equation.rest(*numbers)[0]
        size = self._sizes[equation.unknown]
        if rest % equation.coefficient:
            raise TileValueError(
                f"{equation.place} is {got}: no whole number {size.name} gives that for "
                f"{self._kernel}",
                code="TL1616", hint=f"pass a tensor whose {equation.place} fits the declaration",
            )  # fmt: skip
        value = rest // equation.coefficient
        if size.dtype.bits <= 32 and value >= 1 << 31:
            raise TileValueError(
                f"{size.name} is {value}, from {equation.place}: it does not fit {size.dtype}",
                code="TL1620", hint=f'declare it as T.dynamic("{size.name}", "int64")',
            )  # fmt: skip
        return value

    def _disagree(
        self, equation: _Equation, value: int, known: _Equation, first: int
    ) -> TileValueError:
        name = self._sizes[equation.unknown].name
        return TileValueError(
            f"the arguments of {self._kernel} disagree on {name}: it is {first} from "
            f"{known.place}, and {value} from {equation.place}",
            code="TL1616", hint=f"pass tensors with one {name}",
        )  # fmt: skip

    # ---- planning ----------------------------------------------------------------------------

    def _order(self, inputs: Sequence[int]) -> list[_Equation]:
        """Equations in an order in which each has at most one size not found before."""
        index = {id(v): i for i, v in enumerate(self._sizes)}
        known: set[int] = set()
        plan: list[_Equation] = []
        waiting = self._extents(inputs)
        for make in (_alone, self._linear):
            progress = True
            while progress:
                made = [(entry, make(entry, index, known)) for entry in waiting]
                ready = next((e for _, e in made if e is not None), None)
                progress = ready is not None
                if ready is not None:
                    plan.append(ready)
                    known.add(id(self._sizes[ready.unknown]))
                    waiting = [entry for entry in waiting if entry is not ready.at]
        lost = [v.name for v in self._sizes if id(v) not in known]
        if lost:
            raise TileValueError(
                f"the size {lost[0]} of {self._kernel} cannot be found from the arguments",
                code="TL1622",
                hint=f"use {lost[0]} alone as an axis of an input, or pass it as a number",
            )
        return plan

    def _extents(self, inputs: Sequence[int]) -> list[_Extent]:
        found: list[_Extent] = []
        for what in ("shape", "strides"):
            for position in inputs:
                param = self._params[position]
                if not isinstance(param, TensorParam):
                    continue
                declared = param.buffer.root
                shown = declared.shape if what == "shape" else declared.strides
                for axis, extent in enumerate(shown or ()):
                    if isinstance(extent, Expr):
                        along = (what == "shape") == (axis == declared.rank - 1)
                        scale = declared.dtype.per_byte if along else 1
                        found.append(_Extent(position, axis, what, param.name, extent, scale))
        return found

    def _linear(self, at: _Extent, index: dict[int, int], known: set[int]) -> _Equation | None:
        """`2*n + m` once every size but one is known, when that one appears linearly."""
        variables = free_variables(at.extent)
        unknowns = [v for v in variables if id(v) in index and id(v) not in known]
        if len(unknowns) != 1:
            return None
        unknown = unknowns[0]
        terms, _ = linear(at.extent)
        term = terms.get(unknown.key)
        others = [t for key, (t, _) in terms.items() if key != unknown.key]
        if term is None or any(unknown is v for t in others for v in free_variables(t)):
            return None
        rest = function_of((at.extent - unknown * term[1],), (*self._sizes, *self._scalars))
        return _Equation(at, index[id(unknown)], term[1], rest)


def _alone(at: _Extent, index: dict[int, int], known: set[int]) -> _Equation | None:
    """An axis that is one size and nothing else (also a size found before: tensors must agree)."""
    del known
    if id(at.extent) not in index:
        return None
    return _Equation(at, index[id(at.extent)], 1, function_of((0,), ()))
