"""From whatever a user defined (a kernel, a traced program, a factory) to a compiled kernel.

Hides how the styles of definition are told apart.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from tilelab.calls import did_you_mean
from tilelab.commands.arguments import constants
from tilelab.commands.files import read_source
from tilelab.errors import TileRuntimeError, TileTypeError, TileValueError
from tilelab.frontend.function import PrimFunc
from tilelab.ir import Function, TensorParam
from tilelab.jit import JITImpl
from tilelab.kernel import JITKernel
from tilelab.target import Target
from tilelab.tile.structure import PLAIN

NO_KERNEL, NO_CONSTANT, NO_INPUT = "TL1703", "TL1704", "TL1705"


@dataclass(frozen=True)
class Wish:
    """How a kernel is wanted: its target and outputs (None: as it was defined), the constants for
    a factory or a @tilelang.jit function, tensors that an eager one may take sizes from, and
    pass_configs beside those of its definition."""

    target: Target | None = None
    out_idx: Sequence[int] | None = None
    constants: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tensors: Sequence[Any] = ()
    configs: Mapping[str, Any] = field(default_factory=dict[str, Any])


def wish_of(options: Any, names: Mapping[str, Any], tensors: Sequence[Any] = ()) -> Wish:
    """What the options of `arguments.add_kernel_options` ask for; `names`: what constants may
    name."""
    configs = {PLAIN: True} if options.plain else {}
    given = constants(options.constants, names)
    return Wish(options.target, options.out_idx, given, tensors, configs)


def to_kernel(value: Any, wish: Wish, name: str = "") -> JITKernel:
    """The kernel that `value` stands for: a JITKernel, a traced program, a @tilelang.jit function
    or a factory that returns one of these.

    TileTypeError (TL1703) for anything else, and (TL1704) for constants that are missing or
    unknown; `name` is what the user calls it.
    """
    name = name or getattr(value, "__name__", type(value).__name__)
    kind = cast("type[Any]", type(value))
    maker = _MAKERS.get(kind)
    if maker is not None:
        if wish.constants and kind is not JITImpl:
            raise TileTypeError(
                f"{name} is made already: it has no {', '.join(wish.constants)} to be set",
                code=NO_CONSTANT,
                hint="name the factory or the @tilelang.jit function that it comes from",
            )  # fmt: skip
        return maker(value, wish)
    if not inspect.isroutine(value):
        raise TileTypeError(
            f"{name} is no kernel but a {type(value).__name__}", code=NO_KERNEL,
            hint="name a function under @T.prim_func or @tilelang.jit, or what it makes",
        )  # fmt: skip
    _check_constants(value, wish.constants, name)
    made = value(**wish.constants)
    if made is value or not (is_kernel(made) or _is_factory(made)):
        raise TileTypeError(
            f"{name} gave a {type(made).__name__} and no kernel", code=NO_KERNEL,
            hint="let it return the function under @T.prim_func, or a compiled kernel",
        )  # fmt: skip
    return to_kernel(made, replace(wish, constants={}), name)


def _from_kernel(kernel: JITKernel, wish: Wish) -> JITKernel:
    outputs = list(kernel.out_idx if wish.out_idx is None else wish.out_idx)
    configs = {**kernel.pass_configs, **wish.configs}
    same = outputs == kernel.out_idx and configs == kernel.pass_configs
    if same and (wish.target is None or wish.target == kernel.target):
        return kernel
    program = kernel.prim_func
    return JITKernel(
        program, out_idx=None if program.outputs else outputs,
        target=wish.target or kernel.target, pass_configs=configs,
    )  # fmt: skip


def _from_program(program: PrimFunc | Function, wish: Wish) -> JITKernel:
    function = program if isinstance(program, Function) else program.function
    outputs = None if wish.out_idx is None else list(wish.out_idx)
    return JITKernel(function, out_idx=outputs, target=wish.target, pass_configs=wish.configs)


def _from_jit(made: JITImpl, wish: Wish) -> JITKernel:
    tensors = () if _is_factory(made.func) else wish.tensors
    return _from_kernel(made.compile(*tensors, **wish.constants), wish)


_MAKERS: dict[type, Callable[[Any, Wish], JITKernel]] = {
    JITKernel: _from_kernel, PrimFunc: _from_program, Function: _from_program, JITImpl: _from_jit,
}  # fmt: skip


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
    return type(value) in _MAKERS


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
    return last_kernel(ast.parse(read_source(path), path), names)


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
    hint = did_you_mean(name, known) or "there are: " + (", ".join(known) or "none")
    raise TileValueError(f"there is no kernel named {name}", code=NO_KERNEL, hint=hint)


def look_up_input(name: str, names: Mapping[str, Any]) -> Any:
    """An input of a namespace; TileValueError (TL1705) with the tensors that are there."""
    if name in names:
        return names[name]
    known = [n for n, v in names.items() if isinstance(getattr(v, "shape", None), tuple)]
    known = [n for n in known if not n.startswith("_")]
    hint = did_you_mean(name, known) or "tensors here: " + (", ".join(known) or "none")
    raise TileValueError(f"there is no tensor named {name}", code=NO_INPUT, hint=hint)


def inputs_for(kernel: JITKernel, names: Mapping[str, Any], given: Sequence[str]) -> list[Any]:
    """The inputs of a kernel from a namespace: the names given, else those of its parameters.

    TileRuntimeError (TL1705) names what is not there, or how many were given.
    """
    outputs = {i % len(kernel.params) for i in kernel.out_idx}
    wanted = [p for i, p in enumerate(kernel.params) if i not in outputs]
    words = list(given) or [p.name for p in wanted]
    missing = [word for word in words if word not in names]
    if missing or len(words) != len(wanted):
        shapes = ", ".join(_described(p) for p in wanted)
        lacking = f": {', '.join(missing)} not defined" if missing else (
            f", not {len(words)}: {', '.join(words)}"
        )  # fmt: skip
        raise TileRuntimeError(
            f"{kernel.name} takes {len(wanted)} inputs ({shapes}){lacking}", code=NO_INPUT,
            hint="define variables with the parameters' names, or list them: --inputs a,b; "
            "--out-idx -1 has the last parameter made and returned",
        )  # fmt: skip
    return [names[word] for word in words]


def _described(param: Any) -> str:
    if not isinstance(param, TensorParam):
        return param.name
    shape = "x".join(str(getattr(s, "name", s)) for s in param.buffer.shape)
    return f"{param.name}: {shape} {param.buffer.dtype}"
