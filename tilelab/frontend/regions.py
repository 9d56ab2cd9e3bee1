"""The tracer's part for branches and `with`, and what survives a region of any kind.

A Python condition picks a branch now; a traced one opens IR blocks. On leaving an IR region the
names it bound are poisoned, so a value cannot be used where it does not exist, and a value that
would have to travel from one iteration to the next is an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from tilelab.errors import Loc, TileNotSupported, TileRuntimeError, TileTypeError
from tilelab.frontend.kernel import KernelFrame
from tilelab.frontend.poison import Poison, outside, unassigned
from tilelab.frontend.session import Session
from tilelab.frontend.values import is_traced, truth
from tilelab.ir import Buffer, Const, Expr, If, Region, Stmt, Var, as_bool
from tilelab.ir.builder import seq

Locals = dict[str, Any]


@dataclass
class Active:
    """A region being executed. `kind` is "python", "if", "loop", "while", "with"."""

    names: tuple[str, ...]
    before: Locals
    loc: Loc | None
    kind: str = "python"
    carried: tuple[str, ...] = ()
    cond: Any = None
    then: list[Stmt] | None = None
    taken: bool = False
    count: int = 0


@dataclass
class OpenLoop:
    """The innermost loops, for break and continue."""

    number: int
    python: bool
    independent: bool = False
    depth: int = field(default=0)


class Regions:
    """Methods that rewritten control flow calls."""

    session: Session
    variables: dict[str, Any]

    def __init__(self) -> None:
        self._active: dict[int, Active] = {}
        self._loops: list[OpenLoop] = []

    # ---- leaving ----------------------------------------------------------------------------

    def restored(self, number: int, values: Locals) -> list[Any]:
        """Names as they were before the `then` branch, for the `else` branch."""
        region = self._active[number]
        source = values if region.kind == "python" else region.before
        return [source.get(n, unassigned(n)) for n in region.names]

    def leave(self, number: int, values: Locals) -> list[Any]:
        """Close a region: the values its names have after it."""
        region = self._active.pop(number, None)
        while self._loops and self._loops[-1].number == number:
            self._loops.pop()
        if region is None:
            return []
        if region.kind == "if":
            self._close_if(region)
        return [self._after(region, n, values.get(n, unassigned(n))) for n in region.names]

    def _after(self, region: Active, name: str, value: Any) -> Any:
        before = region.before.get(name)
        if region.kind == "python" or value is before:
            return value
        if name in region.carried and name in region.before and not isinstance(before, Poison):
            raise TileRuntimeError(
                f"{name} is read in this loop before it is assigned: its new value does not reach "
                "the next iteration",
                code="TL1412",
                loc=region.loc,
                hint=f"make it a variable: {name} = T.alloc_var(dtype, init=...)",
            )
        if region.kind == "if" or _is_local(value):
            self.variables.pop(name, None)
            return outside(name, region.loc)
        return value

    # ---- if ---------------------------------------------------------------------------------

    def branch(self, number: int, names: tuple[str, ...], cond: Any, values: Locals) -> bool:
        """Whether to run the `then` branch; opens it in the IR when the condition is traced."""
        region = Active(names, pick(names, values), self.session.loc())
        self._active[number] = region
        if not is_traced(cond):
            region.taken = truth(cond)
            return region.taken
        if self.session.kernel is None:
            raise TileNotSupported(
                "this condition is known only at run time and stands outside T.Kernel",
                code="TL1413",
                hint="move it into the kernel, or make it depend on compile-time values",
            )
        region.kind, region.cond = "if", as_bool(cond)
        self.session.open_block()
        return True

    def otherwise(self, number: int) -> bool:
        """Whether to run the `else` branch."""
        region = self._active[number]
        if region.kind == "python":
            return not region.taken
        region.then = self.session.close_block()
        self.session.open_block()
        return True

    def _close_if(self, region: Active) -> None:
        last = seq(self.session.close_block(), region.loc)
        then = last if region.then is None else seq(region.then, region.loc)
        orelse = None if region.then is None or not last.body else last
        self.session.emit(If(region.cond, then, orelse, loc=region.loc))

    # ---- with -------------------------------------------------------------------------------

    def managed(
        self, number: int, names: tuple[str, ...], targets: str | tuple[str, ...], value: Any,
        values: Locals,
    ) -> Any:  # fmt: skip
        """A context manager about to be entered; `targets` is the name after `as`, or a tuple's."""
        region = self._active.setdefault(
            number, Active(names, pick(names, values), self.session.loc())
        )
        if isinstance(value, KernelFrame):
            region.kind = "with"
            self.session.hint = targets or None
        elif not hasattr(cast(object, value), "__enter__"):
            self._refuse(value)
        return value

    def _refuse(self, value: object) -> None:
        """`k = T.Kernel(2)` and then `with k`, or `with T.Kernel`: said in the language's words;
        of other values Python says that they are no context managers."""
        launch, several = "T.Kernel(...)", isinstance(value, list)
        first = next(iter(cast("list[object]", value)), None) if several else value
        if isinstance(first, Var) and first.role == "block":
            raise TileRuntimeError(
                "`with` stands on the block's number: the T.Kernel(...) that it comes from is "
                "entered already, for an assignment enters it to the end of the function",
                code="TL1405", hint=f"write `with {launch} as bx:` in one line, without a name "
                f"before, or `bx = {launch}` and no `with`",
            )  # fmt: skip
        if callable(value) and str(getattr(value, "__module__", "")).startswith("tilelab."):
            name = f"T.{getattr(value, '__name__', '')}"
            raise TileTypeError(
                f"`with {name}` names the function and does not call it", code="TL1407",
                hint=f"write `with {name}(...):`",
            )  # fmt: skip


def pick(names: tuple[str, ...], values: Locals) -> Locals:
    """The values of `names`, those that have one."""
    return {n: values[n] for n in names if n in values}


def _is_local(value: Any) -> bool:
    """Whether a value exists only in the region that made it."""
    return isinstance(value, Expr | Buffer | Region) and not isinstance(value, Const)
