"""Tensors of the user's own for the tuner: `with set_autotune_inputs(a, b): ...`."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any

from tilelab.calls import answer_all

_GIVEN: ContextVar[tuple[Any, ...] | None] = ContextVar("tilelab_autotune_inputs", default=None)


class set_autotune_inputs:  # TileLang's name
    """Inside, kernels are tuned on these tensors (one argument for each, or one list of them) in
    place of made-up ones. Every config gets copies, so the tensors keep their values."""

    def __init__(self, *tensors: Any) -> None:
        alone = len(tensors) == 1 and isinstance(tensors[0], list | tuple)
        self.tensors: tuple[Any, ...] = (*tensors[0],) if alone else tensors
        self._token: Token[tuple[Any, ...] | None] | None = None

    def __enter__(self) -> set_autotune_inputs:
        self._token = _GIVEN.set(self.tensors)
        return self

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _GIVEN.reset(self._token)


def get_autotune_inputs() -> tuple[Any, ...] | None:
    """The tensors of the innermost open `set_autotune_inputs`; None outside of any."""
    return _GIVEN.get()


answer_all(globals(), ("get_autotune_inputs",), "autotuner")
