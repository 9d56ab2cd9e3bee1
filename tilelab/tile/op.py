"""The TileOp protocol: an op is a declaration of operands, rules and strategies.

Hides how a lowering strategy is picked (the most specific one whose features the target has and
whose `when` holds) and how operands are found (field metadata).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Protocol

from tilelab.errors import TileNotSupported
from tilelab.ir import Buffer, Expr, Region, Stmt, Var
from tilelab.target import Feature, Target

# ---- layout facts ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fixed:
    """`buffer` must have `layout`: an instruction of the statement `key` demands it."""

    buffer: Buffer
    layout: Any
    why: str
    key: Stmt


@dataclass(frozen=True)
class Prefer:
    """`buffer` would do well with `layout`; taken when nothing fixes it. Higher weight wins."""

    buffer: Buffer
    layout: Any
    why: str
    weight: int = 0


@dataclass(frozen=True)
class Access:
    """A loop over `loop_vars` touches a fragment at `indices` (expressions of loop variables).

    `gathers`: a thread that writes an element keeps its own part of it (a reducer).
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    is_write: bool
    gathers: bool = False


@dataclass(frozen=True)
class Loop:
    """An elementwise loop: its points are spread over the threads like the fragments it touches.

    `key` identifies the statement whose layout is wanted; `vector` is how many neighbours along
    the last axis one thread would like to hold; `threads` how many threads run the loop (0: all
    that compute); `unrolled` the variables of loops around it whose iterations are known when the
    program is printed, so that registers can be numbered by them.
    """

    key: Stmt
    vars: tuple[Var, ...]
    extents: tuple[int, ...]
    accesses: tuple[Access, ...]
    why: str
    vector: int = 1
    threads: int = 0
    unrolled: frozenset[Var] = frozenset()


Fact = Fixed | Prefer | Loop


class LayoutContext(Protocol):
    """What a layout rule may ask."""

    @property
    def target(self) -> Target: ...
    @property
    def num_threads(self) -> int: ...
    def option(self, key: str, default: Any = None) -> Any: ...
    def vector_width(
        self, region: Region, axis_extent: int, limit: int, *, inside: bool = False
    ) -> int: ...


# ---- operands ----------------------------------------------------------------------------------


def reads(**kwargs: Any) -> Any:
    """Declare an operand that the op reads."""
    return field(metadata={"effect": "reads"}, **kwargs)


def writes(**kwargs: Any) -> Any:
    """Declare an operand that the op overwrites."""
    return field(metadata={"effect": "writes"}, **kwargs)


def updates(**kwargs: Any) -> Any:
    """Declare an operand that the op reads and writes."""
    return field(metadata={"effect": "updates"}, **kwargs)


@cache
def _effects(kind: type[TileOp]) -> dict[str, str]:
    fields = dataclasses.fields(kind)
    return {f.name: f.metadata["effect"] for f in fields if "effect" in f.metadata}


def operand_fields(op: TileOp) -> dict[str, str]:
    """The operands of an op by field name, with the effect of each."""
    return _effects(type(op))


@dataclass(frozen=True, eq=False)
class TileOp(Stmt):
    """One operation on whole tiles. Subclasses declare operands with reads/writes/updates. `team`
    says which threads may run it together: whole "warps", "any" (the tile is spread over those
    there are), or that "each" does its own."""

    op_name: ClassVar[str] = ""
    team: ClassVar[str] = "warps"

    @property
    def ran_by(self) -> str:
        """The `team` of this very operation: for some, its operands decide."""
        return self.team

    def operands(self, *effects: str) -> tuple[Region, ...]:
        """Operands with any of the given effects ("reads", "writes", "updates")."""
        return tuple(getattr(self, n) for n, e in _effects(type(self)).items() if e in effects)

    def read_regions(self) -> tuple[Region, ...]:
        return self.operands("reads", "updates")

    def written_regions(self) -> tuple[Region, ...]:
        return self.operands("writes", "updates")

    def overwrites(self) -> bool:
        """Whether the operands that it updates are set anew, whatever they held."""
        return False

    def check(self) -> None:
        """Raise a TileError, located and with a hint, when operands do not fit together."""

    def layout_rule(self, ctx: LayoutContext) -> Iterable[Fact]:
        """Facts about the layouts of this op's operands."""
        return ()

    def with_spread(self, spread: Any) -> TileOp:
        """This op with the spread that layout inference chose for its Loop fact (ops whose
        lowering reads the operands' layouts instead need not keep it)."""
        return self

    def reference(self, env: Env) -> None:
        """The op's meaning on whole tiles, in numpy: the oracle of the conformance test."""
        raise NotImplementedError

    def label(self) -> str:
        """A few words for pictures: "A -> A_shared"."""
        return self.op_name


class Env(Protocol):
    """Whole-tile values for `reference`: reads and writes of regions as numpy arrays."""

    def get(self, region: Region) -> Any: ...
    def put(self, region: Region, value: Any) -> None: ...


# ---- lowering strategies -----------------------------------------------------------------------


@dataclass(frozen=True)
class Strategy:
    """One way to lower an op: needs features, applies when `when(op, ctx)` holds."""

    name: str
    needs: frozenset[Feature]
    when: Callable[[Any, Any], bool]
    lower: Callable[[Any, Any], Iterable[Stmt]]


_STRATEGIES: dict[type[TileOp], list[Strategy]] = {}


def lowering(
    kind: type[TileOp],
    *,
    needs: Iterable[Feature] = (),
    when: Callable[[Any, Any], bool] = lambda op, ctx: True,
) -> Callable[[Callable[[Any, Any], Iterable[Stmt]]], Callable[[Any, Any], Iterable[Stmt]]]:
    """Register `fn(op, ctx) -> statements` as a strategy; earlier registrations win."""

    def wrap(fn: Callable[[Any, Any], Iterable[Stmt]]) -> Callable[[Any, Any], Iterable[Stmt]]:
        name = fn.__name__.strip("_")
        _STRATEGIES.setdefault(kind, []).append(Strategy(name, frozenset(needs), when, fn))
        return fn

    return wrap


def strategies(kind: type[TileOp]) -> tuple[Strategy, ...]:
    """All strategies of an op, the preferred first."""
    return tuple(_STRATEGIES.get(kind, ()))


def pick_strategy(op: TileOp, ctx: Any) -> Strategy:
    """The first strategy whose features the target has and whose condition holds.

    Raises TileNotSupported (TL1504) naming the op when there is none.
    """
    for strategy in strategies(type(op)):
        if strategy.needs <= ctx.target.features and strategy.when(op, ctx):
            return strategy
    raise TileNotSupported(
        f"{op.op_name} ({op.label()}) cannot be lowered for {ctx.target}",
        code="TL1504",
        loc=op.loc,
        hint="check the operands' scopes and element types",
    )
