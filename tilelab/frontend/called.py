"""What stands at a place of traced code: the call or subscript there, and the function it names.

Hides that the text is read again: an error knows where it happened, and not which function of
numpy, torch, math or Python was asked to compute with a value of the kernel.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import linecache
import sys
import textwrap
from collections.abc import Mapping
from types import FrameType
from typing import Any

from tilelab.errors import Loc

_NOW = frozenset({"builtins", "math", "cmath", "numpy", "torch", "random", "operator"})
_LANGUAGE = f"{__name__.partition('.')[0]}.language"
_INSTEAD = {
    "maximum": "T.max(a, b)", "minimum": "T.min(a, b)", "fmax": "T.max(a, b)",
    "fmin": "T.min(a, b)", "absolute": "T.abs(x)", "power": "T.pow(x, y)",
    "where": "T.if_then_else(condition, a, b)", "relu": "T.max(x, 0)", "silu": "x * T.sigmoid(x)",
    "clip": "T.clamp(x, low, high)", "square": "x * x", "expm1": "T.exp(x) - 1",
    "sum": "T.reduce_sum(tile, result, dim=1)", "amax": "T.reduce_max(tile, result, dim=1)",
    "amin": "T.reduce_min(tile, result, dim=1)", "fsum": "T.reduce_sum(tile, result, dim=1)",
    "mean": "T.reduce_sum(tile, result, dim=1), and divide by the extent",
    "softmax": "T.reduce_max, T.exp2 and T.reduce_sum", "matmul": "T.gemm(A, B, C)",
    "dot": "T.gemm(A, B, C)", "mm": "T.gemm(A, B, C)", "bmm": "T.gemm(A, B, C)",
    "einsum": "T.gemm(A, B, C)", "zeros": "T.clear(tile)", "zeros_like": "T.clear(tile)",
    "ones": "T.fill(tile, 1)", "full": "T.fill(tile, value)", "int": 'T.cast(x, "int32")',
    "float": 'T.cast(x, "float32")', "bool": "a comparison such as x != 0",
    "len": "A.shape[0], the extent", "size": "A.shape", "dim": "len(A.shape)",
    "numel": "the product of A.shape", "to": "T.cast(x, dtype)", "astype": "T.cast(x, dtype)",
    "type": "T.cast(x, dtype)", "half": 'T.cast(x, "float16")', "bfloat16": 'T.cast(x, "bfloat16")',
    "long": 'T.cast(x, "int64")', "item": "x itself, a number", "format": "T.print(x)",
    "add_": "`A[i] += x` in a T.Parallel loop", "mul_": "`A[i] *= x` in a T.Parallel loop",
    "copy_": "T.copy(src, dst)", "zero_": "T.clear(tile)", "fill_": "T.fill(tile, value)",
    "t": "T.transpose(src, dst)", "T": "T.transpose(src, dst), or transpose_B=True of T.gemm",
    "permute": "T.transpose(src, dst)", "view": "T.view(A, shape)", "contiguous": "A itself",
    "divmod": "x // y and x % y", "print": "T.print(x)",
}  # fmt: skip
# Names that stand alone in other languages and libraries, and are undefined in a kernel.
_ELSEWHERE = {
    "inf": 'T.infinity(dtype), or float("inf")', "nan": 'float("nan")',
    "threadIdx": "T.get_thread_binding()", "tid": "T.get_thread_binding()",
    "tx": "T.get_thread_binding()", "blockIdx": "`with T.Kernel(...) as bx`: bx is its number",
    "__syncthreads": "T.sync_threads()", "cdiv": "T.ceildiv", "atomicAdd": "T.atomic_add",
    "__syncwarp": "T.sync_warp()", "__shfl_sync": "T.shfl_sync(value, srcLane)",
    "__shfl_xor_sync": "T.shfl_xor(value, delta)", "__shfl_up_sync": "T.shfl_up(value, delta)",
    "__shfl_down_sync": "T.shfl_down(value, delta)", "__ballot_sync": "T.ballot_sync(predicate)",
    "__any_sync": "T.any_sync(predicate)", "__all_sync": "T.all_sync(predicate)",
    "__activemask": "T.activemask()", "blockDim": "the threads= of T.Kernel",
    "gridDim": "the extents of T.Kernel",
}  # fmt: skip


def call_at(loc: Loc | None) -> ast.expr | None:
    """The expression that a place underlines (of an assignment, its target), read from its text;
    None where it is none."""
    if loc is None or not loc.end_column:
        return None
    lines = [
        linecache.getline(loc.file, n) for n in range(loc.line, (loc.end_line or loc.line) + 1)
    ]
    if not lines:
        return None
    lines[-1] = lines[-1][: loc.end_column]
    lines[0] = lines[0][loc.column :]
    text = "".join(lines)
    try:  # the brackets let an expression go on on further lines
        return ast.parse(f"({text})", mode="eval").body
    except (SyntaxError, ValueError):
        pass
    try:
        statement = ast.parse(textwrap.dedent(text)).body[0]
    except (SyntaxError, ValueError, IndexError):
        return None
    return statement.targets[0] if isinstance(statement, ast.Assign) else None


def outside_function(loc: Loc | None, frame: FrameType) -> tuple[str, str] | None:
    """Where a place calls a function of Python, numpy or torch: its text, and what to write."""
    node = call_at(loc)
    if not isinstance(node, ast.Call):
        return None
    names = {**vars(builtins), **frame.f_globals, **frame.f_locals}
    fn = resolve(node.func, names)
    kind: Any = type(fn)  # pyright: ignore[reportUnknownVariableType]
    module = str(getattr(fn, "__module__", None) or kind.__module__)
    module = module.partition(".")[0]
    if fn is None or module not in _NOW:
        return None
    text = ast.unparse(node.func)
    return text, instead_of(text.rpartition(".")[2])


def instead_of(name: str) -> str:
    """What a kernel has for a function of that name elsewhere."""
    if name in _INSTEAD:
        return f"write {_INSTEAD[name]}"
    language: list[str] = dir(sys.modules.get(_LANGUAGE))
    if name in language:
        return f"write T.{name}(...)"
    near = difflib.get_close_matches(name, [n for n in language if n.islower()], 1, 0.8)
    return f"write T.{near[0]}(...)" if near else "work with operators and the functions of T"


def in_language(name: str) -> str:
    """How a bare name of T, CUDA or a library is written: `T.copy`; empty where T has none."""
    if name in _ELSEWHERE:
        return _ELSEWHERE[name]
    return f"T.{name}" if name in dir(sys.modules.get(_LANGUAGE)) else ""


def resolve(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """The object that a dotted name in the text denotes, or None."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute):
        base = resolve(node.value, known)
        return None if base is None else getattr(base, node.attr, None)
    return None
