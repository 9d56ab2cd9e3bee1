"""The order of a reducer's life: begun, updated, finalized, and only then read.

Between, each thread holds a part: what is read then would be wrong without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelab.errors import TileValueError
from tilelab.ir import Buffer, Kernel, Load, Node, ReducerBuffer, Stmt, Store, children
from tilelab.tile.op import TileOp
from tilelab.tile.ops.reducer import ReducerFinish, ReducerInit

_BEGUN, _GATHERS, _FINAL = "begun", "gathers", "final"


def check_reducers(kernel: Kernel) -> None:
    """Refuse updates before T.reducer_init, and reads before T.finalize_reducer, in the order of
    the text. Raises TileValueError (TL1543)."""
    _Lives().visit(kernel.body, None)


class _Lives:
    """The state of each reducer (by id) where the text has come to."""

    def __init__(self) -> None:
        self.state: dict[int, str] = {}

    def visit(self, node: Node, stmt: Stmt | None) -> None:
        stmt = node if isinstance(node, Stmt) else stmt
        rule = _RULES.get(type(node))
        if rule is not None:
            rule(self, node, stmt)
        elif isinstance(node, TileOp):
            for region in node.read_regions():
                self.read(region.buffer, stmt)
        for child in children(node):
            self.visit(child, stmt)

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
        self.state[id(node.dst.buffer)] = _BEGUN

    def finish(self, node: ReducerFinish, stmt: Stmt | None) -> None:
        self.state[id(node.dst.buffer)] = _FINAL


def _early(buffer: Buffer, what: str, hint: str, stmt: Stmt | None) -> TileValueError:
    loc = None if stmt is None else stmt.loc
    return TileValueError(f"the reducer {buffer.name} {what}", code="TL1543", loc=loc, hint=hint)


_RULES: dict[type[Node], Callable[[_Lives, Any, Stmt | None], None]] = {
    Load: _Lives.load, Store: _Lives.store, ReducerInit: _Lives.begin,
    ReducerFinish: _Lives.finish,
}  # fmt: skip
