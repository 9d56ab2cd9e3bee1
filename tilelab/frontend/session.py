"""The state of one trace: the builder, the open kernel, and the parameters found so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tilelab.errors import Loc, TileRuntimeError
from tilelab.frontend.types import TensorType
from tilelab.ir import Alloc, Buffer, Expr, Kernel, ScalarBuffer, ScalarParam, Seq, Stmt, Var, walk
from tilelab.ir.builder import Builder, current, seq
from tilelab.ir.rewrite import substitute


@dataclass
class OpenKernel:
    """A kernel whose body is being traced."""

    grid: tuple[Expr, ...]
    threads: tuple[int, ...]
    block_vars: tuple[Var, ...]
    thread_vars: tuple[Var, ...]
    loc: Loc | None
    attrs: dict[str, object] = field(default_factory=dict[str, object])
    layouts: dict[Buffer, Any] = field(default_factory=dict[Buffer, Any])
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    """What a group of names keeps between its calls; no part of the IR."""
    closing: list[Callable[[Seq, OpenKernel], Seq]] = field(
        default_factory=list["Callable[[Seq, OpenKernel], Seq]"]
    )
    """What rewrites the body once all of it is known."""


class SignatureDone(BaseException):
    """Ends phase 1 of an eager function: its parameters are known. Never seen by users."""


class Session(Builder):
    """One trace of one function. `mode` is "lazy", "signature" (phase 1) or "eager" (phase 2).

    `consts` holds T.const variables by name: fresh variables in phase 1, ints in phase 2.
    `tensors` holds the annotated parameters of an eager function, `empties` the T.empty outputs.
    """

    def __init__(self, mode: str, consts: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.mode = mode
        self.consts: dict[str, Any] = consts if consts is not None else {}
        self.tensors: dict[str, TensorType] = {}
        self.buffers: dict[str, Buffer] = {}
        self.scalars: dict[str, ScalarParam] = {}
        self.empties: list[Buffer] = []
        self.outputs: list[Buffer] = []
        self.workspaces: list[Buffer] = []
        self.kernel: OpenKernel | None = None
        self.launches: list[Any] = []  # every T.Kernel(...) that was called
        self.checks: list[Stmt] = []  # of the sizes, made before the kernel that will hold them
        self.returned_at: Loc | None = None  # of the traced function's own return
        self.attrs: dict[str, object] = {}
        self._owned: dict[int, ScalarBuffer] = {}

    def emit(self, stmt: Stmt, *, anywhere: bool = False) -> Stmt:
        """As Builder.emit; statements other than kernels need an open kernel (TL1405)."""
        if self.kernel is None and not isinstance(stmt, Kernel):
            raise TileRuntimeError(
                f"{type(stmt).__name__.lower()} stands outside T.Kernel",
                code="TL1405",
                hint="move it into the body of `with T.Kernel(...)`",
            )
        return super().emit(stmt, anywhere=anywhere)

    def add_view(self, view: Buffer) -> None:
        """Allocate a view where its storage begins to exist, so that it lives as long: a copy
        into it may be moved out of the loop it stands in."""
        if self.kernel is None:
            self.emit(Alloc(view, loc=view.loc))  # raises: outside of a kernel
        for block in reversed(self.blocks):
            allocs = (s for s in block if isinstance(s, Alloc))
            if any(s.buffer is view.storage for s in allocs):
                block.append(Alloc(view, loc=view.loc))
                return
        self.blocks[1].append(Alloc(view, loc=view.loc))  # of a tensor: in the kernel's own block

    def declare(self, name: str, kind: TensorType) -> Buffer:
        """A tensor parameter: its buffer, the same for every declaration of the name."""
        self.tensors[name] = kind
        buffer = self.buffers[name] = kind.buffer(name)
        return buffer

    def owns(self, buffer: ScalarBuffer) -> bool:
        """Whether a name holds this alloc_var already."""
        return id(buffer) in self._owned

    def own(self, buffer: ScalarBuffer) -> None:
        """A name now holds this alloc_var: reading that name elsewhere takes its value."""
        self._owned[id(buffer)] = buffer

    def open_kernel(self, kernel: OpenKernel) -> None:
        """Begin a kernel's body. TileRuntimeError (TL1406) inside another kernel."""
        if self.mode == "signature":
            raise SignatureDone
        if self.kernel is not None:
            raise TileRuntimeError(
                "a T.Kernel stands inside another T.Kernel",
                code="TL1406",
                notes=[f"the outer one is at {self.kernel.loc}"],
                hint="write kernels one after another; they are launched in order",
            )
        self.kernel = kernel
        self.open_block()
        for check in self.checks:
            super().emit(check)
        self.checks.clear()

    def close_kernel(self) -> None:
        """End the open kernel's body and emit the kernel."""
        kernel = self.kernel
        assert kernel is not None
        body = with_layouts(seq(self.close_block(), kernel.loc), kernel.layouts)
        for rewritten in kernel.closing:
            body = rewritten(body, kernel)
        self.kernel = None
        super().emit(
            Kernel(
                kernel.grid, kernel.threads, kernel.block_vars, kernel.thread_vars,
                body, tuple(kernel.attrs.items()), loc=kernel.loc,
            ),
            anywhere=True,
        )  # fmt: skip


def with_layouts(body: Seq, layouts: Mapping[Buffer, Any]) -> Seq:
    """A kernel's body with the layouts that the program chose written into its buffers."""
    if not layouts:
        return body
    new = {b: replace(b, layout=layout) for b, layout in layouts.items()}
    for node in walk(body):
        view = node.buffer if isinstance(node, Alloc) else None
        if view is not None and view.storage is not view and view.storage in new:
            new[view] = replace(new.get(view, view), alias_of=new[view.storage])
    return substitute(body, buffers=new)


def session() -> Session:
    """The current trace. TileRuntimeError (TL1401) outside of one."""
    builder = current()
    if not isinstance(builder, Session):
        raise TileRuntimeError("no traced function is open", code="TL1401")
    return builder


def open_kernel(what: str) -> OpenKernel:
    """The kernel whose body is being traced. TileRuntimeError (TL1405) when none is."""
    kernel = session().kernel
    if kernel is None:
        raise TileRuntimeError(
            f"{what} stands outside T.Kernel",
            code="TL1405",
            hint="move it into the body of `with T.Kernel(...)`",
        )
    return kernel
