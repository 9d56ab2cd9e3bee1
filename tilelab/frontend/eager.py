"""Eager functions: which parameters are tensors, what their shapes say, and the trace itself.

Phase 1 runs the body up to its first kernel with T.const as variables, to learn the tensors'
shapes; phase 2 runs it again with the constants' values.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from tilelab.errors import TileRuntimeError, TileValueError
from tilelab.frontend.called import resolve
from tilelab.frontend.function import assemble, collect_outputs, run_traced
from tilelab.frontend.mutate import plain_function
from tilelab.frontend.params import (
    Param,
    annotations_of,
    called,
    is_runtime,
    make_param,
    namespace,
    settled,
)
from tilelab.frontend.poison import Poison
from tilelab.frontend.session import Session, SignatureDone
from tilelab.frontend.source import find_source
from tilelab.frontend.types import PointerParam, TensorType
from tilelab.ir import Buffer, Function, ScalarParam, TensorParam, Var


@dataclass(frozen=True)
class ConstMatch:
    """Where the value of a T.const comes from: an axis of a tensor argument."""

    name: str
    parameter: str
    axis: int
    is_stride: bool
    scale: int = 1  # elements for one unit of the tensor that is passed, where they are packed


@dataclass(frozen=True)
class EagerSignature:
    """What phase 1 found: the constants, each with its place in an argument."""

    matches: tuple[ConstMatch, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the constants."""
        return tuple(m.name for m in self.matches)


class EagerFunction:
    """An eager function, classified at decoration. `runtime` names its runtime parameters."""

    def __init__(self, fn: Any, outer: Mapping[str, Any] | None = None) -> None:
        self.fn: FunctionType = plain_function(fn, "@tilelang.jit")
        self.signature = inspect.signature(self.fn)
        names = self.signature.parameters
        found = annotations_of(self.fn, outer)
        self.annotations = {n: called(a) for n, a in found.items() if n in names}
        declared = _declared(self.fn, frozenset(names), outer)
        self.annotated = frozenset(declared)
        self.runtime = tuple(
            n for n in names if n in declared or is_runtime(self.annotations.get(n))
        )

    def learn(self, arguments: Mapping[str, Any]) -> EagerSignature:
        """Phase 1. `arguments` are the compile-time arguments. Ends where all that it is for is
        known; raises what goes wrong before."""
        session = Session("signature")
        try:
            self._run(session, arguments)
        except SignatureDone:
            pass
        except Exception:
            # With every tensor declared, phase 2 knows more: it does with numbers what cannot be
            # done with variables (`if M > 64:`, min(M, 4)), or says what is wrong.
            if not set(self.runtime) <= {*session.buffers, *session.scalars}:
                raise
        buffers = {n: session.buffers[n] for n in self.runtime if n in session.buffers}
        matches = tuple(_match(name, var, buffers) for name, var in session.consts.items())
        return EagerSignature(matches)

    def trace(self, arguments: Mapping[str, Any], consts: Mapping[str, int]) -> Function:
        """Phase 2: the IR for these compile-time arguments and constants."""
        session = Session("eager", dict(consts))
        returned = self._run(session, arguments)
        params = [self._param(session, name) for name in self.runtime]
        collect_outputs(session, returned)
        return assemble(session, self.fn, params)

    def _run(self, session: Session, arguments: Mapping[str, Any]) -> Any:
        values = dict(arguments)
        for name in self.runtime:
            values[name] = self._initial(session, name)
        return run_traced(session, self.fn, values, self.annotated)

    def _initial(self, session: Session, name: str) -> Any:
        """What the body gets for a runtime parameter before its annotation statement runs."""
        annotation = self.annotations.get(name)
        if isinstance(annotation, TensorType):
            return session.declare(name, annotation)
        if is_runtime(annotation):
            param = make_param(name, annotation)
            if isinstance(param, PointerParam):
                return param
            assert isinstance(param, ScalarParam)
            session.scalars[name] = param
            return param.var
        hint = f"write {name}: T.Tensor[...] first"
        return Poison(name, "is used before its type is declared", hint, "TL1425", None)

    def _param(self, session: Session, name: str) -> Param:
        if name in session.scalars:
            return session.scalars[name]
        if name not in session.buffers:
            return settled(PointerParam(name), session.buffers)
        return TensorParam(session.buffers[name])


