"""Small tools of the front end's tests."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
from tilelab.errors import TileError
from tilelab.frontend import PrimFunc
from tilelab.ir import Function, Kernel, Node, walk
from tilelab.ir.printer import to_text


def body_text(program: PrimFunc | Function) -> str:
    """The statements of the only kernel, without the header, dedented."""
    function = program.function if isinstance(program, PrimFunc) else program
    (kernel,) = function.kernels
    return kernel_text(kernel)


def kernel_text(kernel: Kernel) -> str:
    """The statements of a kernel as text, one a line."""
    return "\n".join(to_text(stmt).rstrip() for stmt in kernel.body.body)


def only(program: PrimFunc, kind: type[Node]) -> Any:
    """The only node of a kind in a program."""
    (found,) = (n for n in walk(program.function) if isinstance(n, kind))
    return found


class Caught:
    """What `expect` caught."""

    error: TileError


class expect:
    """`with expect(ValueError, "TL1001", "words") as caught`: the error, its code and its text."""

    def __init__(self, kind: type[Exception], code: str, *words: str) -> None:
        self.kind, self.code, self.words = kind, code, words
        self.caught = Caught()

    def __enter__(self) -> Caught:
        return self.caught

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> bool:
        if error is None:
            pytest.fail(f"nothing was raised, {self.code} was expected")
        if not isinstance(error, TileError):
            return False
        assert isinstance(error, self.kind), error
        assert error.code == self.code, error
        for word in self.words:
            assert word in str(error), error
        self.caught.error = error
        return True


def caret(error: TileError) -> str:
    """The text that the caret of an error underlines."""
    assert error.loc is not None, error
    line, loc = error.loc.text(), error.loc
    stop = loc.end_column if loc.end_line in (0, loc.line) else len(line)
    return line[loc.column : stop]


def run(program: Any, *tensors: torch.Tensor) -> list[Any]:
    """Run in the simulator; what the first tensor holds afterwards."""
    tilelab.compile(program, target="sm_90a")(*tensors)
    return tensors[0].tolist()


def zeros(dtype: torch.dtype = torch.int32) -> torch.Tensor:
    """Eight zeros."""
    return torch.zeros(8, dtype=dtype)


def count(dtype: torch.dtype = torch.int32) -> torch.Tensor:
    """The numbers 0 to 7."""
    return torch.arange(8, dtype=dtype)
