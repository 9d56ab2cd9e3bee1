"""Thread IR: what one CUDA thread (or a warp, or a warpgroup together) does.

Shares Seq, For (SERIAL, UNROLL, LANES), If, While, Let, Store, Break, Continue with tile IR and
adds vector copies, instructions and warp roles. Buffers keep *logical* indices: a SHARED buffer
has its `layout` (None: row-major) and a byte offset in the block's shared memory, LOCAL buffers
are one-dimensional registers, GLOBAL buffers have strides. So codegen prints an address and the
simulator reports "A_shared[1, 17, 3]" from the same node.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from tilelab.dtypes import DType
from tilelab.errors import Loc
from tilelab.ir import Buffer, Expr, Node, ScalarParam, Seq, Stmt, TensorParam, Var
from tilelab.thread.intrinsic import Intrinsic


@dataclass(frozen=True, eq=False)
class Ref(Node):
    """A place in a buffer used as an operand: memory at an address, or `count` registers.

    For LOCAL buffers `indices` has one entry, the first register. For memory, `count` is the
    number of consecutive elements that the operand spans (1 where the instruction decides).
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    count: int = 1


@dataclass(frozen=True, eq=False)
class SharedDescriptor(Node):
    """A wgmma shared-memory matrix descriptor (PTX ISA, "Matrix-descriptor format").

    `ref` is the first element of the operand; `leading` and `stride` are the byte offsets LBO and
    SBO; `swizzle` is 0, 32, 64 or 128 bytes. `advance` (bytes) is added to the start address;
    so is `slot` (bytes up to a slot, never negative), which is unknown until the kernel runs.
    """

    ref: Ref
    leading: int
    stride: int
    swizzle: int
    advance: Expr | None = None
    slot: Expr | None = None


@dataclass(frozen=True, eq=False)
class TensorMap(Node):
    """A TMA descriptor of a tensor parameter, built by the host before the launch.

    `axes` are the tensor's axes from the innermost map dimension outwards, `box` the box's
    extents in the same order (elements). Coordinates in instructions follow that order too.
    `swizzle` is 0, 32, 64 or 128 bytes. Reads past the tensor give 0, writes are dropped.
    """

    name: str
    tensor: Buffer
    axes: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int


Operand = Expr | Ref | SharedDescriptor | TensorMap


@dataclass(frozen=True, eq=False)
class Invoke(Stmt):
    """One instruction (or helper) applied to operands, in the order of `intrinsic.operands`.

    `reason` says why a synchronisation stands here; pictures and errors quote it. `result` is
    bound once, like a Let, to the value that the instruction gives: it is valid to the end of the
    enclosing Seq.
    """

    intrinsic: Intrinsic
    operands: tuple[Operand, ...]
    reason: str = ""
    result: Var | None = None

    @property
    def tensors(self) -> list[Buffer]:
        """Those that it reads or writes boxes of, by TMA."""
        return [o.tensor for o in self.operands if isinstance(o, TensorMap)]

    @property
    def loaded(self) -> list[Buffer]:
        """Those that it reads boxes of: a TMA load completes at an mbarrier, a store does not."""
        waits = any(p.role == "barrier" for p in self.intrinsic.operands)
        return self.tensors if waits else []


@dataclass(frozen=True, eq=False)
class VectorCopy(Stmt):
    """Copy `count` consecutive elements in one access: at most 16 bytes, aligned to their size.

    Source and destination have one dtype and are consecutive along their last axis (registers:
    along the register number). This is a plain load/store, not an asynchronous copy.
    """

    dst: Ref
    src: Ref
    count: int


@dataclass(frozen=True, eq=False)
class Role(Node):
    """One warp role: threads `first` to `first + count - 1` of the block run `body`.

    own_barriers: whether a T.sync_threads that the program wrote inside joins these threads alone
    (T.ws says so; a branch on the thread index does not). apart: how many threads in a row go
    their own way through loops and branches (a warpgroup); 0: the role stays together.
    """

    name: str
    first: int
    count: int
    body: Seq
    own_barriers: bool = True
    apart: int = 0


@dataclass(frozen=True, eq=False)
class WarpRoles(Stmt):
    """A branch on the thread index in which every side runs at the same time as the others."""

    roles: tuple[Role, ...]


@dataclass(frozen=True, eq=False)
class Comment(Stmt):
    """A line of explanation for the reader of the generated text; means nothing."""

    text: str = ""


