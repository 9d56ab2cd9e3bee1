"""One record per instruction: CUDA text, meaning, cost class. Codegen reads the text, the
simulator the meaning, so the two cannot drift apart.

A `meaning` never touches numpy arrays of the simulator directly: it works through `Machine`, so
that bounds, races, bank conflicts and validity are checked in one place for every instruction.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, ParamSpec, Protocol

import numpy as np

from tilelab.target import Feature

Array = np.ndarray[Any, Any]

Role = Literal["reads", "writes", "updates", "value", "barrier", "descriptor", "map"]
WarpScope = Literal["thread", "warp", "warpgroup", "block"]
Cost = Literal[
    "free", "alu", "special", "global", "shared", "async", "mma", "wgmma", "sync", "wait", "atomic"
]
Meaning = Callable[..., Any]
"""Called with the machine and the operands: gives the instruction's value (None: it has none), or
a generator that waits and returns it."""


class Machine(Protocol):
    """What an instruction's meaning may do: the simulator's side of the contract.

    Values are arrays whose last two axes are (blocks, lanes), each possibly of size 1; axes of
    LANES loops stand before them. `Any` operands (places, barriers, maps, descriptors) are opaque
    and go back into these methods. Generators yield while they wait: use `yield from`.
    """

    def load(self, place: Any, count: int, *, packed: bool = False) -> Array:
        """`count` consecutive elements (registers or memory) as axis 0; checked and counted.
        `packed`: one access of count * element bytes instead of `count` accesses."""
        ...

    def store(self, place: Any, values: Array, *, packed: bool = False) -> None:
        """Write consecutive elements, axis 0 of `values`; checked and counted."""
        ...

    def load_rows(self, place: Any, lanes: Array) -> Array:
        """ldmatrix' fetch: for each warp, the 16-byte rows whose addresses `lanes` of the warp
        hold; shape (rows, 8, ..., blocks, warps), 16-bit elements of the place's type."""
        ...

    def store_rows(self, place: Any, lanes: Array, values: Array) -> None:
        """stmatrix' write, the reverse of `load_rows`."""
        ...

    def atomic(
        self, place: Any, values: Array | None, combine: Callable[[Array, Array], Array],
        together: int = 1,
    ) -> Array:  # fmt: skip
        """Replace consecutive elements by `combine(element, value)`, axis 0 of `values`, one lane
        after another; the elements as each lane found them. None: they are only read. `together`:
        elements that one instruction takes, aligned to their size."""
        ...

    def full(self, value: Any) -> Array:
        """A value with an entry for every lane of every block (and lane-loop iteration)."""
        ...

    def active(self) -> Array:
        """Which lanes run, in the same shape."""
        ...

    def whole_block(self, what: str) -> None:
        """Report a finding unless all threads of the block run."""
        ...

    def whole(self, size: int, what: str) -> None:
        """Report a finding unless the running lanes are whole groups of `size` threads."""
        ...

    def together(self, mask: Array, what: str) -> Array | None:
        """Report a finding, and stop the blocks, unless the lanes that the running ones name in
        `mask` run, too, and each names itself. None: whole warps in which all name all; else the
        masks (..., blocks, warps, 32), 0 for lanes that do not run."""
        ...

    def takes_part(self, ok: Array, text: str) -> None:
        """Report a finding about partial warps, and stop the blocks, where a running lane has
        `ok` false."""
        ...

    def by_warp(self, values: Array) -> Array:
        """(..., blocks, lanes) -> (..., blocks, warps, 32), zeros for lanes that do not run."""
        ...

    def by_lane(self, values: Array) -> Array:
        """The reverse of `by_warp`."""
        ...

    def sync_warp(self) -> None:
        """The running lanes of each warp wait for each other: later accesses to memory follow
        their earlier ones."""
        ...

    def say(self, text: str, values: Sequence[Array]) -> None:
        """Print for every active lane: `text` is a format of Python's `%` for the values."""
        ...

    def require(self, ok: Array, text: str) -> None:
        """Report a finding, and stop the blocks, where an active lane has `ok` false."""
        ...

    def count(self, counter: str, per_lane: int) -> None:
        """Add work to a counter: `per_lane` for each active lane (and lane-loop iteration)."""
        ...

    def sync_threads(self, barrier: Array | int, threads: Array | int | None) -> Iterator[Any]:
        """Named barrier `barrier` of `threads` threads; None: all threads of the block."""
        ...

    def mbarrier_init(self, bar: Any, count: Array) -> None: ...

    def mbarrier_arrive(self, bar: Any, expect_bytes: Array | int) -> None:
        """Add to the expected bytes of the phase, then arrive once for every active lane."""
        ...

    def mbarrier_expect(self, bar: Any, num_bytes: Array) -> None:
        """Add to the expected bytes of the phase, once for every active lane."""
        ...

    def arrive_threads(self, barrier: Array | int, threads: Array | int) -> None:
        """Count in at a named barrier without waiting."""
        ...

    def cp_async_arrive(self, bar: Any) -> None:
        """Arrive when all earlier cp.async of the calling threads have come."""
        ...

    def mbarrier_wait(self, bar: Any, parity: Array) -> Iterator[Any]: ...

    def set_registers(self, count: int, raises: bool) -> Iterator[Any]:
        """Let each thread of the running warpgroups have `count` registers, of those that the
        block's warpgroups share."""
        ...

    def fence(self, kind: str) -> None:
        """Order accesses of this thread: "proxy_async", "mbarrier_init", "wgmma" or "memory" (for
        all blocks)."""
        ...

    def cp_async(self, dst: Any, src: Any, num_bytes: int, ok: Array | None) -> None: ...

    def cp_async_commit(self) -> None: ...

    def cp_async_wait(self, pending: int) -> Iterator[Any]: ...

    def tma_load(self, tensor_map: Any, bar: Any, dst: Any, coords: Sequence[Array]) -> None: ...

    def tma_store(self, tensor_map: Any, src: Any, coords: Sequence[Array]) -> None: ...

    def bulk_commit(self) -> None: ...

    def bulk_wait(self, pending: int, read_only: bool) -> Iterator[Any]: ...

    def wgmma(
        self, n: int, d: Any, a: Any, b: Any, accumulate: Array, trans: tuple[bool, bool], k: int
    ) -> None:
        """Queue D (+)= A * B, 64 x n x k; `a` is a descriptor, or a place of registers."""
        ...

    def wgmma_commit(self) -> None: ...

    def wgmma_wait(self, pending: int) -> Iterator[Any]: ...


