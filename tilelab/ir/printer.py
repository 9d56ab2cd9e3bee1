"""IR as readable, Python-like text: for golden tests, cache keys and the pass explorer.

Both dialects print through two tables keyed by node type, which higher ranks extend. A node
without an entry prints as `Name(field=..., ...)` from its dataclass fields, so a new tile op needs
nothing here. The text depends on the node alone: things that share a name are told apart by
numbers in the order of their first appearance.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tilelab.dtypes import DType
from tilelab.ir.buffer import Buffer, Pool, ReducerBuffer, Region, ScalarBuffer
from tilelab.ir.core import Node
from tilelab.ir.expr import Expr, Var, const_int
from tilelab.ir.printexpr import expression
from tilelab.ir.stmt import (
    Alloc,
    Break,
    Continue,
    For,
    Function,
    If,
    Kernel,
    Let,
    ParallelFor,
    ScalarParam,
    Seq,
    Stmt,
    Store,
    TensorParam,
    While,
)
from tilelab.layout import Fragment, MapLayout, SharedLayout, TableFragment, ViewLayout

INDENT = "  "


@dataclass(frozen=True)
class Line:
    """One line of text, without its indentation, and the node it was printed for."""

    text: str
    node: Node
    depth: int


def to_lines(node: Node) -> list[Line]:
    """`node` as lines; statements and functions take several, an expression one."""
    printer = Printer()
    printer.write(node)
    return printer.lines


def to_text(node: Node) -> str:
    """`node` as text, lines joined and indented."""
    return "\n".join(INDENT * line.depth + line.text for line in to_lines(node))


class Printer:
    """State of one printing: lines so far, depth, and the names given."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.depth = 0
        self._names: dict[int, str] = {}
        self._taken: set[str] = set()

    def name(self, node: Any) -> str:
        """The printed name of a variable, buffer or map: its own, or name_1, name_2, ..."""
        known = self._names.get(id(node))
        if known is not None:
            return known
        name, count = node.name, 0
        while name in self._taken:
            count += 1
            name = f"{node.name}_{count}"
        self._taken.add(name)
        self._names[id(node)] = name
        return name

    def line(self, text: str, node: Node) -> None:
        """Add a line at the current depth."""
        self.lines.append(Line(text, node, self.depth))

    def write(self, node: Node) -> None:
        """Print a node as lines."""
        rule = _rule(PRINTERS, node)
        if rule is not None:
            rule(node, self)
        elif isinstance(node, Stmt):
            _generic_stmt(node, self)
        else:
            self.line(self.text(node), node)

    def block(self, header: str, node: Node, body: Iterable[Node]) -> None:
        """A header line and `body` one level deeper."""
        self.line(header, node)
        self.depth += 1
        count = len(self.lines)
        for inner in body:
            self.write(inner)
        if len(self.lines) == count:
            self.line("pass", node)
        self.depth -= 1

    def text(self, value: Any) -> str:
        """Any value inside a line: an expression, a buffer's name, a tuple, a plain value."""
        rule = _rule(TEXTS, value)
        if rule is not None:
            return rule(value, self)
        if isinstance(value, Node):
            return f"{type(value).__name__}({', '.join(_fields(value, self))})"
        return _plain(value)

    def index(self, buffer: Buffer, indices: Iterable[Any]) -> str:
        """`A[i, j]`; a mutable scalar prints as its bare name."""
        if isinstance(buffer, ScalarBuffer):
            return self.name(buffer)
        return f"{self.name(buffer)}[{', '.join(self.text(i) for i in indices)}]"


def _rule(table: dict[type, Callable[..., Any]], value: Any) -> Callable[..., Any] | None:
    """The entry of the nearest class of `value`."""
    return next((table[kind] for kind in type(value).__mro__ if kind in table), None)


# ---- what has no entry --------------------------------------------------------------------------

_SKIPPED = frozenset({"loc", "origin"})


def _fields(node: Any, p: Printer) -> list[str]:
    """`name=value` for each field that differs from its default."""
    shown: list[str] = []
    for f in dataclasses.fields(node):
        value = getattr(node, f.name)
        if f.name in _SKIPPED or isinstance(value, Seq) or value is f.default:
            continue
        shown.append(f"{f.name}={p.text(value)}")
    return shown


