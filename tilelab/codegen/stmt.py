"""Statements as CUDA lines: one function for each kind of node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tilelab.codegen.context import Context, internal
from tilelab.codegen.expr import element, expr, pointer, value_as
from tilelab.codegen.operands import operand
from tilelab.codegen.roles import conditions
from tilelab.codegen.source import WIDTH
from tilelab.codegen.values import type_name
from tilelab.ir import (
    Alloc,
    Binary,
    Break,
    Const,
    Continue,
    Expr,
    For,
    If,
    Let,
    Load,
    LoopKind,
    Scope,
    Seq,
    Stmt,
    Store,
    Var,
    While,
    children,
    const_int,
    walk,
)
from tilelab.thread.nodes import Comment, Invoke, Ref, VectorCopy, WarpRoles

_VECTORS = {2: "u16", 4: "u32", 8: "uint2", 16: "uint4"}
_UNROLLED = frozenset({LoopKind.UNROLL, LoopKind.LANES})
_COMPOUND = frozenset({"+", "-", "*"})


def statements(body: Seq, ctx: Context) -> None:
    """Write the statements of `body`, in a scope of names of its own."""
    with ctx.names.scope():
        for stmt in _flat(body):
            _statement(stmt, ctx)


def _statement(stmt: Stmt, ctx: Context) -> None:
    simple = SIMPLE.get(type(stmt))
    if simple is not None:
        ctx.out.line(simple(stmt, ctx) + _reason(stmt), stmt, stmt.loc)
        return
    rule = COMPOUND.get(type(stmt))
    if rule is None:
        raise internal(f"codegen has no rule for the statement {type(stmt).__name__}", stmt)
    rule(stmt, ctx)


def _flat(body: Seq) -> Iterator[Stmt]:
    for stmt in body.body:
        if isinstance(stmt, Seq):
            yield from _flat(stmt)
        else:
            yield stmt


def _reason(stmt: Stmt) -> str:
    return f"  // {stmt.reason}" if isinstance(stmt, Invoke) and stmt.reason else ""


# ---- statements of one line -------------------------------------------------------------------


def _store(stmt: Store, ctx: Context) -> str:
    target = element(stmt.buffer, stmt.indices, ctx)
    short = _compound_assignment(stmt, ctx)
    if short is not None:
        return f"{target} {short};"
    return f"{target} = {value_as(stmt.value, stmt.buffer.dtype, ctx)};"


def _compound_assignment(stmt: Store, ctx: Context) -> str | None:
    """`+= x` for a store of `same element + x`."""
    value = ctx.resolve(stmt.value)
    wide = stmt.buffer.dtype.bits >= 32
    if not (isinstance(value, Binary) and value.op in _COMPOUND and wide):
        return None
    left = value.a
    if not (isinstance(left, Load) and left.buffer is stmt.buffer):
        return None
    here = [ctx.resolve(i).key for i in stmt.indices]
    if here != [i.key for i in left.indices]:
        return None
    return f"{value.op}= {value_as(value.b, stmt.buffer.dtype, ctx)}"


def _let(stmt: Let, ctx: Context) -> str:
    value = value_as(stmt.value, stmt.var.dtype, ctx)
    name = ctx.names.declare(stmt.var, stmt.var.name)
    return f"const {type_name(stmt.var.dtype)} {name} = {value};"


def _vector_copy(stmt: VectorCopy, ctx: Context) -> str:
    dst, src = stmt.dst, stmt.src
    num_bytes = stmt.count * dst.buffer.dtype.bytes
    if stmt.count == 1:
        target, value = (element(r.buffer, r.indices, ctx) for r in (dst, src))
        return f"{target} = {value};"
    vector = _VECTORS.get(num_bytes)
    if vector is None:
        raise internal(f"a vector copy of {num_bytes} bytes has no CUDA type", stmt)
    return f"{_as_vector(dst, vector, ctx)} = {_as_vector(src, f'const {vector}', ctx)};"


def _as_vector(ref: Ref, vector: str, ctx: Context) -> str:
    return f"*reinterpret_cast<{vector}*>({pointer(ref.buffer, ref.indices, ctx)})"


def _invoke(stmt: Invoke, ctx: Context) -> str:
    record = stmt.intrinsic
    ctx.preamble.use_intrinsic(record)
    if len(record.operands) != len(stmt.operands):
        raise internal(
            f"{record.name} takes {len(record.operands)} operands, {len(stmt.operands)} were given",
            stmt,
        )
    pairs = zip(record.operands, stmt.operands, strict=True)
    texts = {param.name: operand(param, value, ctx) for param, value in pairs}
    call = record.call.format(**texts) + ";"
    if stmt.result is None or not ctx.is_wanted(stmt.result):
        return call
    kind = stmt.result.dtype
    ctx.preamble.use_type(kind)
    return f"const {type_name(kind)} {ctx.names.declare(stmt.result, stmt.result.name)} = {call}"


def _comment(stmt: Comment, ctx: Context) -> str:
    return "// " + " ".join(stmt.text.split())


SIMPLE: dict[type[Stmt], Callable[[Any, Context], str]] = {
    Store: _store, VectorCopy: _vector_copy, Invoke: _invoke, Let: _let, Comment: _comment,
    Break: lambda stmt, ctx: "break;", Continue: lambda stmt, ctx: "continue;",
}  # fmt: skip
_DECLARES = frozenset({Let, Comment})  # these do not stand alone after `if (...)`


# ---- blocks -----------------------------------------------------------------------------------


def _block(header: str, body: Seq, stmt: Stmt, ctx: Context) -> None:
    """`header` and its body: in braces, or on one line when it is one short statement."""
    inner = list(_flat(body))
    if len(inner) == 1 and type(inner[0]) in SIMPLE and type(inner[0]) not in _DECLARES:
        text = f"{header} {SIMPLE[type(inner[0])](inner[0], ctx)}"
        if ctx.out.width + len(text) <= WIDTH:
            ctx.out.line(text + _reason(inner[0]), stmt, stmt.loc)
            ctx.out.link(inner[0], inner[0].loc)
            return
    ctx.out.line(f"{header} {{", stmt, stmt.loc)
    with ctx.out.indented():
        statements(body, ctx)
    ctx.out.line("}")


def _for(stmt: For, ctx: Context) -> None:
    extent = const_int(ctx.resolve(stmt.extent))
    if extent is not None and extent <= 0:
        return
    if extent == 1 and not _leaves_loop(stmt.body):
        _once(stmt, ctx)
        return
    with ctx.names.scope():
        header, body = _loop_header(stmt, ctx)
        if stmt.kind in _UNROLLED:
            ctx.out.line("#pragma unroll", stmt, stmt.loc)
        _block(header, body, stmt, ctx)


def _leaves_loop(body: Seq) -> bool:
    """Whether a break or continue of this loop (not of an inner one) stands in `body`."""
    stack: list[Any] = list(body.body)
    while stack:
        node = stack.pop()
        if isinstance(node, Break | Continue):
            return True
        if isinstance(node, Stmt) and not isinstance(node, For | While):
            stack.extend(children(node))
    return False


def _once(stmt: For, ctx: Context) -> None:
    """A loop of one iteration leaves no text: its variable is its start."""
    start = ctx.resolve(stmt.start)
    if isinstance(start, Const | Var):
        ctx.inlined[stmt.var] = start
    else:
        _statement(Let(stmt.var, start, loc=stmt.loc), ctx)
    for inner in _flat(stmt.body):
        _statement(inner, ctx)


def _loop_header(stmt: For, ctx: Context) -> tuple[str, Seq]:
    start, extent, step = (ctx.resolve(e) for e in (stmt.start, stmt.extent, stmt.step))
    stride = const_int(step)
    if not stride:
        return _counted_header(stmt, extent, ctx)
    first = value_as(start, stmt.var.dtype, ctx)
    end: Expr = start + extent * stride
    last, snapshot = expr(end, ctx), ""
    fixed = not any(isinstance(n, Load) for n in walk(end))
    name = ctx.names.declare(stmt.var, stmt.var.name)
    if not fixed:  # the loop's end is decided before its first iteration
        last, snapshot = ctx.names.reserve(f"{name}_end"), last
        snapshot = f", {last} = {snapshot}"
    sign = "<" if stride > 0 else ">"
    advance = {1: f"++{name}", -1: f"--{name}"}.get(stride) or (
        f"{name} += {stride}" if stride > 0 else f"{name} -= {-stride}"
    )
    declared = f"{type_name(stmt.var.dtype)} {name} = {first}{snapshot}"
    return f"for ({declared}; {name} {sign} {last}; {advance})", stmt.body


def _counted_header(stmt: For, extent: Expr, ctx: Context) -> tuple[str, Seq]:
    """A step known only at run time: count the iterations."""
    counter = Var(f"{stmt.var.name}_count", stmt.var.dtype, lo=0)
    value = stmt.start + counter * stmt.step
    body = Seq((Let(stmt.var, value, loc=stmt.loc), *stmt.body.body), loc=stmt.body.loc)
    one, zero = Const(1, stmt.var.dtype), Const(0, stmt.var.dtype)
    header, _ = _loop_header(For(counter, zero, extent, one, stmt.kind, body), ctx)
    return header, body


def _if(stmt: If, ctx: Context) -> None:
    header = f"if ({expr(stmt.cond, ctx)})"
    if stmt.orelse is None or not stmt.orelse.body:
        _block(header, stmt.then, stmt, ctx)
        return
    ctx.out.line(f"{header} {{", stmt, stmt.loc)
    with ctx.out.indented():
        statements(stmt.then, ctx)
    _else(stmt.orelse, ctx)
    ctx.out.line("}")


def _else(orelse: Seq, ctx: Context) -> None:
    """`} else if` for a chain, `} else` at its end; the caller closes the brace."""
    inner = list(_flat(orelse))
    nested = inner[0] if len(inner) == 1 and isinstance(inner[0], If) else None
    if nested is None:
        ctx.out.line("} else {")
        with ctx.out.indented():
            statements(orelse, ctx)
        return
    ctx.out.line(f"}} else if ({expr(nested.cond, ctx)}) {{", nested, nested.loc)
    with ctx.out.indented():
        statements(nested.then, ctx)
    if nested.orelse is not None and nested.orelse.body:
        _else(nested.orelse, ctx)


def _while(stmt: While, ctx: Context) -> None:
    _block(f"while ({expr(stmt.cond, ctx)})", stmt.body, stmt, ctx)


def _roles(stmt: WarpRoles, ctx: Context) -> None:
    chain = conditions(stmt.roles, ctx.kernel.threads)
    for number, (role, condition) in enumerate(zip(stmt.roles, chain, strict=True)):
        opening = "if" if number == 0 else "} else if"
        header = f"{opening} ({condition}) {{" if condition else "} else {"
        ctx.out.line(f"{header}  // {role.name}", role, stmt.loc)
        with ctx.out.indented():
            statements(role.body, ctx)
    ctx.out.line("}")


def _alloc(stmt: Alloc, ctx: Context) -> None:
    """Buffers stand at the head of the kernel; nothing is written where they begin."""
    if stmt.buffer.scope is not Scope.LOCAL and ctx.names.of(stmt.buffer) is None:
        raise internal(f"{stmt.buffer.name} has no place in the kernel's shared memory", stmt)
    ctx.name(stmt.buffer)


COMPOUND: dict[type[Stmt], Callable[[Any, Context], None]] = {
    For: _for, If: _if, While: _while, WarpRoles: _roles, Alloc: _alloc, Seq: statements,
}  # fmt: skip
