"""The tracer object (`__tl`) of one call of a traced function: the sum of its parts."""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable
from typing import Any

from tilelab.errors import TileRuntimeError, TileTypeError, shown
from tilelab.frontend.assign import Assign
from tilelab.frontend.checks import check_in_kernel
from tilelab.frontend.kernel import KernelFrame
from tilelab.frontend.looping import Looping
from tilelab.frontend.loops import is_loop
from tilelab.frontend.poison import Poison, raise_poison
from tilelab.frontend.session import Session
from tilelab.frontend.types import TensorType
from tilelab.frontend.values import Values, is_traced, truth


class Frame(Values, Assign, Looping):
    """What rewritten code calls. One for each call, so names and regions are that call's own."""

    locals = staticmethod(builtins.locals)

    def __init__(self, session: Session) -> None:
        Values.__init__(self)
        Assign.__init__(self)
        Looping.__init__(self)
        self.session = session
        self.open_frames: list[KernelFrame] = []
        self._depth = len(session.blocks)

    def stmt(self, value: Any) -> None:
        """An expression used as a statement."""
        if value is None:
            return
        if isinstance(value, Poison):
            raise_poison(value)
        if isinstance(value, KernelFrame) and not value.opened:
            raise value.never_entered()
        if is_loop(value):
            warnings.warn("a loop that is not used in a for statement does nothing", stacklevel=2)
        self.session.adopt(value)

    def fails(self, cond: Any, message: Callable[[], Any] | None = None) -> bool:
        """Whether an assert fails now; a run-time condition is checked by the kernel that is open
        or, outside of kernels, the next one, with `message()` as its text."""
        if not is_traced(cond):
            return not truth(cond)
        if self.session.mode == "signature":
            return False  # constants have no value yet
        check_in_kernel(self.session, cond, "" if message is None else str(message()))
        return False

    def ret(self, value: Any) -> Any:
        """`return value`; not from inside a run-time branch or loop (TL1448)."""
        inside_kernel = 1 if self.session.kernel is not None and self._depth == 1 else 0
        if len(self.session.blocks) != self._depth + inside_kernel:
            raise TileRuntimeError(
                "return from control flow is not supported yet",
                code="TL1448",
                hint="assign to a T.alloc_var in the branch and return it at the end",
            )
        if isinstance(value, Poison):
            raise_poison(value)
        self.session.returned_at = self.session.loc()
        return value

    def annotate(self, name: str, annotation: Any) -> Any:
        """`A: T.Tensor[...]` in an eager function: the parameter is this tensor."""
        if not isinstance(annotation, TensorType):
            raise TileTypeError(
                f"the annotation of {name} is {shown(annotation)}, which is no tensor type",
                code="TL1421",
                hint="write A: T.Tensor[[M, K], dtype]",
            )
        return self.session.declare(name, annotation)

    def finish(self) -> None:
        """The function's body ended: close kernels opened by plain assignment."""
        for frame in reversed(self.open_frames):
            frame.session.close_kernel()
        self.session.check_lost()
