"""The rules of thread IR: its nodes' entries in the tables of `ir.verify`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tilelab.ir import RESIDENT, Node, ScalarParam, Scope
from tilelab.ir.verify import BINDERS, DECLARES, NODE_RULES
from tilelab.thread.nodes import (
    Invoke,
    Program,
    Ref,
    SharedDescriptor,
    TensorMap,
    ThreadKernel,
    VectorCopy,
    WarpRoles,
)

_MEMORY = frozenset({"reads", "writes", "updates"})
_KINDS = {"barrier": Ref, "descriptor": SharedDescriptor, "map": TensorMap}


def _ref(ref: Ref) -> Iterator[str]:
    if len(ref.indices) != ref.buffer.rank:
        yield f"{ref.buffer.name} has {ref.buffer.rank} axes and gets {len(ref.indices)} indices"


def _invoke(stmt: Invoke) -> Iterator[str]:
    record = stmt.intrinsic
    if len(record.operands) != len(stmt.operands):
        yield f"{record.name} takes {len(record.operands)} operands, not {len(stmt.operands)}"
        return
    for param, value in zip(record.operands, stmt.operands, strict=True):
        expected = Ref if param.role in _MEMORY else _KINDS.get(param.role)
        if expected is not None and not isinstance(value, expected):
            yield f"{param.name} of {record.name} is a {type(value).__name__}"
        elif expected is None and isinstance(value, (Ref, SharedDescriptor, TensorMap)):
            yield f"{param.name} of {record.name} is a {type(value).__name__}, not a value"
        elif isinstance(value, Ref):
            yield from _scope(param.name, param.role, value)


def _scope(name: str, role: str, ref: Ref) -> Iterator[str]:
    is_barrier = ref.buffer.scope is Scope.BARRIER
    if is_barrier != (role == "barrier"):
        what = "no barrier" if role == "barrier" else "a barrier"
        yield f"{name} refers to {ref.buffer.name}, which is {what}"


def _vector_copy(stmt: VectorCopy) -> Iterator[str]:
    dst, src = stmt.dst.buffer, stmt.src.buffer
    if dst.dtype != src.dtype:
        yield f"a vector copy from {src.dtype} to {dst.dtype}"
    size = stmt.count * dst.dtype.bytes
    if size > 16 or size & (size - 1):
        yield f"a vector copy of {size} bytes"


def _roles(stmt: WarpRoles) -> Iterator[str]:
    taken: list[range] = []
    for role in stmt.roles:
        mine = range(role.first, role.first + role.count)
        if any(mine.start < r.stop and r.start < mine.stop for r in taken):
            yield f"the role {role.name} shares threads with another"
        if role.first % 32 or role.count % 32:
            yield f"the role {role.name} does not consist of whole warps"
        taken.append(mine)


def _kernel(k: ThreadKernel) -> Iterable[Node]:
    shared = [slot.buffer for slot in k.shared]
    launched = () if k.launched is None else (k.launched,)
    return (*k.maps, *k.tensors, *(m.tensor for m in k.maps), *k.scalars, *k.block_vars,
            *k.thread_vars, *launched, *k.locals, *k.views, *shared)  # fmt: skip


def _program(program: Program) -> Iterable[Node]:
    yield RESIDENT
    for param in program.params:
        yield param.var if isinstance(param, ScalarParam) else param.buffer
    yield from program.sizes
    yield from program.workspaces


_RULES: dict[type[Node], Callable[[Any], Iterator[str]]] = {
    Ref: _ref, Invoke: _invoke, VectorCopy: _vector_copy, WarpRoles: _roles,
}  # fmt: skip
_BOUND: dict[type[Node], Callable[[Any], Iterable[Node]]] = {
    ThreadKernel: _kernel, Program: _program,
}  # fmt: skip
NODE_RULES.update(_RULES)
DECLARES[Invoke] = lambda s: None if s.result is None else (s.result, s.operands)
BINDERS.update(_BOUND)
