"""Room for tiles on their way to global memory, and what their users share within a kernel.

Hides the budget of shared memory, the numbers of named barriers that are free, and which buffers
and statements were made already.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tilelab.dtypes import DType
from tilelab.ir import Buffer, Scope, Stmt
from tilelab.layout import swizzled
from tilelab.target import NAMED_BARRIERS, Limits

Key = tuple[object, ...]


@dataclass
class Staging:
    """One kernel's state. `used_bytes`: shared memory that the program's own tiles take;
    `used_registers`: registers that a block takes at least;
    `sole`: ids of tensors that a single statement of the kernel touches; `taken`: named barriers
    of the program; `loops`: how many loops of the program enclose the statement being lowered;
    `tile_loops`: whether the kernel's loop over tiles does;
    `at_exit`: by a role's first thread, what its threads do before they end."""

    limits: Limits
    used_bytes: int
    used_registers: int
    sole: frozenset[int]
    taken: frozenset[int]
    loops: int = 0
    tile_loops: int = 0
    tiles: dict[tuple[object, ...], Buffer] = field(
        default_factory=dict[tuple[object, ...], Buffer]
    )
    barriers: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    at_exit: dict[int, Stmt] = field(default_factory=dict[int, Stmt])

    def written_once(self, tensor: Buffer) -> bool:
        """Whether the statement being lowered is the only one that touches a tensor, and runs
        once for each tile: nothing then depends on when its writes arrive."""
        return id(tensor.storage) in self.sole and not self.loops

    def used_before(self, key: Key) -> bool:
        """Whether something stored through the tiles of `key` before the statement being lowered,
        or this one in an earlier round."""
        return key in self.tiles or self.loops + self.tile_loops > 0

    def has_room(self, num_bytes: int) -> bool:
        """Whether tiles of `num_bytes` fit without fewer blocks on a multiprocessor."""
        before, after = self._blocks(0), self._blocks(num_bytes)
        return after == before and before > 0

    def _blocks(self, more: int) -> int:
        total = self.used_bytes + sum(b.layout.num_bytes for b in self.tiles.values()) + more
        if total > self.limits.shared_per_block:
            return 0
        by_shared = self.limits.shared_per_sm // (total + self.limits.shared_reserved_per_block)
        return min(by_shared, self.limits.registers_per_sm // max(self.used_registers, 1))

    def buffer(self, key: Key, shape: tuple[int, int, int], dtype: DType) -> Buffer:
        """Slots of swizzled tiles, one set for each key. Like a pipeline's slots they are ordered
        by their users."""
        found = self.tiles.get(key)
        if found is None:
            number = len(self.tiles)
            name = "staging" if number == 0 else f"staging_{number}"
            tile = Buffer(name, shape[1:], dtype, Scope.SHARED)
            layout = swizzled(shape, dtype.bits)
            found = self.tiles[key] = replace(tile, shape=shape, origin=tile, layout=layout)
        return found

    def named_barriers(self, first_thread: int, count: int) -> int | None:
        """The first of `count` named barriers of the role that starts at `first_thread`; None
        when the program has left none."""
        key = (first_thread, count)
        if key not in self.barriers:
            busy = set(self.taken)
            for (_, size), base in self.barriers.items():
                busy.update(range(base, base + size))
            bases = range(NAMED_BARRIERS - count, 0, -1)
            free = (b for b in bases if not busy.intersection(range(b, b + count)))
            base = next(free, None)
            if base is None:
                return None
            self.barriers[key] = base
        return self.barriers[key]
