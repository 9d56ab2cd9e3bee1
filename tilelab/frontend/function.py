"""From a Python function to `ir.Function`: run the rewritten code, collect kernels and sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any

from tilelab.errors import Loc, TileError, TileRuntimeError, TileValueError, shown
from tilelab.frontend.foreign import advise, explain
from tilelab.frontend.frame import Frame
from tilelab.frontend.mutate import bind_tracer, plain_function, traced_code
from tilelab.frontend.params import make_params, settled, value_of
from tilelab.frontend.ranges import check_ranges
from tilelab.frontend.scopes import check_scopes
from tilelab.frontend.session import Session
from tilelab.ir import Buffer, Expr, Function, Kernel, Node, ScalarParam, TensorParam, Var, walk
from tilelab.ir.builder import tracing
from tilelab.ir.printer import to_text


class PrimFunc:
    """A traced program: what @T.prim_func leaves in place of the Python function."""

    def __init__(self, function: Function, source: Callable[..., Any] | None = None) -> None:
        self.function = function
        self.__name__ = function.name
        self.__doc__ = source.__doc__ if source is not None else None
        self.__wrapped__ = source

    @property
    def params(self) -> tuple[TensorParam | ScalarParam, ...]:
        """The parameters, in call order."""
        return self.function.params

    def script(self) -> str:
        """The program as text."""
        return to_text(self.function)

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        raise TileRuntimeError(
            f"{self.__name__} is a traced program and has not been compiled",
            code="TL1480",
            hint=f"compile it first: kernel = tilelab.compile({self.__name__}, out_idx=[-1])",
        )

    __str__ = script

    def __repr__(self) -> str:
        return f"<PrimFunc {self.__name__}>"


def trace(value: Any, outer: Mapping[str, Any] | None = None) -> Function:
    """The IR of a Python function with annotated parameters (or of a PrimFunc, already traced).

    `outer` are the locals around the function, for annotations that only name them.
    """
    if isinstance(value, PrimFunc):
        return value.function
    fn = plain_function(value, "@T.prim_func")
    session = Session("lazy")
    params = make_params(fn, outer)
    arguments = {p.name: value_of(p) for p in params}
    returned = run_traced(session, fn, arguments)
    collect_outputs(session, returned)
    return assemble(session, fn, [settled(p, session.buffers) for p in params])


def run_traced(
    session: Session, fn: FunctionType, arguments: Mapping[str, Any],
    annotated: frozenset[str] = frozenset(),
) -> Any:  # fmt: skip
    """Run the rewritten code of `fn` in `session`; errors get the place in the user's text."""
    code = traced_code(fn, annotated)
    session.add_traced(code)
    for name in arguments:
        session.fresh(name)
    frame = Frame(session)
    with tracing(session):
        try:
            returned = bind_tracer(fn, code, frame)(**arguments)
            frame.finish()
            for launch in session.launches:
                if not launch.opened:  # kept in a list, say
                    raise launch.never_entered()
        except TileError as error:
            advise(error, session)
            error.at(session.loc_of(error.__traceback__))
            raise
        except Exception as error:
            explained = explain(error, session)
            if explained is None:
                raise
            raise explained from None
    return returned


def collect_outputs(session: Session, returned: Any) -> None:
    """Check what a traced function returned against its T.empty tensors."""
    several = isinstance(returned, tuple | list)
    values: list[Any] = list(returned) if several else [] if returned is None else [returned]  # pyright: ignore[reportUnknownArgumentType]
    for value in values:
        if not any(value is empty for empty in session.empties):
            raise TileRuntimeError(
                f"Only tensor allocated from `T.empty` can be returned, got {_describe(value)}",
                code="TL1481",
                loc=session.returned_at,
                hint=_return_hint(session, value),
            )
    for empty in session.empties:
        if not any(empty is value for value in values):
            raise TileRuntimeError(
                f"Not all tensor from `T.empty` are returned: {empty.name} is not",
                code="TL1482",
                loc=empty.loc,
                hint=f"return {empty.name}, or make it a parameter",
            )
    session.outputs = values


def _return_hint(session: Session, value: Any) -> str:
    if session.mode == "lazy":  # a T.prim_func: its tensors are parameters
        return (
            "return nothing: outputs are parameters, which out_idx=[...] of jit or compile() names"
        )
    if isinstance(value, Buffer):
        return f"make it an output: {value.name} = T.empty(shape, dtype), and return that"
    return "return the tensors made by T.empty, and nothing else"


def _describe(value: Any) -> str:
    return value.name if isinstance(value, Buffer) else shown(value)


def assemble(
    session: Session, fn: FunctionType, params: Sequence[TensorParam | ScalarParam]
) -> Function:
    """The Function of a finished trace."""
    everything = [*params, *(TensorParam(b) for b in session.empties)]
    kernels = tuple(s for s in session.blocks[0] if isinstance(s, Kernel))
    code = fn.__code__
    loc = Loc(code.co_filename, code.co_firstlineno, function=fn.__name__)
    if not kernels:
        raise TileValueError(
            f"{fn.__name__} launches no kernel", code="TL1483", loc=loc,
            hint="put the work into `with T.Kernel(grid, threads=128) as bx:`",
        )  # fmt: skip
    for check in session.checks:
        raise TileValueError(
            "an assert on a run-time value stands behind the last kernel", code="TL1447",
            loc=check.loc, hint="move it before a kernel or into one",
        )  # fmt: skip
    sizes = _sizes(everything)
    positions = {id(p.buffer): i for i, p in enumerate(everything) if isinstance(p, TensorParam)}
    function = Function(
        fn.__name__, tuple(everything), kernels, sizes,
        tuple(positions[id(b)] for b in session.outputs), tuple(session.attrs.items()),
        tuple(session.workspaces), loc=loc,
    )  # fmt: skip
    check_scopes(function)
    check_ranges(function)
    return function


def _sizes(params: Iterable[TensorParam | ScalarParam]) -> tuple[Var, ...]:
    """Dynamic sizes of shapes and strides, in order of first appearance."""
    scalars = {id(p.var) for p in params if isinstance(p, ScalarParam)}
    found: dict[int, Var] = {}
    for param in params:
        if not isinstance(param, TensorParam):
            continue
        for dim in (*param.buffer.shape, *(param.buffer.strides or ())):
            for part in walk(dim) if isinstance(dim, Expr) else ():
                _add_size(part, scalars, found)
    return tuple(found.values())


def _add_size(part: Node, scalars: set[int], found: dict[int, Var]) -> None:
    if isinstance(part, Var) and id(part) not in scalars:
        found.setdefault(id(part), part)
