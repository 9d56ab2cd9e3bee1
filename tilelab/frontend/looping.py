"""The tracer's part for loops: for, while, break and continue.

A loop of the language is traced once and becomes IR; a Python iterable is expanded now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tilelab.errors import Loc, TileNotSupported, TileRuntimeError, TileTypeError
from tilelab.frontend.loops import Loop, RangeLoop, is_loop, python_values
from tilelab.frontend.regions import Active, Locals, OpenLoop, Regions, pick
from tilelab.frontend.values import is_traced, truth
from tilelab.ir import Break, Continue, If, Stmt, While, as_bool, unary
from tilelab.ir.builder import seq

MAX_PYTHON_ITERATIONS = 10_000


class Looping(Regions):
    """Methods that rewritten loops call."""

    # ---- for --------------------------------------------------------------------------------

    def loop(
        self, number: int, names: tuple[str, ...], carried: tuple[str, ...],
        targets: tuple[str, ...], iterable: Any, values: Locals,
    ) -> Iterator[Any]:  # fmt: skip
        """The values of a for statement's target: once for an IR loop, else one by one."""
        loc = self.session.loc()
        for target in targets:
            self.variables.pop(target, None)
        region = Active(names, pick(names, values), loc, carried=carried)
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
        count = len(value) if isinstance(value, list) else 1  # pyright: ignore[reportUnknownArgumentType]
        if len(targets) > 1 and len(targets) != count:
            raise TileTypeError(
                f"a loop over {count} extent{'s' * (count != 1)} has {count} "
                f"variable{'s' * (count != 1)}, and {len(targets)} names stand before `in`",
                code="TL1460", loc=loc,
                hint="give the loop one extent for each name: "
                f"for {', '.join(t or '_' for t in targets)} in T.Parallel("
                f"{', '.join('nmklpq'[: len(targets)])})",
            )  # fmt: skip
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
            region = Active(names, pick(names, values), self.session.loc(), carried=carried)
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
        if region.count:
            raise TileNotSupported(
                "the condition of this while changed from a Python value to a run-time value",
                code="TL1444",
                hint="keep its variables in T.alloc_var",
            )
        block, region.kind = self.session.blocks[-1], "while"
        computed = block[self._emitted :]  # statements that the condition needs, at each turn
        del block[self._emitted :]
        region.cond = as_bool(True if computed else cond)
        self._loops.append(OpenLoop(number, False))
        body = self.session.open_block()
        if computed:
            leave = If(unary("not", cond), seq([Break(loc=region.loc)]), loc=region.loc)
            body.extend((*computed, leave))
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
