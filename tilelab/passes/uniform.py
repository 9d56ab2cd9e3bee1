"""Which values all threads of a block have in common. Hides how a difference spreads: from the
thread's index through names, registers, addresses, and what is stored under branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tilelab.ir import (
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Node,
    Scope,
    Stmt,
    Store,
    Var,
    While,
    children,
    walk,
)
from tilelab.ir.stmt import AGREED, may_leave
from tilelab.thread.nodes import Invoke, Ref, ThreadKernel, VectorCopy


class Uniformity:
    """Knows the names and register arrays of one kernel that may differ between threads."""

    def __init__(self, kernel: ThreadKernel | Kernel) -> None:
        self.varying = {id(v) for v in kernel.thread_vars}
        size = -1
        while size != len(self.varying):  # a loop may feed what stands before in its body
            size = len(self.varying)
            self._visit(kernel.body, False)

    def differs(self, value: Expr) -> bool:
        """Whether an expression may have different values in different threads."""
        return any(id(n) in self.varying for n in _sources(value))

    def takes_apart(self, stmt: Node) -> bool:
        """Whether threads may take a branch, or go round a loop, differently often."""
        heads: dict[type[Node], Callable[[Any], tuple[Expr, ...]]] = {
            If: lambda s: (s.cond,), While: lambda s: (s.cond,),
            For: lambda s: (s.start, s.extent, s.step),
        }  # fmt: skip
        rule = heads.get(type(stmt))
        if rule is None:
            return False
        leaves = isinstance(stmt, For | While) and self._left_apart(stmt.body)
        return leaves or any(self.differs(e) for e in rule(stmt))

    def _left_apart(self, body: Node) -> bool:
        """Whether some threads may leave a loop's body before others do."""
        for n in children(body):
            if isinstance(n, If) and self.differs(n.cond):
                if may_leave(n):
                    return True
            elif not isinstance(n, For | While | Expr) and self._left_apart(n):
                return True
        return False

    def _visit(self, node: Node, apart: bool) -> None:
        """`apart`: only some threads may come here together."""
        rule = _RULES.get(type(node))
        if rule is not None:
            rule(self, node, apart)
        if isinstance(node, Stmt):
            apart = apart or self.takes_apart(node)
        if not apart and isinstance(node, For) and any(key == AGREED for key, _ in node.attrs):
            return
        for child in children(node):
            if not isinstance(child, Expr):
                self._visit(child, apart)

    def _let(self, s: Let, apart: bool) -> None:
        if self.differs(s.value):
            self.varying.add(id(s.var))

    def _loop(self, s: For, apart: bool) -> None:
        if self.differs(s.start) or self.differs(s.step):
            self.varying.add(id(s.var))

    def _store(self, s: Store, apart: bool) -> None:
        mixed = apart or self.differs(s.value) or any(self.differs(i) for i in s.indices)
        if s.buffer.scope is Scope.LOCAL and mixed:
            self.varying.add(id(s.buffer.storage))

    def _copy(self, s: VectorCopy, apart: bool) -> None:
        mixed = apart or self._place_differs(s.src) or self._place_differs(s.dst)
        if s.dst.buffer.scope is Scope.LOCAL and mixed:
            self.varying.add(id(s.dst.buffer.storage))

    def _place_differs(self, place: Ref) -> bool:
        held = place.buffer.scope is Scope.LOCAL and id(place.buffer.storage) in self.varying
        return held or any(self.differs(i) for i in place.indices)

    def _invoke(self, s: Invoke, apart: bool) -> None:
        """What an instruction gives may differ where its operands do; an atomic's old value and
        what no operand determines always may."""
        places = [o for o in s.operands if isinstance(o, Ref)]
        values = [o for o in s.operands if isinstance(o, Expr)]
        mixed = apart or s.intrinsic.cost == "atomic" or not (places or values)
        mixed = mixed or any(map(self._place_differs, places)) or any(map(self.differs, values))
        if not mixed:
            return
        if s.result is not None:
            self.varying.add(id(s.result))
        for param, operand in zip(s.intrinsic.operands, s.operands, strict=True):
            written = isinstance(operand, Ref) and param.role in ("writes", "updates")
            if written and operand.buffer.scope is Scope.LOCAL:  # type: ignore[union-attr]
                self.varying.add(id(operand.buffer.storage))  # type: ignore[union-attr]


def _sources(value: Expr) -> Iterable[Node]:
    """The names and register arrays that a value is made from."""
    for n in walk(value):
        if isinstance(n, Var):
            yield n
        elif isinstance(n, Load) and n.buffer.scope is Scope.LOCAL:
            yield n.buffer.storage


_RULES: dict[type[Node], Callable[[Uniformity, Any, bool], None]] = {
    Let: Uniformity._let, For: Uniformity._loop, Store: Uniformity._store,  # pyright: ignore[reportPrivateUsage]
    VectorCopy: Uniformity._copy, Invoke: Uniformity._invoke,  # pyright: ignore[reportPrivateUsage]
}  # fmt: skip
