"""Passes and what is kept of them: the CompileTrace that every reader shares.

A pass is a pure function from node to node. The runner keeps before and after by reference,
times it, collects its notes, and verifies the result; a pass knows nothing of drawing.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilelab.errors import Loc
from tilelab.ir import Buffer, Kernel, Node, Stmt, map_children
from tilelab.passes.plan import LayoutDecision, PipelinePlan, Stamp
from tilelab.target import Target
from tilelab.tile.structure import Switch, setting


@dataclass(frozen=True)
class Note:
    """Why a pass did something: one sentence, and the statement or buffer it is about."""

    text: str
    subject: Node | None = None
    loc: Loc | None = None
    level: str = "info"  # "info" or "warning"


@dataclass(frozen=True)
class Step:
    """One pass as it ran: program before and after (shared by reference), seconds, notes."""

    name: str
    caption: str
    before: Node
    after: Node
    seconds: float
    notes: tuple[Note, ...]

    @property
    def changed(self) -> bool:
        return self.before is not self.after


@dataclass
class CompileTrace:
    """Everything the compiler decided, for widgets, golden tests, the judge and the CLI.

    `layouts` and `pipelines` hold the decisions of all kernels of the function, `stamps` the
    places that note the time in a build that measures its schedule.
    """

    target: Target
    steps: list[Step] = field(default_factory=list[Step])
    layouts: list[LayoutDecision] = field(default_factory=list[LayoutDecision])
    pipelines: list[PipelinePlan] = field(default_factory=list[PipelinePlan])
    stamps: list[Stamp] = field(default_factory=list[Stamp])

    def notes(self) -> Iterator[tuple[str, Note]]:
        """All notes with the name of the pass that wrote them."""
        for step in self.steps:
            for note in step.notes:
                yield step.name, note

    def warnings(self) -> list[Note]:
        return [n for _, n in self.notes() if n.level == "warning"]

    def layout_of(self, name: str) -> LayoutDecision:
        """The decision for a buffer of the user's program, by name; KeyError lists the names."""
        for decision in self.layouts:
            if decision.buffer.root.name == name:
                return decision
        known = ", ".join(d.buffer.root.name for d in self.layouts)
        raise KeyError(f"no buffer {name!r} has a layout; there are: {known}")

    def step(self, name: str) -> Step:
        """The step of a pass, by name; KeyError lists the names."""
        for step in self.steps:
            if step.name == name:
                return step
        raise KeyError(f"no pass {name!r} ran; passes: {', '.join(s.name for s in self.steps)}")


@dataclass
class PassContext:
    """What a pass may know and say: target, options, and the trace it adds decisions to."""

    target: Target
    options: dict[str, Any]
    trace: CompileTrace
    aligned: bool = True
    _notes: list[Note] = field(default_factory=list[Note])

    def note(self, text: str, subject: Node | None = None, *, level: str = "info") -> None:
        """Record why: `subject` is the statement or buffer the sentence is about."""
        loc = subject.loc if isinstance(subject, Stmt | Buffer) else None
        self._notes.append(Note(text, subject, loc, level))

    def take_notes(self) -> tuple[Note, ...]:
        notes, self._notes = tuple(self._notes), []
        return notes

    def option(self, key: str, default: Any = None) -> Any:
        """A pass_configs value."""
        return self.options.get(key, default)


@dataclass(frozen=True)
class Pass:
    """A named step. `needs` and `makes` are facts; the runner refuses a wrong order."""

    name: str
    run: Callable[[Any, PassContext], Any]
    needs: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()

    @property
    def caption(self) -> str:
        """First line of the pass function's docstring."""
        return (self.run.__doc__ or "").strip().split("\n", 1)[0]


def tile_pass(
    name: str, *, needs: Sequence[str] = (), makes: Sequence[str] = ()
) -> Callable[[Callable[[Any, PassContext], Any]], Pass]:
    """Declare a pass from a function `(node, ctx) -> node`."""

    def wrap(run: Callable[[Any, PassContext], Any]) -> Pass:
        return Pass(name, run, tuple(needs), tuple(makes))

    return wrap


def kernel_pass(
    name: str, *, needs: Sequence[str] = (), makes: Sequence[str] = (), switch: Switch | None = None
) -> Callable[[Callable[[Kernel, PassContext], Kernel]], Pass]:
    """Declare a pass from a function `(kernel, ctx) -> kernel`, run on every kernel of a program.

    With a `switch` the pass runs where the compilation has it on.
    """

    def wrap(run: Callable[[Kernel, PassContext], Kernel]) -> Pass:
        @functools.wraps(run)
        def over_kernels(node: Node, ctx: PassContext) -> Node:
            if switch is not None and not setting(ctx, switch):
                return node
            return map_children(node, lambda n: run(n, ctx) if isinstance(n, Kernel) else n)

        return Pass(name, over_kernels, tuple(needs), tuple(makes))

    return wrap


Verifier = Callable[[Node, frozenset[str]], None]


def run_passes(
    node: Node, passes: Sequence[Pass], ctx: PassContext, verify: Verifier | None = None
) -> Any:
    """Run `passes` in order over `node`, recording each in the context's trace.

    Raises AssertionError when a pass needs a fact that no earlier pass made; TileErrors of a pass
    go through unchanged; `verify(node, facts)` runs after every pass.
    """
    facts: set[str] = set()
    for step in passes:
        missing = [fact for fact in step.needs if fact not in facts]
        assert not missing, f"pass {step.name} needs {missing}, made so far: {sorted(facts)}"
        started = time.perf_counter()
        after = step.run(node, ctx)
        seconds = time.perf_counter() - started
        facts.update(step.makes)
        record = Step(step.name, step.caption, node, after, seconds, ctx.take_notes())
        ctx.trace.steps.append(record)
        if verify is not None:
            verify(after, frozenset(facts))
        node = after
    return node
