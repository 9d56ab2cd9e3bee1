"""One `__global__` function: its signature, the head that places its buffers, its body."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tilelab.codegen.access import is_register
from tilelab.codegen.context import Context
from tilelab.codegen.expr import expr
from tilelab.codegen.first_values import may_be_unset
from tilelab.codegen.source import WIDTH
from tilelab.codegen.stmt import statements
from tilelab.codegen.values import type_name
from tilelab.dtypes import UINT64, DType
from tilelab.ir import Buffer, Const, Node, Pool, Scope, Store, Var, walk
from tilelab.thread.nodes import Invoke, Ref, SharedSlot, TensorMap, ThreadKernel, VectorCopy

DYNAMIC = "buf_dyn_shmem"
_WRITES = frozenset({"writes", "updates"})


def kernel(ctx: Context, name: str) -> None:
    """Write the kernel `ctx.kernel` under the name `name`."""
    k, out = ctx.kernel, ctx.out
    bounds = f"{k.num_threads}, {k.min_blocks}"
    out.line(f'extern "C" __global__ void __launch_bounds__({bounds})', k, k.loc)
    _signature(ctx, name)
    with out.indented():
        _shared(ctx)
        _locals(ctx)
        _views(ctx)
        _indices(ctx)
        statements(k.body, ctx)
    out.line("}")


def _type(dtype: DType, ctx: Context) -> str:
    ctx.preamble.use_type(dtype)
    return type_name(dtype)


# ---- signature ----------------------------------------------------------------------------------


def _signature(ctx: Context, name: str) -> None:
    """Parameters packed into lines, aligned after the opening parenthesis."""
    line, nodes = f"{name}(", list[Node]()
    params = list(_parameters(ctx))
    for number, (text, node) in enumerate(params):
        closing = ") {" if number == len(params) - 1 else ","
        if nodes and len(line) + len(text) + len(closing) + 1 > WIDTH:
            _signature_line(line, nodes, ctx)
            line, nodes = " " * len(name), []
        line += (" " if nodes or number else "") + text + closing
        nodes.append(node)
    _signature_line(line if params else f"{line}) {{", nodes, ctx)


def _signature_line(line: str, nodes: list[Node], ctx: Context) -> None:
    ctx.out.line(line)
    for node in nodes:
        ctx.out.link(node, getattr(node, "loc", None))


def _parameters(ctx: Context) -> Iterator[tuple[str, Node]]:
    k = ctx.kernel
    written = written_tensors(k)
    for tensor_map in k.maps:
        name = ctx.names.declare(tensor_map, tensor_map.name)
        yield f"const __grid_constant__ TensorMap {name}", tensor_map
    for tensor in k.tensors:
        const = "" if id(tensor) in written else "const "
        name = ctx.names.declare(tensor, tensor.name)
        alone = "" if any(b is tensor for b in k.may_alias) else "__restrict__ "
        yield f"{const}{_type(tensor.dtype, ctx)}* {alone}{name}", tensor
    for scalar in k.scalars:
        name = ctx.names.declare(scalar, scalar.name)
        yield f"{_type(scalar.dtype, ctx)} {name}", scalar


def written_tensors(k: ThreadKernel) -> set[int]:
    """Identities of the buffers that the kernel writes, by stores, instructions or TMA."""
    written: set[int] = set()
    for node in walk(k.body):
        rule = _WRITTEN.get(type(node))
        if rule is not None:
            written.update(id(part) for buffer in rule(node) for part in (buffer, buffer.storage))
    return written


def _written_by(stmt: Invoke) -> Iterator[Buffer]:
    pairs = list(zip(stmt.intrinsic.operands, stmt.operands, strict=False))
    sends = any(p.role == "reads" for p, _ in pairs)  # with a map: shared memory to the tensor
    for param, value in pairs:
        if param.role in _WRITES and isinstance(value, Ref):
            yield value.buffer
        elif sends and isinstance(value, TensorMap):
            yield value.tensor


_WRITTEN: dict[type[Node], Callable[[Any], Iterable[Buffer]]] = {
    Store: lambda s: (s.buffer,),
    VectorCopy: lambda s: (s.dst.buffer,),
    Invoke: _written_by,
}


# ---- buffers and indices ------------------------------------------------------------------------


def _shared(ctx: Context) -> None:
    slots = sorted(ctx.kernel.shared, key=lambda slot: slot.offset)
    dynamic = [slot for slot in slots if slot.dynamic]
    if dynamic:
        ctx.out.line(f"extern __shared__ __align__(1024) unsigned char {DYNAMIC}[];")
    for slot in dynamic:
        name, kind = _declare(slot.buffer, ctx)
        text = f"{kind}* {name} = reinterpret_cast<{kind}*>({DYNAMIC} + {slot.offset});"
        ctx.out.line(text, slot.buffer, slot.buffer.loc)
    for slot in slots:
        if not slot.dynamic:
            _static(slot, ctx)


def _static(slot: SharedSlot, ctx: Context) -> None:
    buffer = slot.buffer
    name, kind = _declare(buffer, ctx)
    size = UINT64.bytes if buffer.scope is Scope.BARRIER else buffer.dtype.bytes
    alignment = max(16, getattr(buffer.layout, "alignment", 16))
    text = f"__shared__ __align__({alignment}) {kind} {name}[{-(-slot.num_bytes // size)}];"
    ctx.out.line(text, buffer, buffer.loc)


def _declare(buffer: Buffer, ctx: Context) -> tuple[str, str]:
    """The name and the element type of an on-chip buffer."""
    dtype = UINT64 if buffer.scope is Scope.BARRIER else buffer.dtype
    return ctx.names.declare(buffer, buffer.name), _type(dtype, ctx)


def _locals(ctx: Context) -> None:
    for buffer in ctx.kernel.locals:
        if buffer.alias_of is not None:
            _view(buffer, "", ctx)
            continue
        name, kind = _declare(buffer, ctx)
        text = f"alignas(16) {kind} {name}[{buffer.static_shape[0]}];"
        if is_register(buffer):
            text = f"{kind} {name};"
            if may_be_unset(buffer, ctx.kernel.body):
                text = f"{kind} {name} = {expr(Const(0, buffer.dtype), ctx)};"
        ctx.out.line(text, buffer, buffer.loc)


def _views(ctx: Context) -> None:
    written = written_tensors(ctx.kernel)
    for buffer in ctx.kernel.views:
        if not isinstance(buffer, Pool):  # whose address is looked up at each access
            _view(buffer, "" if id(buffer) in written else "const ", ctx)


def _view(buffer: Buffer, const: str, ctx: Context) -> None:
    """The bytes of another buffer under a name and an element type of their own."""
    storage = ctx.name(buffer.storage)
    name, kind = _declare(buffer, ctx)
    text = f"{const}{kind}* {name} = reinterpret_cast<{const}{kind}*>({storage});"
    ctx.out.line(text, buffer, buffer.loc)


def _indices(ctx: Context) -> None:
    """Built-in variables that the body uses, as ints: `blockIdx.x` itself is unsigned."""
    k = ctx.kernel
    used = {id(node) for node in walk(k.body) if isinstance(node, Var)}
    by_type: dict[str, list[tuple[Var, str]]] = {}
    launched = () if k.launched is None else (k.launched,)
    built_in = ((k.block_vars, "blockIdx"), (launched, "gridDim"), (k.thread_vars, "threadIdx"))
    for variables, source in built_in:
        for var, axis in zip(variables, "xyz", strict=False):
            if id(var) in used:
                text = f"{ctx.names.declare(var, var.name)} = {source}.{axis}"
                by_type.setdefault(_type(var.dtype, ctx), []).append((var, text))
    for kind, found in by_type.items():
        ctx.out.line(f"const {kind} {', '.join(text for _, text in found)};")
        for var, _ in found:
            ctx.out.link(var, k.loc)