def _match(name: str, var: Var, buffers: Mapping[str, Buffer]) -> ConstMatch:
    """The first tensor that has the constant directly as an extent or a stride."""
    for parameter, buffer in buffers.items():
        for is_stride, dims in ((False, buffer.shape), (True, buffer.strides or ())):
            for axis, dim in enumerate(dims):
                if dim is var:
                    along = is_stride == (axis < buffer.rank - 1)
                    scale = buffer.dtype.per_byte if along else 1
                    return ConstMatch(name, parameter, axis, is_stride, scale)
    raise no_match(name)


def no_match(name: str) -> TileRuntimeError:
    """The error for a constant that no tensor tells the value of."""
    return TileRuntimeError(
        f"Constexpr variable `{name}` is not used in any buffer shape or stride. "
        "At least one DIRECT usage is needed to find its value",
        code="TL1485",
        hint=f"use {name} alone as an extent of a tensor parameter, or pass it as an argument",
    )


def const_value(match: ConstMatch, arguments: Mapping[str, Any], extra: Mapping[str, Any]) -> int:
    """The value of a constant for a call: a keyword of its name, else the tensor's extent."""
    if extra and match.name in extra:
        return int(extra[match.name])
    tensor = arguments.get(match.parameter)
    if tensor is None:
        raise TileValueError(
            f"Cannot find value for constexpr variable `{match.name}`: {match.parameter} is not "
            "given; provide it as a keyword argument",
            code="TL1486",
            hint=f"pass the tensor {match.parameter}, or the number: {match.name}=1024 in the "
            "call, or after %%tilelang in a notebook cell",
        )
    dims = _strides(tensor) if match.is_stride else tensor.shape
    if match.axis >= len(dims):
        raise TileValueError(
            f"{match.parameter} has {len(dims)} axes, and axis {match.axis} determines "
            f"{match.name}",
            code="TL1487",
            hint="pass a tensor of the declared rank",
        )
    value = dims[match.axis]
    scale = 1 if isinstance(tensor, TensorType) else match.scale
    return (value if type(value) is int else int(value)) * scale


def _strides(tensor: Any) -> tuple[Any, ...]:
    if isinstance(tensor, TensorType):
        return tensor.strides or tensor.buffer("placeholder").effective_strides()
    if hasattr(tensor, "stride"):  # torch
        return tuple(tensor.stride())
    return tuple(s // tensor.itemsize for s in tensor.strides)


# ---- what the text says ---------------------------------------------------------------------


def _declared(fn: FunctionType, names: frozenset[str], outer: Mapping[str, Any] | None) -> set[str]:
    """Parameters that a bare annotation statement of the body declares as tensors."""
    found: set[str] = set()
    known = namespace(fn, outer)
    for statement in find_source(fn).node.body:
        if not isinstance(statement, ast.AnnAssign) or statement.value is not None:
            continue
        target = statement.target
        if isinstance(target, ast.Name) and target.id in names:
            root = resolve(_root(statement.annotation), known)
            if getattr(root, "declares_tensor", False):
                found.add(target.id)
    return found


def _root(node: ast.expr) -> ast.expr:
    """`T.Tensor` of `T.Tensor[...]` and `T.Tensor(...)`."""
    if isinstance(node, ast.Subscript):
        return _root(node.value)
    return _root(node.func) if isinstance(node, ast.Call) else node


def style_of(fn: FunctionType, prim_func: Any, eager_only: tuple[Any, ...]) -> str:
    """ "lazy" or "eager" where the text decides it, else "".

    Lazy: a nested function under `prim_func`. Eager: a direct call of one of `eager_only`
    (T.const, T.Kernel), alone or in a `with`.
    """
    known = namespace(fn)
    for statement in find_source(fn).node.body:
        if isinstance(statement, ast.FunctionDef):
            roots = [resolve(_root(d), known) for d in statement.decorator_list]
            if any(root is prim_func for root in roots):
                return "lazy"
    for statement in find_source(fn).node.body:
        for call in _direct_calls(statement):
            if any(resolve(call.func, known) is f for f in eager_only):
                return "eager"
    return ""


def _direct_calls(statement: ast.stmt) -> list[ast.Call]:
    if isinstance(statement, ast.With):
        return [i.context_expr for i in statement.items if isinstance(i.context_expr, ast.Call)]
    value = getattr(statement, "value", None)
    return [value] if isinstance(value, ast.Call) else []
