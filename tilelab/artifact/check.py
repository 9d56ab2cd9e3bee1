"""What a program of an artefact must be like beyond the types of its fields.

The verifier's rules of lowered programs, operators and functions that exist (host expressions
become Python text), and sizes that a chip and the simulator can hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from tilelab.artifact.schema import LIMITS, refused
from tilelab.dtypes import BOOL
from tilelab.ir import Binary, Buffer, Call, Node, Scope, Unary, const_int, walk
from tilelab.ir.expr import COMPARISONS, LOGICAL
from tilelab.ir.verify import problems
from tilelab.target import Target
from tilelab.thread.mathfn import MATH
from tilelab.thread.nodes import Program, SharedSlot, TensorMap, ThreadKernel

_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>"})
_OPERATORS = _ARITHMETIC | COMPARISONS | LOGICAL
_MAX_RANK, _MAX_KERNELS, _MAX_PARAMS, _MAX_BYTES = 8, 32, 64, 1 << 40


def check_program(program: Program, target: Target) -> None:
    """Raise TileValueError (TL1670) for the first thing that is wrong."""
    for node in _all_nodes(program):
        rule = next((_RULES[k] for k in type(node).__mro__ if k in _RULES), None)
        for problem in rule(node) if rule else ():
            raise refused(problem)
    if len(program.kernels) > _MAX_KERNELS or len(program.params) > _MAX_PARAMS:
        raise refused("more kernels or parameters than a program has")
    for kernel in program.kernels:
        for problem in _kernel(kernel, target):
            raise refused(f"the kernel {kernel.name}: {problem}")
    for found, _ in problems(program, frozenset({"lowered"})):
        raise refused(found.text)
    _check_names(program)


def _all_nodes(program: Program) -> Iterator[Node]:
    """Every node, and those of the shapes of buffers, each once."""
    seen: set[int] = set()
    stack: list[Node] = [program]
    while stack:
        for node in walk(stack.pop()):
            if id(node) in seen:
                continue
            seen.add(id(node))
            yield node
            if isinstance(node, Buffer):
                stack += [s for s in (*node.shape, *(node.strides or ())) if isinstance(s, Node)]
                stack += [b for b in (node.origin, node.alias_of) if b is not None]


def _binary(node: Binary) -> Iterator[str]:
    if node.op not in _OPERATORS:
        yield f"there is no operator {node.op[:20]!r}"


def _unary(node: Unary) -> Iterator[str]:
    if node.op not in ("-", "~", "not"):
        yield f"there is no operator {node.op[:20]!r}"


def _call(node: Call) -> Iterator[str]:
    known = MATH.get(node.fn)
    if known is None or known.arity != len(node.args):
        yield f"there is no function {node.fn[:20]!r} of {len(node.args)} numbers"
    elif known.boolean != (node.dtype == BOOL):
        yield f"{node.fn} gives no {node.dtype}"


def _buffer(node: Buffer) -> Iterator[str]:
    sizes = [const_int(s) for s in node.shape]
    if node.rank > _MAX_RANK or any(s is not None and s < 0 for s in sizes):
        yield f"the buffer {node.name} has the shape {sizes}"
    known = [s for s in sizes if s is not None]
    if math.prod(known) * node.dtype.bytes > _MAX_BYTES:
        yield f"the buffer {node.name} is larger than any memory"
    if node.scope is Scope.LOCAL and (None in sizes or math.prod(known) > LIMITS.registers):
        yield f"{node.name} takes more registers than a thread has"
    shaped = getattr(node.layout, "shape", None)
    if shaped is not None and tuple(shaped) != tuple(sizes):
        yield f"the layout of {node.name} is that of another shape"


def _tensor_map(node: TensorMap) -> Iterator[str]:
    rank = node.tensor.rank
    if not len(node.axes) == len(node.box) <= 5 or any(not 0 <= a < rank for a in node.axes):
        yield f"the tensor map {node.name} has axes that its tensor has not"
    if any(not 0 < extent <= 256 for extent in node.box) or node.swizzle not in (0, 32, 64, 128):
        yield f"the tensor map {node.name} has a box that TMA does not take"


def _slot(node: SharedSlot) -> Iterator[str]:
    if node.offset < 0 or node.num_bytes < 0 or node.offset % 8:
        yield f"{node.buffer.name} has no place in shared memory"


_RULES: dict[type[Node], Callable[[Any], Iterator[str]]] = {
    Binary: _binary, Unary: _unary, Call: _call, Buffer: _buffer,
    TensorMap: _tensor_map, SharedSlot: _slot,
}  # fmt: skip


def _kernel(kernel: ThreadKernel, target: Target) -> Iterator[str]:
    if not all(t > 0 for t in kernel.threads) or kernel.num_threads > LIMITS.threads:
        yield f"{kernel.threads} threads"
    if not 1 <= len(kernel.grid) <= 3 or len(kernel.threads) > 3:
        yield "a grid or block of other than 1 to 3 axes"
    if kernel.sources:
        yield "CUDA text of its own"
    dynamic = [s.offset + s.num_bytes for s in kernel.shared if s.dynamic]
    static = sum(s.num_bytes for s in kernel.shared if not s.dynamic)
    if max(dynamic, default=0) > kernel.dynamic_bytes:
        yield "a shared buffer ends behind the shared memory that is asked for"
    if max(kernel.dynamic_bytes, 0) + static > target.limits.shared_per_block:
        yield "more shared memory than a block may have"
    registers = sum(math.prod(b.static_shape) for b in kernel.locals)
    if registers > LIMITS.registers:
        yield "more registers than a thread has"


def _check_names(program: Program) -> None:
    names = [p.name for p in program.params]
    if len(set(names)) != len(names):
        raise refused("two parameters share a name")