def _generic_stmt(node: Stmt, p: Printer) -> None:
    """A tile op: one line; bodies, when it has any, one level deeper."""
    header = f"{type(node).__name__}({', '.join(_fields(node, p))})"
    values = [getattr(node, f.name) for f in dataclasses.fields(node)]
    bodies = [v for v in values if isinstance(v, Seq)]
    if not bodies:
        p.line(header, node)
        return
    for number, body in enumerate(bodies):
        p.block(f"{header}:" if number == 0 else "and:", node, body.body)


def _plain(value: Any) -> str:
    """A Python value; never an address, which would differ from run to run."""
    if dataclasses.is_dataclass(value) and type(value).__str__ is object.__str__:
        return repr(value)
    if callable(value):
        return str(getattr(value, "__qualname__", type(value).__name__))
    text = repr(value) if isinstance(value, str) else str(value)
    return type(value).__name__ if " at 0x" in text else text


def _tuple(value: tuple[Any, ...], p: Printer) -> str:
    inner = ", ".join(p.text(v) for v in value)
    return f"({inner},)" if len(value) == 1 else f"({inner})"


def attributes(attrs: tuple[tuple[str, object], ...], p: Printer) -> list[str]:
    """`name=value` for each attribute of a node."""
    return [f"{name}={p.text(value)}" for name, value in attrs]


# ---- buffers and regions ------------------------------------------------------------------------


def describe(buffer: Buffer, p: Printer) -> str:
    """Shape, type and whatever else a buffer declares: `(128, 64), float16, layout=...`."""
    parts = [_tuple(buffer.shape, p), str(buffer.dtype)]
    if buffer.strides is not None:
        parts.append(f"strides={_tuple(buffer.strides, p)}")
    if buffer.layout is not None:
        parts.append(f"layout={p.text(buffer.layout)}")
    if isinstance(buffer, ReducerBuffer):
        parts.append(f"reducer={buffer.op}")
    if buffer.alias_of is not None:
        parts.append(f"view of {p.name(buffer.alias_of)}")
    if isinstance(buffer, Pool):
        parts.append(f"at the addresses of {p.name(buffer.table)}")
    return ", ".join(parts)


def _region(region: Region, p: Printer) -> str:
    parts: list[str] = []
    for axis, (start, extent) in enumerate(zip(region.starts, region.extents, strict=True)):
        if axis in region.tile_axes:
            parts.append(f"{p.text(start)}:{p.text(start + extent)}")
        else:
            parts.append(p.text(start))
    return f"{p.name(region.buffer)}[{', '.join(parts)}]"


def _marked(value: object, content: bytes) -> str:
    """A layout's one-line summary, with a digest that tells any two layouts apart."""
    return f"{value} #{hashlib.sha256(content).hexdigest()[:8]}"


def _by_fields(layout: Fragment | SharedLayout | MapLayout | ViewLayout, p: Printer) -> str:
    return _marked(layout, repr(layout).encode())


def _by_table(layout: TableFragment, p: Printer) -> str:
    size = repr((layout.shape, layout.num_threads, layout.threads.shape)).encode()
    return _marked(layout, size + layout.threads.tobytes() + layout.registers.tobytes())


TEXTS: dict[type, Callable[[Any, Printer], str]] = {
    Expr: expression,
    Buffer: lambda b, p: p.name(b),
    Region: _region,
    tuple: _tuple,
    DType: lambda d, p: d.name,
    enum.Enum: lambda e, p: str(e.value),
    Fragment: _by_fields,
    SharedLayout: _by_fields,
    MapLayout: _by_fields,
    ViewLayout: _by_fields,
    TableFragment: _by_table,
}
"""Values inside a line, by type."""


# ---- statements ---------------------------------------------------------------------------------


def _seq(node: Seq, p: Printer) -> None:
    for stmt in node.body:
        p.write(stmt)


