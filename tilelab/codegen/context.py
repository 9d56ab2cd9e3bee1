"""What the printing functions of one kernel share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

from tilelab.codegen.names import Names
from tilelab.codegen.preamble import Preamble
from tilelab.codegen.source import Writer
from tilelab.errors import TileInternalError
from tilelab.ir import Buffer, Expr, Node, Var, walk
from tilelab.ir.rewrite import substitute
from tilelab.thread.nodes import TensorMap, ThreadKernel


@dataclass
class Context:
    """State of one kernel while it is written.

    `inlined` maps variables of loops that run once to their value: such a loop leaves no text.
    `decodes_fp8`: 8-bit floats are taken apart by bits, for the chip has no conversion of them.
    """

    kernel: ThreadKernel
    names: Names
    preamble: Preamble
    out: Writer
    declared: set[int] = field(default_factory=set[int])
    inlined: dict[Var, Expr] = field(default_factory=dict[Var, Expr])
    decodes_fp8: bool = False

    @cached_property
    def _mentions(self) -> Counter[int]:
        return Counter(id(n) for n in walk(self.kernel.body) if isinstance(n, Var))

    def is_wanted(self, result: Var) -> bool:
        """Whether something reads the result of an instruction: a function of the program's own
        that is called as a statement may return nothing."""
        return self._mentions[id(result)] > 1

    def resolve(self, e: Expr) -> Expr:
        """`e` with the variables of single-iteration loops replaced."""
        return substitute(e, self.inlined) if self.inlined else e

    def name(self, node: Var | Buffer | TensorMap) -> str:
        """The name of a variable, buffer or map; TileInternalError when it has none."""
        name = self.names.of(node)
        if name is None:
            raise internal(f"{node.name} is used in kernel {self.kernel.name} and not declared")
        return name


def internal(message: str, node: Node | None = None) -> TileInternalError:
    """A broken rule of thread IR, found while it was printed."""
    return TileInternalError(
        message,
        loc=getattr(node, "loc", None),
        hint="this is a bug of tilelab: please report it with the program",
    )
