"""Which blocks of a group run apart: those that would hold each other up.

Blocks of a group run each statement together. Where a role has several loops, one after another,
whose lengths differ between blocks, a block that is through with the first waits for the others,
and they for another role that waits for it. Such blocks get strands of their own, those with the
same lengths together; each block its own where a loop ends by a break, when values say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tilelab.ir import For, Let, LoopKind, Node, Var, walk
from tilelab.sim.code import Code
from tilelab.sim.frame import Array, Frame
from tilelab.thread import WarpRoles


def apart(code: Code, stmt: WarpRoles, frame: Frame) -> list[Any]:
    """Selections of the frame's rows that run by themselves; [None]: all of them together."""
    rows = len(frame.rows)
    if rows == 1:
        return [None]
    lets = {n.var: n.value for n in walk(stmt) if isinstance(n, Let)}
    loops = [n for role in stmt.roles for n in walk(role.body) if _waiting_loop(n, code)]
    if any(isinstance(n, For) and code.exits(n.body) for n in loops):
        return [np.arange(rows) == r for r in range(rows)]
    columns: dict[Var, Array] = {}
    for role in stmt.roles:
        loops = [n for n in walk(role.body) if _waiting_loop(n, code)]
        bounds = [dict(_per_row(n, lets, frame)) for n in loops]
        varying = [b for b in bounds if b]
        if len(varying) > 1:
            columns.update(c for b in varying for c in b.items())
    if not columns:
        return [None]
    _, group = np.unique(np.stack(list(columns.values()), 1), axis=0, return_inverse=True)
    group = group.reshape(-1)
    return [group == g for g in range(int(group.max()) + 1)] if group.max() else [None]


def _waiting_loop(n: Node, code: Code) -> bool:
    return isinstance(n, For) and n.kind is LoopKind.SERIAL and code.waits(n.body)


def _per_row(loop: Node, lets: dict[Var, Any], frame: Frame) -> Iterator[tuple[Var, Array]]:
    """The variables that a loop's bounds come from whose values differ between blocks."""
    assert isinstance(loop, For)
    seen: set[Var] = set()
    open_nodes: list[Node] = [loop.start, loop.extent]
    while open_nodes:
        for n in walk(open_nodes.pop()):
            if not isinstance(n, Var) or n in seen:
                continue
            seen.add(n)
            if n in lets:
                open_nodes.append(lets[n])
                continue
            value = np.asarray(_known(n, frame))
            if value.size == len(frame.rows) and (value != value.flat[0]).any():
                yield n, value.reshape(-1)


def _known(var: Var, frame: Frame) -> Any:
    """A variable's value before the roles begin; one number for what they bind themselves."""
    try:
        return frame.env.get(var)
    except KeyError:
        return 0
