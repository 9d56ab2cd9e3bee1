"""The tracer's part for control flow: branches, loops, `with`, and what survives them.

A Python condition picks a branch now; a traced one opens IR blocks. On leaving an IR region the
names it bound are poisoned, so a value cannot be used where it does not exist, and a value that
would have to travel from one iteration to the next is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tilelab.errors import Loc, TileNotSupported, TileRuntimeError, TileTypeError
from tilelab.frontend.kernel import KernelFrame
from tilelab.frontend.loops import Loop, RangeLoop, is_loop, python_values
from tilelab.frontend.poison import Poison, outside, unassigned
from tilelab.frontend.session import Session
from tilelab.frontend.values import is_traced, truth
from tilelab.ir import Break, Buffer, Const, Continue, Expr, If, Region, Stmt, While, as_bool
from tilelab.ir.builder import seq

Locals = dict[str, Any]
MAX_PYTHON_ITERATIONS = 10_000


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
        region = Active(names, _pick(names, values), self.session.loc())
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

    # ---- for --------------------------------------------------------------------------------

    def loop(
        self, number: int, names: tuple[str, ...], carried: tuple[str, ...],
        targets: tuple[str, ...], iterable: Any, values: Locals,
    ) -> Iterator[Any]:  # fmt: skip
        """The values of a for statement's target: once for an IR loop, else one by one."""
        loc = self.session.loc()
        for target in targets:
            self.variables.pop(target, None)
        region = Active(names, _pick(names, values), loc, carried=carried)
        self._active[number] = region
        spec = iterable
        if isinstance(iterable, range) and self.session.kernel is not None:
            spec = RangeLoop(iterable.start, iterable.stop, iterable.step)
        if is_loop(spec):
            region.kind = "loop"
            return self._ir_loop(number, spec, targets, loc)
        items = python_values(iterable)
        if items is None:
            raise TileTypeError(
                f"a for statement cannot run over {type(iterable).__name__}",
                code="TL1442",
                hint="use range(n), T.serial(n), T.Parallel(n) or a Python list",
            )
        self._loops.append(OpenLoop(number, True, depth=len(self.session.blocks)))
        return items

    def _ir_loop(
        self, number: int, spec: Loop, targets: tuple[str, ...], loc: Loc | None
    ) -> Iterator[Any]:
        if self.session.kernel is None:
            raise TileRuntimeError(
                "a loop of the kernel stands outside T.Kernel", code="TL1405",
                hint="move it into the body of `with T.Kernel(...)`",
            )  # fmt: skip
        value, finish = spec.open(self.session, targets, loc)
        self._loops.append(OpenLoop(number, False, spec.independent))
        yield value
        self._loops.pop()
        finish()

    # ---- while ------------------------------------------------------------------------------

    def again(self, number: int) -> bool:
        """Whether the condition of a while has to be evaluated (an IR loop is traced once)."""
        region = self._active.get(number)
        self._emitted = len(self.session.blocks[-1])
        if region is None or region.kind != "while":
            return True
        body = self.session.close_block()
        self._loops.pop()
        self.session.emit(While(region.cond, seq(body, region.loc), loc=region.loc))
        return False

    def test(
        self, number: int, names: tuple[str, ...], carried: tuple[str, ...], literal: bool,
        cond: Any, values: Locals,
    ) -> bool:  # fmt: skip
        """Whether the body of a while runs (again)."""
        region = self._active.get(number)
        if region is None:
            region = Active(names, _pick(names, values), self.session.loc(), carried=carried)
            self._active[number] = region
        if is_traced(cond):
            return self._open_while(number, region, cond)
        region.count += 1
        if truth(cond) and (literal or region.count > MAX_PYTHON_ITERATIONS):
            raise TileRuntimeError(
                "Infinite while loop: the condition is true while the kernel is traced",
                code="TL1443",
                hint="let the condition read a T.alloc_var, or use a for loop with break",
            )
        if region.count == 1:
            self._loops.append(OpenLoop(number, True, depth=len(self.session.blocks)))
        return truth(cond)

    def _open_while(self, number: int, region: Active, cond: Any) -> bool:
        if len(self.session.blocks[-1]) != self._emitted:
            raise TileNotSupported(
                "the condition of this while has a side effect", code="TL1444",
                hint="compute it into a T.alloc_var before the loop and at the end of its body",
            )  # fmt: skip
        if region.count:
            raise TileNotSupported(
                "the condition of this while changed from a Python value to a run-time value",
                code="TL1444",
                hint="keep its variables in T.alloc_var",
            )
        region.kind, region.cond = "while", as_bool(cond)
        self._loops.append(OpenLoop(number, False))
        self.session.open_block()
        return True

    # ---- break and continue -----------------------------------------------------------------

    def break_(self) -> bool:
        """`break`: True when Python itself should leave its loop."""
        if self._loops[-1].independent:
            raise TileNotSupported(
                "break in T.Parallel: its iterations are independent and have no order",
                code="TL1445",
                hint="guard the body with an if, or use T.serial",
            )
        return self._jump(Break)

    def continue_(self) -> bool:
        """`continue`: True when Python itself should go on with its loop."""
        return self._jump(Continue)

    def _jump(self, kind: Callable[..., Stmt]) -> bool:
        loop = self._loops[-1]
        if not loop.python:
            self.session.emit(kind(loc=self.session.loc()))
            return False
        if len(self.session.blocks) != loop.depth:
            raise TileNotSupported(
                "this loop is expanded while the kernel is traced, and break or continue depends "
                "on a value known only at run time",
                code="TL1446",
                hint="use T.serial or T.unroll for the loop",
            )
        return True

    # ---- with -------------------------------------------------------------------------------

    def managed(
        self, number: int, names: tuple[str, ...], targets: tuple[str, ...], value: Any,
        values: Locals,
    ) -> Any:  # fmt: skip
        """A context manager about to be entered."""
        region = self._active.setdefault(
            number, Active(names, _pick(names, values), self.session.loc())
        )
        if isinstance(value, KernelFrame):
            region.kind = "with"
            self.session.hint = targets or None
        return value


def _pick(names: tuple[str, ...], values: Locals) -> Locals:
    return {n: values[n] for n in names if n in values}


def _is_local(value: Any) -> bool:
    """Whether a value exists only in the region that made it."""
    return isinstance(value, Expr | Buffer | Region) and not isinstance(value, Const)