@dataclass(frozen=True)
class Param:
    """An operand: its name in `call` and what the instruction does with it.

    reads/writes/updates: a memory place or registers; value: a scalar; barrier: an mbarrier;
    descriptor: a wgmma matrix descriptor; map: a TMA descriptor.
    """

    name: str
    role: Role


@dataclass(frozen=True)
class Intrinsic:
    """An instruction.

    helper: full text of the CUDA helper in namespace `tl` (declaration and asm body; no control
        flow except what one instruction needs). Empty when `call` is plain CUDA.
    call: format string over operand names, e.g. "tl::mbarrier_wait({bar}, {parity})".
    meaning: called by the simulator with the machine and the evaluated operands; a generator
        when the instruction can wait.
    group: which lanes act together. cost: class for the timing model (`thread.costs`); flops:
        operations on the tensor cores, of the whole group of lanes.
    source: where the PTX ISA defines it.
    """

    name: str
    operands: tuple[Param, ...]
    call: str
    helper: str
    meaning: Meaning
    group: WarpScope = "thread"
    cost: Cost = "alu"
    flops: int = 0
    needs: Feature | None = None
    waits: bool = False
    is_async: bool = False
    source: str = ""
    includes: tuple[str, ...] = ()
    otherwise: Intrinsic | None = None  # the same without the feature `needs`
    requires: tuple[str, ...] = ()  # other helpers (by name) that this helper's text calls
    fences: bool = False  # whether it has a fence of memory, so that atomics may tell other blocks

    def __repr__(self) -> str:
        return f"Intrinsic({self.name})"


P = ParamSpec("P")


@dataclass(frozen=True)
class Origin:
    """The factory (by name) and the arguments that made a record."""

    factory: str
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]


FACTORIES: dict[str, Callable[..., Intrinsic]] = {}
"""Factories of records by "module.function": how a saved program names its instructions."""
_ORIGINS: dict[int, Origin] = {}


def recorded(factory: Callable[P, Intrinsic]) -> Callable[P, Intrinsic]:
    """`functools.cache` for a function that makes records, which remembers what made which."""
    name = f"{factory.__module__.rpartition('.')[2]}.{factory.__name__}"
    kept: Callable[..., Intrinsic] = functools.cache(factory)

    @functools.wraps(factory)
    def make(*args: P.args, **kwargs: P.kwargs) -> Intrinsic:
        record = kept(*args, **kwargs)
        _ORIGINS.setdefault(id(record), Origin(name, args, tuple(sorted(kwargs.items()))))
        return record

    FACTORIES[name] = make
    return make


def origin_of(record: Intrinsic) -> Origin | None:
    """What made a record; None for one that is a constant of its module."""
    return _ORIGINS.get(id(record))
