"""Compiler switches by TileLang's path (`tilelang.transform`)."""

from __future__ import annotations

from typing import Any

from tilelab.absent import absent
from tilelab.pass_config import PassConfigKey

__all__ = ["PassConfigKey", "PassContext", "simplify_prim_func"]


def simplify_prim_func(func: Any) -> Any:
    """The function itself: programs are simplified while they are traced."""
    return func


PassContext = absent(
    "transform.PassContext", "there are no TVM passes", "pass pass_configs={...} to compile or jit"
)
