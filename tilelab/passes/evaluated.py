"""Integer expressions on numpy arrays, for passes that try out what a program computes.

Hides how each operator wraps in its type; the chip's meaning is `thread`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilelab.ir import Binary, Call, Cast, Const, Expr, Load, Var
from tilelab.thread.conversions import converted
from tilelab.thread.intrinsic import Array
from tilelab.thread.mathfn import math_fn

Leaf = Callable[[Any], Array | None]
"""A variable or an element read, as an array; None when it is not known."""


def evaluated(e: Expr, leaf: Leaf) -> Array | None:
    """An integer expression, element for element; None where a part of it is not known."""
    rule = _RULES.get(type(e))
    return rule(e, leaf) if rule is not None and e.dtype.is_int else None


def _of_leaf(e: Load | Var, leaf: Leaf) -> Array | None:
    return leaf(e)


def _of_const(e: Const, leaf: Leaf) -> Array:
    return np.asarray(e.value, e.dtype.numpy)


def _of_cast(e: Cast, leaf: Leaf) -> Array | None:
    inner = evaluated(e.a, leaf)
    return None if inner is None else converted(inner, e.dtype)


def _of_binary(e: Binary, leaf: Leaf) -> Array | None:
    a, b = evaluated(e.a, leaf), evaluated(e.b, leaf)
    rule = _OPERATORS.get(e.op)
    if a is None or b is None or rule is None:
        return None
    least = {"%": 1, "//": 1, "<<": 0, ">>": 0}.get(e.op)
    if least is not None and (b < least).any():
        return None
    return converted(rule(a.astype(np.int64), b.astype(np.int64)), e.dtype)


def _of_call(e: Call, leaf: Leaf) -> Array | None:
    args = [evaluated(a, leaf) for a in e.args]
    known = [a for a in args if a is not None]
    return math_fn(e.fn).value(e.dtype, known) if len(known) == len(args) else None


_OPERATORS: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "&": np.bitwise_and, "|": np.bitwise_or,
    "^": np.bitwise_xor, "<<": np.left_shift, ">>": np.right_shift, "%": np.mod,
    "//": np.floor_divide,
}  # fmt: skip
_RULES: dict[type[Expr], Callable[[Any, Leaf], Array | None]] = {
    Const: _of_const, Load: _of_leaf, Var: _of_leaf, Cast: _of_cast, Binary: _of_binary,
    Call: _of_call,
}  # fmt: skip