UNPLACED = -1
"""Offset of a slot before shared memory is planned."""


@dataclass(frozen=True, eq=False)
class SharedSlot(Node):
    """Where a SHARED or BARRIER buffer lies in the block's shared memory, in bytes.

    `of_one_op`: a lowering made it for one op, which writes it before it reads it, every time.
    `yields`: it is there because there was room; the kernel is compiled without it otherwise.
    """

    buffer: Buffer
    offset: int
    num_bytes: int
    dynamic: bool
    of_one_op: bool = False
    yields: bool = False

    def crosses(self, other: SharedSlot) -> bool:
        """Whether the two have bytes in common."""
        ends = self.offset + self.num_bytes, other.offset + other.num_bytes
        both = self.dynamic == other.dynamic
        return both and self.offset < ends[1] and other.offset < ends[0]


@dataclass(frozen=True, eq=False)
class ThreadKernel(Node):
    """One `__global__` function and its launch.

    `tensors` and `scalars` are in the order of the CUDA parameters: tensor maps first, then
    tensor pointers, then scalars (runtime numbers and dynamic sizes). `locals` are the register
    arrays; `shared` the plan of shared memory; `views` name the bytes of tensors anew.
    `dynamic_bytes` is what the launch asks for; barriers stand in static shared memory. `threads`
    is the final block size (with producer warps), `user_threads` what the program wrote.
    `sources` is CUDA text of the program's own that stands before the kernels; `may_alias` are
    tensors that may share memory with others. `launched` is gridDim.x, where the kernel reads it.
    """

    name: str
    maps: tuple[TensorMap, ...]
    tensors: tuple[Buffer, ...]
    scalars: tuple[Var, ...]
    grid: tuple[Expr, ...]
    threads: tuple[int, ...]
    user_threads: tuple[int, ...]
    block_vars: tuple[Var, ...]
    thread_vars: tuple[Var, ...]
    locals: tuple[Buffer, ...]
    shared: tuple[SharedSlot, ...]
    dynamic_bytes: int
    static_bytes: int
    body: Seq
    min_blocks: int = 1
    sources: tuple[str, ...] = ()
    views: tuple[Buffer, ...] = ()
    may_alias: tuple[Buffer, ...] = ()
    launched: Var | None = None
    loc: Loc | None = field(default=None, kw_only=True)

    @property
    def num_threads(self) -> int:
        return prod(self.threads)

    def slot(self, buffer: Buffer) -> SharedSlot:
        """The place of a shared buffer; KeyError when it has none."""
        for slot in self.shared:
            if slot.buffer is buffer:
                return slot
        raise KeyError(buffer.name)


LONGEST_AXIS = (1 << 31) - 1 - 256
"""What the signed 32-bit coordinates of TMA reach, with a box beyond the end."""


@dataclass(frozen=True, eq=False)
class Alignment(Node):
    """Base and (`rows`) rows of `buffer` lie at multiples of `bytes`: a TMA map or wide accesses
    need it. A view has rows of its own, known when it is compiled. `short`: no axis is longer than
    LONGEST_AXIS, for TMA's coordinates."""

    buffer: Buffer
    bytes: int
    rows: bool = True
    short: bool = False

    def joined(self, other: Alignment | None) -> Alignment:
        """What this need and another one of the same buffer ask together."""
        if other is None:
            return self
        return Alignment(
            self.buffer, max(self.bytes, other.bytes), self.rows or other.rows,
            self.short or other.short,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Program(Node):
    """A lowered function: what the launcher and the simulator run.

    `workspaces` are global buffers made anew for each call and not seen by the caller.
    `aligned` records the assumption this variant was built under (the launcher checks it and
    otherwise takes the general variant, or says so). `by_hand`: whether the program orders
    accesses to shared memory itself, so that a race may be its own fault.
    """

    name: str
    params: tuple[TensorParam | ScalarParam, ...]
    sizes: tuple[Var, ...]
    kernels: tuple[ThreadKernel, ...]
    outputs: tuple[int, ...]
    aligned: tuple[Alignment, ...] = ()
    workspaces: tuple[Buffer, ...] = ()
    by_hand: bool = False

    def dtype_of(self, name: str) -> DType:
        """Element type of a parameter."""
        return next(
            p.buffer.dtype for p in self.params if isinstance(p, TensorParam) and p.name == name
        )
