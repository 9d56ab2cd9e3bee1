"""How thread IR prints: its nodes' entries in the tables of `ir.printer`.

Imported by the package, so that thread IR prints the same wherever it is printed from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelab.ir import Node
from tilelab.ir.printer import PRINTERS, TEXTS, Printer, declared, describe, parameter
from tilelab.thread.intrinsic import Intrinsic
from tilelab.thread.nodes import (
    Comment,
    Invoke,
    Program,
    Ref,
    Role,
    SharedDescriptor,
    SharedSlot,
    TensorMap,
    ThreadKernel,
    VectorCopy,
    WarpRoles,
)


def _ref(ref: Ref, p: Printer) -> str:
    """`&A[i, j]`, or `&A[i, j]:8` for a span."""
    span = f":{ref.count}" if ref.count != 1 else ""
    return f"&{p.index(ref.buffer, ref.indices)}{span}"


def _descriptor(d: SharedDescriptor, p: Printer) -> str:
    advance = f", advance={p.text(d.advance)}" if d.advance is not None else ""
    advance += f", slot={p.text(d.slot)}" if d.slot is not None else ""
    sizes = f"leading={d.leading}, stride={d.stride}, swizzle={d.swizzle}"
    return f"descriptor({_ref(d.ref, p)}, {sizes}{advance})"


def _invoke(stmt: Invoke, p: Printer) -> None:
    names = [param.name for param in stmt.intrinsic.operands]
    values = [p.text(o) for o in stmt.operands]
    pairs = [f"{n}={v}" for n, v in zip(names, values, strict=False)] + values[len(names) :]
    reason = f"  # {stmt.reason}" if stmt.reason else ""
    binds = "" if stmt.result is None else f"{declared(stmt.result, p)} = "
    p.line(f"{binds}{stmt.intrinsic.name}({', '.join(pairs)}){reason}", stmt)


def _vector_copy(stmt: VectorCopy, p: Printer) -> None:
    dst, src = (p.index(r.buffer, r.indices) for r in (stmt.dst, stmt.src))
    p.line(f"{dst}:{stmt.count} = {src}:{stmt.count}", stmt)


def _role(role: Role, p: Printer) -> None:
    threads = f"{role.first}..{role.first + role.count - 1}"
    p.block(f"role {role.name!r}, threads {threads}:", role, role.body.body)


def _roles(stmt: WarpRoles, p: Printer) -> None:
    p.block("with warp_roles():", stmt, stmt.roles)


def _slot(slot: SharedSlot, p: Printer) -> None:
    kind = "dynamic" if slot.dynamic else "static"
    where = f"{kind} {slot.offset}..{slot.offset + slot.num_bytes}"
    b = slot.buffer
    p.line(f"{p.name(b)} = {b.scope.value}({describe(b, p)})  # {where}", b)


def _map(m: TensorMap, p: Printer) -> None:
    parts = f"axes={m.axes}, box={m.box}, swizzle={m.swizzle}"
    p.line(f"{p.name(m)} = tensor_map({p.name(m.tensor)}, {parts})", m)


def _kernel(k: ThreadKernel, p: Printer) -> None:
    params = [p.name(m) for m in k.maps]
    params += [f"{p.name(t)}: Tensor({describe(t, p)})" for t in k.tensors]
    params += [declared(v, p) for v in k.scalars]
    p.line(f"kernel {k.name}({', '.join(params)}):", k)
    p.depth += 1
    threads = f"{k.threads}, of the program {k.user_threads}, at least {k.min_blocks} block(s)"
    p.line(f"launch grid={p.text(k.grid)} threads={threads}", k)
    for text in k.sources:
        p.line(f"source {text!r}", k)
    p.line(f"shared bytes: {k.dynamic_bytes} dynamic, {k.static_bytes} static", k)
    launched = "" if k.launched is None else f" of {p.text(k.launched)} launched"
    p.line(f"blocks {p.text(k.block_vars)}{launched}, threads {p.text(k.thread_vars)}", k)
    for part in (*k.maps, *k.shared):
        p.write(part)
    for b in k.locals:
        p.line(f"{p.name(b)} = local({describe(b, p)})", b)
    p.write(k.body)
    p.depth -= 1


def _program(program: Program, p: Printer) -> None:
    params = ", ".join(parameter(x, p) for x in program.params)
    notes = [f"sizes={p.text(program.sizes)}"] if program.sizes else []
    notes += [f"outputs={program.outputs}"] if program.outputs else []
    alignments = ", ".join(f"{p.name(a.buffer)}: {a.bytes}" for a in program.aligned)
    notes += [f"aligned={alignments}"] if program.aligned else []
    comment = f"  # {', '.join(notes)}" if notes else ""
    p.line(f"program {program.name}({params}):{comment}", program)
    p.depth += 1
    for b in program.workspaces:
        p.line(f"{p.name(b)} = workspace({describe(b, p)})", b)
    for k in program.kernels:
        p.write(k)
    p.depth -= 1


_LINES: dict[type[Node], Callable[[Any, Printer], None]] = {
    Invoke: _invoke, VectorCopy: _vector_copy, WarpRoles: _roles, Role: _role, SharedSlot: _slot,
    TensorMap: _map, ThreadKernel: _kernel, Program: _program,
    Comment: lambda stmt, p: p.line(f"# {stmt.text}", stmt),
}  # fmt: skip
PRINTERS.update(_LINES)
TEXTS.update({
    Ref: _ref,
    SharedDescriptor: _descriptor,
    TensorMap: lambda m, p: p.name(m),
    Intrinsic: lambda record, p: record.name,
})  # fmt: skip
