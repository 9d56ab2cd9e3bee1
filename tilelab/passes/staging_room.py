"""What a kernel leaves for staging tiles: shared memory, tensors of one statement, barriers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NoReturn

from tilelab.errors import TileValueError
from tilelab.ir import Alloc, Expr, Kernel, Node, Scope, walk
from tilelab.layout import Fragment
from tilelab.passes.base import PassContext
from tilelab.passes.shared_extent import MERGE
from tilelab.passes.shared_room import bytes_apart
from tilelab.passes.touch import touches
from tilelab.target import NAMED_BARRIERS
from tilelab.thread.intrinsics.barrier import NAMED_BARRIER_ARRIVE, NAMED_BARRIER_SYNC
from tilelab.thread.nodes import Invoke
from tilelab.tile.staging import Staging

REGISTER_BYTES = 4
OTHER_REGISTERS = 24  # of a thread, beside its largest tile


def staging_of(kernel: Kernel, ctx: PassContext) -> Staging | None:
    """The state with which a kernel's copies are staged; None where tiles are to share bytes."""
    if ctx.option(MERGE, False):
        return None
    users: Counter[int] = Counter()
    for _, storage in {(id(t.stmt), id(t.buffer.storage)) for t in touches(kernel)}:
        users[storage] += 1
    sole = frozenset(storage for storage, count in users.items() if count == 1)
    taken = frozenset(named_barriers(kernel))
    return Staging(ctx.target.limits, bytes_apart(kernel), _registers(kernel), sole, taken)


def _registers(kernel: Kernel) -> int:
    """Registers that a block takes at least: those of its fragments, and OTHER_REGISTERS."""
    fragments = (n.buffer for n in walk(kernel) if isinstance(n, Alloc))
    held = [b for b in fragments if b.scope is Scope.FRAGMENT and b.alias_of is None]
    sizes = (b.layout.num_registers * b.dtype.bytes for b in held if isinstance(b.layout, Fragment))
    each = max((-(-size // REGISTER_BYTES) for size in sizes), default=0)
    return (each + OTHER_REGISTERS) * kernel.num_threads


def named_barriers(node: Node) -> Iterator[int]:
    """Numbers of the named barriers that statements use: all in the bounds of a computed one."""
    for n in walk(node):
        if isinstance(n, Invoke) and n.intrinsic in (NAMED_BARRIER_SYNC, NAMED_BARRIER_ARRIVE):
            number = n.operands[0]
            assert isinstance(number, Expr)
            low, high = number.bounds
            yield from range(low or 0, NAMED_BARRIERS if high is None else high + 1)


def no_barrier_left(barrier: Invoke, threads: int) -> NoReturn:
    """Refuse a barrier of a role's threads, where those of the program may be all there are."""
    why = f" ({barrier.reason})" if barrier.reason else ""
    raise TileValueError(
        f"{threads} threads of a role wait for each other here{why}, and the numbers of the "
        "program's named barriers, as far as their range is known, leave none", code="TL1758",
        loc=barrier.loc, hint="write numbers whose range shows, such as 1 + k % 2, and leave one "
        f"of the {NAMED_BARRIERS} to each role",
    )  # fmt: skip
