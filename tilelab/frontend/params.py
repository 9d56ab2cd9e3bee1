"""Parameters of a traced function: annotations read, in whatever form Python keeps them.

Hides string annotations and names that only the annotation uses.
"""

from __future__ import annotations

import ast
import inspect
import typing
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from tilelab.dtypes import DType
from tilelab.errors import Loc, TileError, TileNameError, TileTypeError, TileValueError, shown
from tilelab.frontend.source import find_source
from tilelab.frontend.types import REF, PointerParam, PointerType, TensorType, plain_dtype
from tilelab.ir import Buffer, ScalarParam, TensorParam, Var

Param = TensorParam | ScalarParam
Declared = Param | PointerParam


def namespace(fn: FunctionType, outer: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Names that the text of `fn` can use: its globals, the locals of the function around it
    (`outer`, as far as they are known) and its closure."""
    names = {**fn.__globals__, **(outer or {})}
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return names


def annotations_of(fn: FunctionType, outer: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The evaluated annotations of a function's parameters."""
    found: dict[str, Any] = {}
    for name, value in fn.__annotations__.items():
        if name == "return":
            continue
        found[name] = _evaluate(name, value, fn, outer) if type(value) is str else value
    return found


def _evaluate(name: str, text: str, fn: FunctionType, outer: Mapping[str, Any] | None) -> Any:
    try:
        return eval(text, namespace(fn, outer))
    except NameError as error:
        raise TileNameError(
            f"the annotation of {name}, {text!r}, uses a name that is not known: {error}",
            code="TL1422",
            hint="remove `from __future__ import annotations`, or use the name in the body too",
        ) from error


def make_params(fn: FunctionType, outer: Mapping[str, Any] | None = None) -> list[Declared]:
    """The parameters of a @T.prim_func. TileValueError (TL1423) for one without annotation."""
    found = annotations_of(fn, outer)
    params: list[Declared] = []
    for parameter in inspect.signature(fn).parameters.values():
        name = parameter.name
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise TileTypeError(
                f"{name} is positional-only, which a kernel's parameters cannot be",
                code="TL1424",
                loc=parameter_loc(fn, name),
                hint="remove the / from the parameter list",
            )
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TileTypeError(
                f"{name} collects arguments, and a kernel has a fixed list of parameters",
                code="TL1424",
                loc=parameter_loc(fn, name),
                hint="name every tensor",
            )
        if name not in found:
            raise TileValueError(
                f"Argument {name} is not annotated",
                code="TL1423",
                loc=parameter_loc(fn, name),
                hint="a kernel is no method: define it in a function, which may take self"
                if name == "self"
                else f"write {name}: T.Tensor((M, N), dtype), or {name}: T.int32 for a number",
            )
        try:
            params.append(make_param(name, found[name]))
        except TileError as error:
            error.at(parameter_loc(fn, name))
            raise
    return params


def parameter_loc(fn: FunctionType, name: str) -> Loc | None:
    """Where the text of a function has a parameter; None where it has no text."""
    try:
        source = find_source(fn)
    except TileError:
        return None
    for node in ast.walk(source.node.args):
        if isinstance(node, ast.arg) and node.arg == name:
            end = (node.end_lineno or 0, node.end_col_offset or 0)
            return Loc(source.file, node.lineno, node.col_offset, *end, fn.__name__)
    return None


def make_param(name: str, annotation: Any) -> Declared:
    """The parameter that an annotation declares. TileTypeError (TL1421) when it declares none."""
    annotation = called(annotation)
    make = next((_PARAMS[k] for k in type(annotation).__mro__ if k in _PARAMS), None)
    if make is not None:
        return make(name, annotation)
    raise TileTypeError(
        f"the annotation of {name} is {shown(annotation)}, which is no parameter type",
        code="TL1421",
        hint=_instead(name, annotation),
    )


def _instead(name: str, annotation: Any) -> str:
    """What to write for an annotation of Python's, torch's or numpy's."""
    if annotation in (int, float, bool):
        scalar = {int: "T.int32", float: "T.float32", bool: "T.bool"}[annotation]
        return f"write {name}: {scalar}; the type of a scalar argument says its width"
    if isinstance(annotation, str):
        return f"write {name}: T.Tensor((M, N), {annotation!r}), with its shape"
    return f"write {name}: T.Tensor((M, N), dtype), or a scalar type such as T.int32"


_PARAMS: dict[type, Callable[[str, Any], Declared]] = {
    TensorType: lambda name, kind: TensorParam(kind.buffer(name)),
    PointerType: lambda name, kind: PointerParam(name),
    DType: lambda name, kind: ScalarParam(Var(name, plain_dtype(kind), role="scalar")),
}


def called(annotation: Any) -> Any:
    """A callable annotation (such as a bare T.ptr) gives its type when it is called."""
    declared = isinstance(annotation, TensorType | PointerType | DType) or annotation is REF
    hint = isinstance(annotation, type) or typing.get_origin(annotation) is not None
    if declared or hint or not callable(annotation):
        return annotation
    return annotation()


def is_runtime(annotation: Any) -> bool:
    """Whether an annotation declares a runtime parameter (rather than a compile-time argument)."""
    return isinstance(annotation, TensorType | PointerType | DType)


def value_of(param: Declared) -> Buffer | Var | PointerParam:
    """What the traced code gets for a parameter."""
    if isinstance(param, PointerParam):
        return param
    return param.buffer if isinstance(param, TensorParam) else param.var


def settled(param: Declared, buffers: Mapping[str, Buffer]) -> Param:
    """A parameter with its shape: a pointer has that of the T.make_tensor of the body.

    Raises TileValueError (TL1770) for a pointer that the body never makes a tensor.
    """
    if not isinstance(param, PointerParam):
        return param
    if param.name not in buffers:
        raise TileValueError(
            f"{param.name} is a pointer, and nothing says the shape of what it points to",
            code="TL1770", hint=f"write {param.name} = T.make_tensor({param.name}, shape, dtype)",
        )  # fmt: skip
    return TensorParam(buffers[param.name])