def _for(node: For, p: Printer) -> None:
    stop = node.start + node.extent * node.step
    bounds = [node.start, stop, node.step]
    if const_int(node.step) == 1:
        bounds = [stop] if const_int(node.start) == 0 else [node.start, stop]
    args = [p.text(b) for b in bounds]
    if node.num_stages is not None:
        args.append(f"num_stages={node.num_stages}")
    args += attributes(node.attrs, p)
    name = declared(node.var, p)
    p.block(f"for {name} in {node.kind.value}({', '.join(args)}):", node, node.body.body)


def _parallel(node: ParallelFor, p: Printer) -> None:
    args = [p.text(e) for e in node.extents] + attributes(node.attrs, p)
    names = ", ".join(declared(v, p) for v in node.vars)
    p.block(f"for {names} in parallel({', '.join(args)}):", node, node.body.body)


def declared(var: Var, p: Printer) -> str:
    """A variable where it is bound: its type is shown when it is not int32."""
    return p.name(var) if var.dtype == "int32" else f"{p.name(var)}: {var.dtype}"


def _if(node: If, p: Printer, word: str = "if") -> None:
    p.block(f"{word} {p.text(node.cond)}:", node, node.then.body)
    if node.orelse is None or not node.orelse.body:
        return
    first = node.orelse.body[0]
    if len(node.orelse.body) == 1 and isinstance(first, If):
        _if(first, p, "elif")
    else:
        p.block("else:", node, node.orelse.body)


def _alloc(node: Alloc, p: Printer) -> None:
    b = node.buffer
    kind = "var" if isinstance(b, ScalarBuffer) else b.scope.value
    p.line(f"{p.name(b)} = alloc_{kind}({describe(b, p)})", node)


def _kernel(node: Kernel, p: Printer) -> None:
    args = [p.text(g) for g in node.grid]
    args.append(f"threads={p.text(node.threads)}")
    args += attributes(node.attrs, p)
    blocks = _tuple(node.block_vars, p)
    threads = f", {_tuple(node.thread_vars, p)}" if node.thread_vars else ""
    launched = "" if node.launched is None else f", {p.text(node.launched)} launched"
    p.block(f"with Kernel({', '.join(args)}) as {blocks}{threads}{launched}:", node, node.body.body)


def parameter(node: TensorParam | ScalarParam, p: Printer) -> str:
    """`A: Tensor((M, K), float16)` or `n: int32`."""
    if isinstance(node, ScalarParam):
        return f"{p.name(node.var)}: {node.dtype}"
    return f"{p.name(node.buffer)}: Tensor({describe(node.buffer, p)})"


def _function(node: Function, p: Printer) -> None:
    params = ", ".join(parameter(x, p) for x in node.params)
    notes = [f"sizes={_sizes(node.sizes, p)}"] if node.sizes else []
    notes += [f"outputs={p.text(node.outputs)}"] if node.outputs else []
    notes += attributes(node.attrs, p)
    comment = f"  # {', '.join(notes)}" if notes else ""
    for b in node.workspaces:
        p.line(f"{p.name(b)} = workspace({describe(b, p)})", b)
    p.block(f"def {node.name}({params}):{comment}", node, node.kernels)


def _sizes(sizes: tuple[Var, ...], p: Printer) -> str:
    return "(" + ", ".join(declared(v, p) for v in sizes) + ")"


PRINTERS: dict[type[Node], Callable[[Any, Printer], None]] = {
    Seq: _seq, For: _for, ParallelFor: _parallel, If: _if, Alloc: _alloc, Kernel: _kernel,
    Function: _function,
    While: lambda n, p: p.block(f"while {p.text(n.cond)}:", n, n.body.body),
    Break: lambda n, p: p.line("break", n),
    Continue: lambda n, p: p.line("continue", n),
    Let: lambda n, p: p.line(f"{declared(n.var, p)} = {p.text(n.value)}", n),
    Store: lambda n, p: p.line(f"{p.index(n.buffer, n.indices)} = {p.text(n.value)}", n),
    TensorParam: lambda n, p: p.line(parameter(n, p), n),
    ScalarParam: lambda n, p: p.line(parameter(n, p), n),
}  # fmt: skip
"""Nodes that take lines, by type."""
