"""A Python function turned into its traced form: same globals, same closure cells, same lines.

Hides the cache of rewritten code and how closure cells are carried over.
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections import OrderedDict
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any

from tilelab.errors import TileTypeError
from tilelab.frontend.rewrite_expr import TRACER
from tilelab.frontend.rewrite_stmt import StmtRewriter
from tilelab.frontend.source import FunctionSource, find_source

_OUTER = "__tl_outer"
_CACHE: OrderedDict[tuple[int, frozenset[str]], tuple[CodeType, CodeType]] = OrderedDict()
_CACHE_SIZE = 256


def plain_function(value: object, what: str) -> FunctionType:
    """`value` as a plain Python function. TileTypeError (TL1451) for anything else."""
    fn: object = inspect.unwrap(value) if isinstance(value, FunctionType) else value
    if not isinstance(fn, FunctionType) or fn.__name__ == "<lambda>":
        raise TileTypeError(
            f"{what} is applied to {value!r}, which is no function with a def",
            code="TL1451",
            hint="put the decorator above a `def`",
        )
    if inspect.iscoroutinefunction(fn) or inspect.isgeneratorfunction(fn):
        raise TileTypeError(
            f"{fn.__name__} is a coroutine or generator, which {what} cannot trace",
            code="TL1451",
            hint="use a plain def without await or yield",
        )
    return fn


def traced_code(fn: FunctionType, annotated: frozenset[str] = frozenset()) -> CodeType:
    """The rewritten code of `fn`; `annotated` are parameters declared by annotation statements."""
    key = (id(fn.__code__), annotated)
    cached = _CACHE.get(key)
    if cached is not None:
        return cached[1]
    source = find_source(fn)
    code = _rewrite(source, fn.__code__, annotated)
    _CACHE[key] = (fn.__code__, code)  # the original is kept, so that its id stays its own
    if len(_CACHE) > _CACHE_SIZE:
        _CACHE.popitem(last=False)
    return code


def bind_tracer(fn: FunctionType, code: CodeType, tracer: object) -> Callable[..., Any]:
    """A callable that runs rewritten `code` in the world of `fn`, talking to `tracer`."""
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    cells[TRACER] = CellType(tracer)
    closure = tuple(cells[name] for name in code.co_freevars)
    bound = FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
    bound.__kwdefaults__ = fn.__kwdefaults__
    return bound


def _rewrite(source: FunctionSource, original: CodeType, annotated: frozenset[str]) -> CodeType:
    node = copy.deepcopy(source.node)
    node.decorator_list = []
    node.returns = None
    arguments = node.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for argument in [*named, arguments.vararg, arguments.kwarg]:
        if argument is not None:
            argument.annotation = None
    arguments.defaults = []
    arguments.kw_defaults = [None] * len(arguments.kwonlyargs)
    node.body = StmtRewriter(source.file, node.name, annotated).body(node.body)
    free = ", ".join([TRACER, *original.co_freevars])
    outer = ast.parse(f"def {_OUTER}({free}): pass")
    definition = outer.body[0]
    assert isinstance(definition, ast.FunctionDef)
    # The function's own name means what it meant: a global, or a cell of the function around it.
    is_global = node.name not in original.co_freevars
    definition.body = [*([ast.Global([node.name])] if is_global else []), node]
    ast.fix_missing_locations(outer)
    module = compile(outer, source.file, "exec", source.flags, dont_inherit=True)
    return _nested(_nested(module, _OUTER), node.name)


def _nested(code: CodeType, name: str) -> CodeType:
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and constant.co_name == name:
            return constant
    raise AssertionError(f"no code object {name}")
