"""From whatever a user defined (a kernel, a traced program, a factory) to a compiled kernel.

Hides how the styles of definition are told apart.
"""

from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilelab.errors import TileRuntimeError, TileTypeError, TileValueError
from tilelab.frontend.function import PrimFunc
from tilelab.frontend.function import trace as trace_function
from tilelab.ir import Function, TensorParam
from tilelab.jit import JITImpl
from tilelab.kernel import JITKernel
from tilelab.target import Target

KERNELS = (JITKernel, JITImpl, PrimFunc, Function)
NO_KERNEL, NO_CONSTANT, NO_INPUT = "TL1703", "TL1704", "TL1705"


def to_kernel(
    value: Any, constants: Mapping[str, Any], *, target: Target | None = None,
    out_idx: Sequence[int] | None = None, name: str = "", tensors: Sequence[Any] = (),
) -> JITKernel:  # fmt: skip
    """The kernel that `value` stands for, compiled for `target` (None: as it was defined).

    `value` may be a JITKernel, a traced program, a @tilelang.jit function or a factory that
    returns one of these; `constants` go to the last two. An eager function may take its constants
    from `tensors`. TileTypeError (TL1703) for anything
    else, TileTypeError (TL1704) for constants that are missing or unknown.
    """
    name = name or getattr(value, "__name__", type(value).__name__)
    if isinstance(value, JITKernel):
        return _retarget(value, target, out_idx)
    if isinstance(value, (PrimFunc, Function)):
        function = value if isinstance(value, Function) else trace_function(value)
        return JITKernel(function, out_idx=None if out_idx is None else list(out_idx),
                         target=target)  # fmt: skip
    if isinstance(value, JITImpl):
        given = () if _is_factory(value.func) else tensors
        return _retarget(value.compile(*given, **constants), target, out_idx)
    if not inspect.isroutine(value):
        raise TileTypeError(
            f"{name} is no kernel but a {type(value).__name__}", code=NO_KERNEL,
            hint="name a function under @T.prim_func or @tilelang.jit, or what it makes",
        )  # fmt: skip
    _check_constants(value, constants, name)
    made = value(**constants)
    if made is value or (not is_kernel(made) and not _is_factory(made)):
        raise TileTypeError(
            f"{name} gave a {type(made).__name__} and no kernel", code=NO_KERNEL,
            hint="let it return the function under @T.prim_func, or a compiled kernel",
        )  # fmt: skip
    return to_kernel(made, {}, target=target, out_idx=out_idx, name=name)


def _retarget(kernel: JITKernel, target: Target | None, out_idx: Sequence[int] | None) -> JITKernel:
    outputs = list(kernel.out_idx if out_idx is None else out_idx)
    if (target is None or target == kernel.target) and outputs == kernel.out_idx:
        return kernel
    configs = kernel.pass_configs
    return JITKernel(
        kernel.prim_func, out_idx=outputs, target=target or kernel.target, pass_configs=configs
    )


def _check_constants(factory: Any, constants: Mapping[str, Any], name: str) -> None:
    """A factory's signature against the constants: the error names what is missing."""
    signature = inspect.signature(factory)
    try:
        signature.bind(**constants)
    except TypeError as error:
        needed = [p.name for p in signature.parameters.values() if p.default is p.empty]
        missing = [n for n in needed if n not in constants]
        example = " ".join(f"{n}=1024" for n in missing) or ", ".join(signature.parameters)
        raise TileTypeError(
            f"{name}{signature} cannot be called: {error}", code=NO_CONSTANT,
            hint=f"give its parameters as key=value: {example}",
        ) from error  # fmt: skip


def is_kernel(value: Any) -> bool:
    """Whether a value is a kernel, a traced program or a @tilelang.jit function."""
    return isinstance(value, KERNELS)


def _is_factory(value: Any) -> bool:
    return inspect.isfunction(value) and "prim_func" in value.__code__.co_names


def last_kernel(tree: ast.Module, names: Mapping[str, Any]) -> str:
    """The name of the kernel that a text defines last.

    A compiled or traced one is preferred to a factory only if it comes later. TileValueError
    (TL1703) when the text defines none.
    """
    for name in reversed(list(_defined(tree))):
        if name in names and (is_kernel(names[name]) or _is_factory(names[name])):
            return name
    raise TileValueError(
        "no kernel is defined here", code=NO_KERNEL,
        hint="define a function under @T.prim_func or @tilelang.jit",
    )  # fmt: skip


def last_kernel_of_file(path: str, names: Mapping[str, Any]) -> str:
    """The name of the kernel that a file defines last, given its namespace."""
    text = Path(path).read_text(encoding="utf-8")
    return last_kernel(ast.parse(text, path), names)


def _defined(tree: ast.Module) -> list[str]:
    """Names bound at the top level, in the order of their (last) binding."""
    found: dict[str, None] = {}
    for node in tree.body:
        names = [node.name] if isinstance(node, ast.FunctionDef) else [
            n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        ]  # fmt: skip
        for name in names:
            found.pop(name, None)
            found[name] = None
    return list(found)


def look_up(name: str, names: Mapping[str, Any]) -> Any:
    """A name of a namespace; TileValueError (TL1703) with the kernels that are there."""
    if name in names:
        return names[name]
    known = [n for n, v in names.items() if is_kernel(v) or _is_factory(v)]
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else "there are: " + (", ".join(known) or "none")
    raise TileValueError(f"there is no kernel named {name}", code=NO_KERNEL, hint=hint)


def inputs_for(kernel: JITKernel, names: Mapping[str, Any], given: Sequence[str]) -> list[Any]:
    """The inputs of a kernel from a namespace: the names given, else those of its parameters.

    TileRuntimeError (TL1705) names the parameters that are not there.
    """
    outputs = {i % len(kernel.params) for i in kernel.out_idx}
    wanted = [p for i, p in enumerate(kernel.params) if i not in outputs]
    words = list(given) or [p.name for p in wanted]
    missing = [word for word in words if word not in names]
    if missing or len(words) != len(wanted):
        shapes = ", ".join(_described(p) for p in wanted)
        lacking = f": {', '.join(missing)} not defined" if missing else ""
        raise TileRuntimeError(
            f"{kernel.name} takes {len(wanted)} inputs ({shapes}){lacking}", code=NO_INPUT,
            hint="define variables with the parameters' names, or list them: --inputs a,b",
        )  # fmt: skip
    return [names[word] for word in words]


def _described(param: Any) -> str:
    if not isinstance(param, TensorParam):
        return param.name
    shape = "x".join(str(getattr(s, "name", s)) for s in param.buffer.shape)
    return f"{param.name}: {shape} {param.buffer.dtype}"
