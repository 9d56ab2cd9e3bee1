"""The front end: a Python function becomes tile IR, with the place of every statement."""

from tilelab.frontend.captured import Captured
from tilelab.frontend.checks import check_in_kernel
from tilelab.frontend.eager import EagerFunction, EagerSignature, const_value, no_match, style_of
from tilelab.frontend.function import PrimFunc, trace
from tilelab.frontend.kernel import KernelFrame
from tilelab.frontend.loops import GridLoop, ParallelLoop, PersistentLoop, RangeLoop, ThreadLoop
from tilelab.frontend.macro import Macro
from tilelab.frontend.mutate import plain_function
from tilelab.frontend.pools import pointed
from tilelab.frontend.session import Session, open_kernel, session
from tilelab.frontend.types import (
    REF,
    PointerParam,
    PointerType,
    TensorType,
    Variable,
    as_dims,
    plain_dtype,
)
from tilelab.frontend.values import is_traced, truth

__all__ = [
    "REF", "Captured", "EagerFunction", "EagerSignature", "GridLoop", "KernelFrame", "Macro",
    "ParallelLoop",
    "PersistentLoop", "PointerParam", "PointerType", "PrimFunc", "RangeLoop", "Session",
    "TensorType", "ThreadLoop", "Variable", "as_dims", "check_in_kernel", "const_value",
    "is_traced", "no_match", "open_kernel", "plain_dtype", "plain_function", "pointed", "session",
    "style_of", "trace", "truth",
]  # fmt: skip
