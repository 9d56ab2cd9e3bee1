"""Fragments that a program writes itself: thread and register by functions, and their repeats.

Hides how a function becomes a layout of the algebra (`probe`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from .digits import malformed
from .fragment import Fragment
from .probe import from_function
from .table import AnyFragment, equivalent
from .user import IndexMap, as_list, positive


class FragmentMap:
    """A fragment by functions: `FragmentMap((16, 8), lambda i, j: (i * 2 + j // 4, j % 4))`.

    forward_fn: (i, j, ...) -> (thread, register), with the copy's number as one more argument
    when `replicate` > 1; or forward_thread_fn and forward_index_fn, each giving one of them.
    """

    def __init__(
        self, shape: Sequence[int], forward_fn: IndexMap | None = None,
        forward_thread_fn: IndexMap | None = None, replicate: int = 1,
        forward_index_fn: IndexMap | None = None,
    ) -> None:  # fmt: skip
        self.shape, self.copies = tuple(int(extent) for extent in shape), replicate
        if (forward_fn is None) == (forward_thread_fn is None):
            raise malformed("a fragment needs forward_fn, or forward_thread_fn with an index")
        self.forward_fn, self.thread_fn, self.index_fn = (
            forward_fn, forward_thread_fn, forward_index_fn,
        )  # fmt: skip

    def _slot(self, *indices: Any) -> tuple[Any, Any]:
        if self.forward_fn is not None:
            thread, register = self.forward_fn(*indices)
        else:
            assert self.thread_fn is not None
            plain = indices[: len(self.shape)]
            thread = self.thread_fn(*indices)
            register = self.index_fn(*plain) if self.index_fn is not None else 0
        parts = as_list(register)
        if len(parts) != 1:
            raise malformed("a fragment's map must give one register number")
        return thread, parts[0]

    def _made(self, shape: Sequence[int], slot: IndexMap, copies: int) -> FragmentMap:
        return FragmentMap(shape, slot, replicate=copies)

    def __repr__(self) -> str:
        threads, registers = self.get_thread_size(), self.get_output_shape()[0]
        return f"Fragment({self.shape} -> {threads} threads x {registers})"

    @cached_property
    def _found(self) -> AnyFragment:
        return from_function(self.shape, self._slot, None, self.copies)

    def get_input_shape(self) -> list[int]:
        """The extents of the map's indices."""
        return list(self.shape)

    def get_output_shape(self) -> list[int]:
        """Registers of a thread."""
        return [self._found.num_registers]

    def get_thread_size(self) -> int:
        """Threads of the map, those of all copies."""
        return self._found.num_threads

    def map_forward_thread(self, indices: Sequence[Any]) -> list[Any]:
        """The thread of an element; with copies, `indices` ends in the copy's number."""
        return [self._slot(*indices)[0]]

    def map_forward_index(self, indices: Sequence[Any]) -> list[Any]:
        """The register of an element."""
        copy = (0,) if self.copies > 1 and len(indices) == len(self.shape) else ()
        return [self._slot(*indices, *copy)[1]]

    def repeat(
        self, repeats: Sequence[int], repeat_on_thread: bool = False, lower_dim_first: bool = True
    ) -> FragmentMap:
        """The tile several times along each axis: in more registers of the same threads, or in
        more threads. Copies are numbered with the last axis fastest, or the first.
        TileValueError (TL1301) for other than one positive int for each axis."""
        times = [positive(r, "repeats") for r in repeats]
        if len(times) != len(self.shape):
            raise malformed(f"{len(times)} repeats for a fragment of {len(self.shape)} axes")
        size = self.get_thread_size() if repeat_on_thread else self.get_output_shape()[0]
        order = list(range(len(times)))
        order = order if lower_dim_first else order[::-1]

        def slot(*indices: Any) -> tuple[Any, Any]:
            inner = [i % n for i, n in zip(indices, self.shape, strict=False)]
            number: Any = 0
            for axis in order:
                number = number * times[axis] + indices[axis] // self.shape[axis]
            thread, register = self._slot(*inner, *indices[len(inner) :])
            if repeat_on_thread:
                return thread + number * size, register
            return thread, register + number * size

        shape = [n * t for n, t in zip(self.shape, times, strict=True)]
        return self._made(shape, slot, self.copies)

    def replicate(self, replicate: int) -> FragmentMap:
        """`replicate` groups of threads, each with all elements."""
        copies, size = positive(replicate, "replicate"), self.get_thread_size()

        def slot(*indices: Any) -> tuple[Any, Any]:
            *at, copy = indices if copies * self.copies > 1 else (*indices, 0)
            inner = (copy % self.copies,) if self.copies > 1 else ()
            thread, register = self._slot(*at, *inner)
            return thread + copy // self.copies * size, register

        return self._made(self.shape, slot, copies * self.copies)

    def condense_rep_var(self) -> FragmentMap:
        """The fragment itself: its copies are numbered without gaps."""
        return self

    def is_equal(self, other: FragmentMap) -> bool:
        """Whether both put every element into the same registers of the same threads."""
        return self.shape == other.shape and equivalent(self._found, other._found)

    def fragment(self, num_threads: int) -> AnyFragment:
        """The layout over a block of `num_threads`: threads that the map leaves out hold copies."""
        found = from_function(self.shape, self._slot, None, self.copies)
        if found.num_threads > num_threads:
            raise malformed(f"the map uses {found.num_threads} threads of {num_threads}")
        if isinstance(found, Fragment) and num_threads % found.num_threads == 0:
            return found.replicate(num_threads // found.num_threads)
        return from_function(self.shape, self._slot, num_threads, self.copies)
