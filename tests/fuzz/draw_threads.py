"""Draws programs in which each thread has its own index, registers and place in shared memory.

Hides that numpy runs a statement for all threads before the next one, which is what the barriers
of the program (its own, or those that tilelab adds) have to make true.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzz.choices import Choices
from tests.fuzz.draw_scalars import Place, draw_condition, draw_value
from tests.fuzz.program import Launch, Program, Tensor
from tests.fuzz.scalars import STORED, Env, Inexact, Value, binary, cast, literal, name, numpy_type
from tests.fuzz.tiles import MASK, SHAPE, Statement, Tile, fitted, guard, load, loop, store, tile

TYPES = ("float32", "int32", "float16", "int8", "int64", "uint8", "bfloat16", "int16", "uint32")


class Threads:
    """A kernel of one-dimensional blocks."""

    def __init__(self, c: Choices) -> None:
        self.c = c
        self.threads = c.pick((64, 32, 128, 96))
        self.blocks = c.pick((1, 2, 3))
        self.held = c.pick((4, 1, 2, 8, 3))  # elements of a thread's array
        size = self.blocks * self.threads * self.held
        self.size = size if c.chance(60) else size - c.below(min(size, 9))
        dtype = c.pick(TYPES)
        low = 0 if dtype.startswith("u") else -3
        self.source = tile("A", (self.size,), dtype, "global", 3)
        self.tensors = [Tensor(self.source, low, 3, 1)]
        self.shared = [tile(f"s{i}", (self.threads,), c.pick(TYPES), "shared") for i in range(2)]
        self.own = tile("own", (self.held,), c.pick(TYPES), "local")
        self.sums = c.pick(("float32", "int32"))
        bx, tx = name("bx", "int32", 0, self.blocks - 1), name("tx", "int32", 0, self.threads - 1)
        self.numbers = [tx, bx]
        self.count = 0

    def value(self, target: Tile, more: list[Value], depth: int = 2) -> Value:
        """A drawn value that the target holds, of thread and block numbers and `more`."""
        for _ in range(4):
            try:
                place = Place(numbers=[*self.numbers, *more], lets=more)
                made = fitted(draw_value(self.c, place, depth), target)
                if made.lo >= target.low and made.hi <= target.bound:
                    return made
            except Inexact:
                continue
        return literal(1)

    def element(self, at: Value) -> Value:
        """One of the thread's own elements."""
        kind = numpy_type(self.own.dtype)

        def read(env: Env) -> Any:
            index = np.broadcast_to(at.at(env), (self.threads,))
            return env["own"][np.arange(self.threads), index].astype(kind)

        return Value(f"own[{at.text}]", read, self.own.dtype, self.own.low, self.own.bound)

    def set_element(self, at: Value, value: Value) -> Statement:
        """A store into the thread's own array."""
        kind = numpy_type(self.own.dtype)

        def write(env: Env) -> None:
            index = np.broadcast_to(at.at(env), (self.threads,))
            mask = np.broadcast_to(env[MASK], (self.threads,))
            got = np.broadcast_to(np.asarray(value.at(env)), (self.threads,))
            env["own"][np.arange(self.threads)[mask], index[mask]] = got[mask].astype(kind)

        return Statement((f"own[{at.text}] = {value.text}",), write)

    # ---- statements ---------------------------------------------------------------------------

    def fetch(self) -> Statement:
        """Each thread's elements of the tensor."""
        v = name("v", "int32", 0, self.held - 1)
        thread = binary("+", _times(self.numbers[1], self.threads), self.numbers[0])
        at = binary("+", _times(thread, self.held), v)
        if self.c.chance(40):  # neighbouring threads read neighbouring elements
            block = _times(self.numbers[1], self.threads * self.held)
            at = binary("+", binary("+", block, _times(v, self.threads)), self.numbers[0])
        read = load(self.source, [at])
        kind = self.own.dtype
        got = read if read.dtype == kind else _cast_or(read, kind)
        body: list[Statement] = [self.set_element(v, got)]
        if self.c.chance(50):
            inside = binary("<", at, literal(self.size))
            body = [guard(inside, body, [self.set_element(v, literal(0))])]
        head = self.c.pick(("T.serial", "T.unroll", "T.vectorized"))
        if len(body[0].lines) > 1 and head == "T.vectorized":
            head = "T.serial"
        return loop("v", f"{head}({self.held})", lambda env: range(self.held), body)

    def into_shared(self) -> Statement:
        """Each thread writes its place."""
        target = self.c.pick(self.shared)
        own = self.element(literal(self.c.below(self.held)))
        written = store(target, [self.numbers[0]], self.value(target, [own]))
        if self.c.chance(25):
            cond = draw_condition(self.c, Place(numbers=[self.numbers[0]]), 1)
            return guard(cond, [written])
        return written

    def from_shared(self) -> Statement:
        """Each thread reads another one's place."""
        source = self.c.pick(self.shared)
        step = binary("+", self.numbers[0], literal(self.c.below(self.threads)))
        other = load(source, [binary("%", step, literal(self.threads))])
        at = literal(self.c.below(self.held))
        return self.set_element(at, self.value(self.own, [other, self.element(at)]))

    def fold(self) -> Statement:
        """A tree of sums (or maxima) in shared memory."""
        target = self.c.pick(self.shared)
        k = name("k", "int32", 0, 6)
        half = self.threads
        count = 0
        while half % 2 == 0 and half > 1:
            half //= 2
            count += 1
        width = Value(f"({self.threads // 2} >> k)", lambda env: self.threads // 2 >> env["k"],
                      "int32", 1, self.threads // 2)  # fmt: skip
        tx = self.numbers[0]
        other = Value(f"(tx + {width.text})", lambda env: env["tx"] + width.at(env), "int32", 0,
                      self.threads - 1)  # fmt: skip
        joined = binary(self.c.pick(("T.max", "T.min")), load(target, [tx]), load(target, [other]))
        body = [guard(binary("<", tx, width), [store(target, [tx], joined)])]
        if self.c.chance(50):
            body.append(Statement(("T.sync_threads()",), lambda env: None))
        return loop("k", f"T.serial({count})", lambda env: range(count), body)

    def again(self) -> Statement:
        """A serial loop of exchanges."""
        trips = 1 + self.c.below(4)
        body = [self.draw() for _ in range(1 + self.c.below(3))]
        self.count += 1
        named = f"r{self.count}"
        return loop(named, f"T.serial({trips})", lambda env: range(trips), body)

    def change(self) -> Statement:
        """Arithmetic on the thread's own array."""
        v = name("u", "int32", 0, self.held - 1)
        changed = self.set_element(v, self.value(self.own, [self.element(v), v], 3))
        return loop("u", f"T.serial({self.held})", lambda env: range(self.held), [changed])

    def draw(self) -> Statement:
        """One of the statements."""
        kinds: tuple[Callable[[], Statement], ...] = (
            self.into_shared, self.from_shared, self.change, self.into_shared, self.from_shared,
            self.fold,
        )  # fmt: skip
        return self.c.pick(kinds)()

    def program(self) -> Program:
        """The whole program."""
        c, tx = self.c, self.numbers[0]
        body: list[Statement] = [Statement(("tx = T.get_thread_binding()",), self._begin)]
        body.append(self.fetch())
        body += [store(s, [tx], literal(i)) for i, s in enumerate(self.shared)]
        for _ in range(2 + c.below(5)):
            body.append(self.again() if c.chance(25) else self.draw())
            if c.chance(25):
                body.append(Statement(("T.sync_threads()",), lambda env: None))
        thread = binary("+", _times(self.numbers[1], self.threads), tx)
        for s in self.shared:
            out = tile(f"O{s.name}", (self.blocks * self.threads,), s.dtype, "global")
            self.tensors.append(Tensor(out, 5, 5))
            body.append(store(out, [thread], load(s, [tx])))
        rows = self.blocks * self.threads
        out = tile("Own", (rows, self.held), self.own.dtype, "global")
        self.tensors.append(Tensor(out, 5, 5))
        w = name("w", "int32", 0, self.held - 1)
        last = store(out, [thread, w], self.element(w))
        body.append(loop("w", f"T.serial({self.held})", lambda env: range(self.held), [last]))
        allocations = [f'{s.name} = T.alloc_shared({s.spelled()}, "{s.dtype}")'
                       for s in self.shared]  # fmt: skip
        allocations.append(f'own = T.alloc_local({self.own.spelled()}, "{self.own.dtype}")')
        launch = Launch((self.blocks,), self.threads, allocations, self.shared, body)
        return Program(self.tensors, [launch])

    def _begin(self, env: Env) -> None:
        env["tx"] = np.arange(self.threads)
        env[SHAPE], env[MASK] = (self.threads,), np.ones(self.threads, bool)
        env["own"] = np.zeros((self.threads, self.held), numpy_type(self.own.dtype))


def _times(number: Value, factor: int) -> Value:
    return binary("*", number, literal(factor)) if factor != 1 else number


def _cast_or(value: Value, dtype: str) -> Value:
    try:
        made = cast(value, dtype)
        unsigned = dtype.startswith("u") and value.lo < 0
        return literal(1) if unsigned or made.hi > STORED[dtype] else made
    except Inexact:
        return literal(1)


def draw_threads(c: Choices) -> Program:
    """A program of threads."""
    return Threads(c).program()
