"""Statements and kernels that both dialects share."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from math import prod

from tilelab.dtypes import DType
from tilelab.errors import Loc
from tilelab.ir.buffer import Buffer
from tilelab.ir.core import Node, children, walk
from tilelab.ir.expr import Expr, Var


@dataclass(frozen=True, eq=False)
class Stmt(Node):
    """Base of statements. `loc` is the Python text a statement comes from; every node that a
    pass creates takes it from the node it replaces."""

    loc: Loc | None = field(default=None, kw_only=True)


@dataclass(frozen=True, eq=False)
class Seq(Stmt):
    """Statements one after another."""

    body: tuple[Stmt, ...]


class LoopKind(enum.Enum):
    """How the iterations of a loop run.

    LANES: independent iterations over registers of one thread, always unrolled; the simulator
    runs them as one array axis. The others run in order.
    """

    SERIAL = "serial"
    UNROLL = "unroll"
    LANES = "lanes"
    PIPELINED = "pipelined"  # tile IR only


OWN_ELEMENTS = "own_elements"
"""Attribute of a serial loop: no thread touches an element that another thread touches in it."""
AGREED = "agreed"
"""Attribute of a loop of one op: what it stores is the same in all threads that run it."""


@dataclass(frozen=True, eq=False)
class For(Stmt):
    """`for var in range(start, start + extent * step, step)`; `extent` counts iterations."""

    var: Var
    start: Expr
    extent: Expr
    step: Expr
    kind: LoopKind
    body: Seq
    num_stages: int | None = None  # of a PIPELINED loop
    attrs: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True, eq=False)
class ParallelFor(Stmt):
    """`for i, j in T.Parallel(M, N)`: every point once, spread over the threads (tile IR only)."""

    vars: tuple[Var, ...]
    extents: tuple[Expr | int, ...]
    body: Seq
    attrs: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True, eq=False)
class If(Stmt):
    """A branch; `orelse` may be empty. `threads` (first, count), in tile IR: the range of threads
    that take it, where the tile operations of `then` are spread over just these. `guard`: the
    compiler's own, around an access that the program does not guard: the element exists."""

    cond: Expr
    then: Seq
    orelse: Seq | None = None
    threads: tuple[int, int] | None = None
    guard: bool = False


@dataclass(frozen=True, eq=False)
class While(Stmt):
    """Repeat while the condition holds; it is evaluated before every iteration."""

    cond: Expr
    body: Seq


@dataclass(frozen=True, eq=False)
class Break(Stmt):
    """Leave the innermost loop."""


@dataclass(frozen=True, eq=False)
class Continue(Stmt):
    """Go on with the innermost loop's next iteration."""


def may_leave(body: Node) -> bool:
    """Whether a break or continue stands under `body`: an iteration may end before its last
    statement."""
    return any(isinstance(n, Break | Continue) for n in walk(body))


def leaves(body: Node, kinds: tuple[type[Node], ...]) -> bool:
    """Whether a break or continue of the loop that `body` is the body of stands in it: those of
    loops inside are theirs."""
    if isinstance(body, kinds):
        return True
    inner = (n for n in children(body) if not isinstance(n, For | While | Expr))
    return any(leaves(n, kinds) for n in inner)


@dataclass(frozen=True, eq=False)
class Let(Stmt):
    """Bind `var` to a value once; it stays valid to the end of the enclosing Seq."""

    var: Var
    value: Expr


@dataclass(frozen=True, eq=False)
class Store(Stmt):
    """`buffer[indices] = value`, converted to the buffer's type."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr


@dataclass(frozen=True, eq=False)
class Alloc(Stmt):
    """A buffer begins to exist here (shared, fragment, local, barrier)."""

    buffer: Buffer


RESIDENT = Var("resident_blocks", lo=1)
"""In the extents of a grid: how many blocks of the kernel the device holds at once, which the
launcher finds out for the device at hand (multiprocessors times blocks on each)."""


@dataclass(frozen=True, eq=False)
class Kernel(Stmt):
    """One device kernel of a function: its launch and its body.

    `grid` has 1 to 3 extents in x, y, z order; `block_vars` one variable for each. `launched` is
    the number of blocks along x, where the body reads it (gridDim.x).
    """

    grid: tuple[Expr, ...]
    threads: tuple[int, ...]
    block_vars: tuple[Var, ...]
    thread_vars: tuple[Var, ...]
    body: Seq
    attrs: tuple[tuple[str, object], ...] = ()
    launched: Var | None = None

    @property
    def num_threads(self) -> int:
        return prod(self.threads)


@dataclass(frozen=True, eq=False)
class TensorParam(Node):
    """A tensor of the call: a GLOBAL buffer whose shape may hold size variables."""

    buffer: Buffer

    @property
    def name(self) -> str:
        return self.buffer.name


@dataclass(frozen=True, eq=False)
class ScalarParam(Node):
    """A runtime number of the call."""

    var: Var

    @property
    def name(self) -> str:
        return self.var.name

    @property
    def dtype(self) -> DType:
        return self.var.dtype


@dataclass(frozen=True, eq=False)
class Function(Node):
    """A traced program: parameters and one or more kernels, launched in order.

    `sizes` are the T.dynamic variables that appear in shapes and strides. `outputs` are the
    indices of parameters created by T.empty and returned (eager style).
    """

    name: str
    params: tuple[TensorParam | ScalarParam, ...]
    kernels: tuple[Kernel, ...]
    sizes: tuple[Var, ...] = ()
    outputs: tuple[int, ...] = ()
    attrs: tuple[tuple[str, object], ...] = ()
    workspaces: tuple[Buffer, ...] = ()
    loc: Loc | None = field(default=None, kw_only=True)
