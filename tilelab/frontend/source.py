"""The text of a function: found by file, name and first line, and checked against its code.

Hides linecache, notebook cells, `python -c`, and the ways in which a text can be out of date.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import linecache
import sys
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from types import CodeType, FunctionType
from typing import cast

from tilelab.errors import Loc, TileRuntimeError

COMMAND_LINE, EXECUTED = "<command line>", "<executed text>"
_FUTURE = reduce(
    lambda mask, name: mask | getattr(__future__, name).compiler_flag,
    __future__.all_feature_names,
    0,
)
_CACHE: OrderedDict[tuple[str, str, int], Parsed] = OrderedDict()
_CACHE_SIZE = 64


@dataclass(frozen=True)
class Parsed:
    """One text: its tree, and the code object it compiles to."""

    tree: ast.Module
    code: CodeType


@dataclass(frozen=True)
class FunctionSource:
    """The definition of a function: its node (shared; copy before changing) and its file name."""

    node: ast.FunctionDef
    file: str
    flags: int


def find_source(fn: FunctionType) -> FunctionSource:
    """The definition that `fn` was compiled from. TileRuntimeError TL1402 when no text is known,
    TL1404 when the text has changed since."""
    code = fn.__code__
    flags = code.co_flags & _FUTURE
    stale = False
    for file, text in _candidates(fn):
        parsed = _parse(file, text, flags)
        node = _find_node(parsed.tree, code) if parsed is not None else None
        if node and parsed and (_rewritten_by_pytest(code) or _made_from(parsed, code, file)):
            return FunctionSource(node, file, flags)
        # A text found elsewhere (`python -c`, a caller of exec) is simply not this function's.
        stale = stale or file == code.co_filename
    raise _stale(code) if stale else _missing(code)


def _candidates(fn: FunctionType) -> list[tuple[str, str]]:
    """Texts that may hold the function, most likely first."""
    file = fn.__code__.co_filename
    linecache.checkcache(file)
    lines = linecache.getlines(file, fn.__globals__)
    found = [(file, "".join(lines))] if lines else []
    if lines or file != "<string>":
        return found
    command = _command_text()
    if command is not None:
        found.append((COMMAND_LINE, command))
    return [*found, *_executed_texts(fn.__code__)]


def _executed_texts(code: CodeType) -> Iterator[tuple[str, str]]:
    """Texts that a caller of `exec` has at hand while the text runs, also registered for error
    messages. That one of them is the function's own is checked like for any other."""
    frame = inspect.currentframe()
    while frame is not None:
        caller, what = frame.f_back, frame.f_code
        if caller is not None and (what.co_filename, what.co_name) == ("<string>", "<module>"):
            for value in (*caller.f_locals.values(), *caller.f_code.co_consts):
                if isinstance(value, str) and f"def {code.co_name}" in value:
                    lines = value.splitlines(keepends=True)
                    linecache.cache[EXECUTED] = (len(value), None, lines, EXECUTED)
                    yield EXECUTED, value
        frame = caller


def _command_text() -> str | None:
    """The text given to `python -c`, also registered for error messages."""
    argv = sys.orig_argv
    for position, argument in enumerate(argv[1:-1], start=1):
        if argument.startswith("-") and not argument.startswith("--") and argument.endswith("c"):
            text = argv[position + 1]
            lines = text.splitlines(keepends=True)
            linecache.cache[COMMAND_LINE] = (len(text), None, lines, COMMAND_LINE)
            return text
        if not argument.startswith("-"):
            return None
    return None


def _parse(file: str, text: str, flags: int) -> Parsed | None:
    key = (file, text, flags)
    parsed = _CACHE.get(key)
    if parsed is None:
        options = flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # a notebook cell may await
        try:
            tree = compile(text, file, "exec", options | ast.PyCF_ONLY_AST, dont_inherit=True)
            code = compile(tree, file, "exec", options, dont_inherit=True)
        except (SyntaxError, ValueError):
            return None
        assert isinstance(tree, ast.Module)
        parsed = _CACHE[key] = Parsed(tree, code)
        if len(_CACHE) > _CACHE_SIZE:
            _CACHE.popitem(last=False)
    return parsed


def _find_node(tree: ast.Module, code: CodeType) -> ast.FunctionDef | None:
    """The definition with the code's name on the code's first line (its first decorator's)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
    return None


def _find_code(root: CodeType, wanted: CodeType) -> CodeType | None:
    stack = [root]
    while stack:
        code = stack.pop()
        if (code.co_name, code.co_firstlineno) == (wanted.co_name, wanted.co_firstlineno):
            return code
        stack.extend(c for c in code.co_consts if isinstance(c, CodeType))
    return None


def _made_from(parsed: Parsed, code: CodeType, file: str) -> bool:
    """Whether compiling the text gives `code`: as a whole, or statement by statement as IPython
    does (then the compiler does not see that a name is an imported module, and calls differ)."""
    if _same_code(_find_code(parsed.code, code), code):
        return True
    for stmt in parsed.tree.body:
        first = min([stmt.lineno, *(d.lineno for d in getattr(stmt, "decorator_list", ()))])
        if first <= code.co_firstlineno <= (stmt.end_lineno or first):
            options = code.co_flags & _FUTURE | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            module = ast.Module([stmt], [])
            alone = cast(CodeType, compile(module, file, "exec", options, dont_inherit=True))
            return _same_code(_find_code(alone, code), code)
    return False


def _same_code(a: CodeType | None, b: CodeType) -> bool:
    """Whether two code objects do the same (their file names and lines apart)."""
    if a is None or a.co_code != b.co_code or a.co_names != b.co_names:
        return False
    if a.co_varnames != b.co_varnames or len(a.co_consts) != len(b.co_consts):
        return False
    return all(_same_const(x, y) for x, y in zip(a.co_consts, b.co_consts, strict=True))


def _same_const(x: object, y: object) -> bool:
    if isinstance(x, CodeType) and isinstance(y, CodeType):
        return _same_code(x, y)
    return type(x) is type(y) and (x == y or repr(x) == repr(y))


def _rewritten_by_pytest(code: CodeType) -> bool:
    """pytest rewrites `assert` in the modules it imports; such code never equals its text."""
    nested = (c for c in code.co_consts if isinstance(c, CodeType))
    marked = any(name.startswith("@py") for name in (*code.co_varnames, *code.co_names))
    return marked or any(_rewritten_by_pytest(c) for c in nested)


def _missing(code: CodeType) -> TileRuntimeError:
    return TileRuntimeError(
        f"the source text of {code.co_name!r} ({code.co_filename}) is not available, "
        "and a kernel is compiled from its source",
        code="TL1402",
        hint="define the kernel in a file or a notebook cell, or register the text in "
        "linecache.cache under the name given to compile()",
    )


def _stale(code: CodeType) -> TileRuntimeError:
    return TileRuntimeError(
        f"the source text of {code.co_name!r} has changed since it was loaded",
        code="TL1404",
        loc=Loc(code.co_filename, code.co_firstlineno, function=code.co_name),
        hint="load it again: re-run the cell, reload the module or restart the program",
    )
