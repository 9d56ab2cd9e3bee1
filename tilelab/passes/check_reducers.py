"""The order of a reducer's life: begun, updated, finalized, and only then read.

Between, each thread holds a part: what is read then would be wrong without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelab.errors import TileValueError
from tilelab.ir import Buffer, For, Kernel, Load, Node, ReducerBuffer, Stmt, Store, While, children
from tilelab.tile.op import TileOp
from tilelab.tile.ops.reducer import ReducerFinish, ReducerInit

_BEGUN, _GATHERS, _FINAL = "begun", "gathers", "final"


def check_reducers(kernel: Kernel) -> None:
    """Refuse updates before T.reducer_init, reads before T.finalize_reducer, and reducers that are
    not finalized once each time that they are begun, in the order of the text. Raises
    TileValueError (TL1543)."""
    lives = _Lives()
    lives.visit(kernel.body, None)
    lives.ended()


class _Lives:
    """The state of each reducer (by id) where the text has come to."""

    def __init__(self) -> None:
        self.state: dict[int, str] = {}
        self.begun: dict[int, tuple[ReducerInit, tuple[Node, ...]]] = {}  # with its loops
        self.finished: set[int] = set()
        self.loops: tuple[Node, ...] = ()

    def visit(self, node: Node, stmt: Stmt | None) -> None:
        stmt = node if isinstance(node, Stmt) else stmt
        rule = _RULES.get(type(node))
        if rule is not None:
            rule(self, node, stmt)
        elif isinstance(node, TileOp):
            for region in node.read_regions():
                self.read(region.buffer, stmt)
        outer = self.loops
        if isinstance(node, For | While):
            self.loops = (*outer, node)
        for child in children(node):
            self.visit(child, stmt)
        self.loops = outer

    def ended(self) -> None:
        """The end of the kernel."""
        for key, (node, _) in self.begun.items():
            if key not in self.finished:
                name = node.dst.buffer.name
                raise _early(node.dst.buffer, "is never finalized: its parts are lost",
                             f"call T.finalize_reducer({name}, result)", node)  # fmt: skip

    def read(self, buffer: Buffer, stmt: Stmt | None) -> None:
        if self.state.get(id(buffer)) in (_BEGUN, _GATHERS):
            raise _early(buffer, "is read before T.finalize_reducer: each thread has a part of it",
                         f"call T.finalize_reducer({buffer.name}) first", stmt)  # fmt: skip

    def load(self, node: Load, stmt: Stmt | None) -> None:
        is_update = isinstance(stmt, Store) and stmt.buffer is node.buffer
        if not is_update:
            self.read(node.buffer, stmt)

    def store(self, node: Store, stmt: Stmt | None) -> None:
        if not isinstance(node.buffer, ReducerBuffer):
            return
        if id(node.buffer) not in self.state:
            raise _early(node.buffer, "is updated before T.reducer_init",
                         f"call T.reducer_init({node.buffer.name}) first", stmt)  # fmt: skip
        if self.state[id(node.buffer)] != _FINAL:
            self.state[id(node.buffer)] = _GATHERS

    def begin(self, node: ReducerInit, stmt: Stmt | None) -> None:
        buffer = node.dst.buffer
        self.state[id(buffer)] = _BEGUN
        self.begun[id(buffer)] = node, self.loops

    def finish(self, node: ReducerFinish, stmt: Stmt | None) -> None:
        buffer = node.dst.buffer
        self.state[id(buffer)] = _FINAL
        self.finished.add(id(buffer))
        _, loops = self.begun.get(id(buffer), (None, self.loops))
        if loops != self.loops:
            raise _early(buffer, "is not finalized once each time that it is begun: a loop goes "
                         "round one of the two alone", "put T.reducer_init and T.finalize_reducer "
                         "into the same loops", stmt)  # fmt: skip


def _early(buffer: Buffer, what: str, hint: str, stmt: Stmt | None) -> TileValueError:
    loc = None if stmt is None else stmt.loc
    return TileValueError(f"the reducer {buffer.name} {what}", code="TL1543", loc=loc, hint=hint)


_RULES: dict[type[Node], Callable[[_Lives, Any, Stmt | None], None]] = {
    Load: _Lives.load, Store: _Lives.store, ReducerInit: _Lives.begin,
    ReducerFinish: _Lives.finish,
}  # fmt: skip
