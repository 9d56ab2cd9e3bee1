"""A whole drawn program: runnable text, inputs, and what its tensors must hold afterwards.

Hides how the text becomes a kernel (with its lines known to tilelab, as those of a notebook cell
are), how the grid is run on numpy arrays, and how a disagreement is described.
"""

from __future__ import annotations

import itertools
import linecache
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

import tilelab
from tests.fuzz.scalars import Env, numpy_type
from tests.fuzz.tiles import Statement, Tile, indented, run_all
from tilelab.errors import SharedMemoryOverflow, TileError

SENTINEL = 9
HEAD = """\
import numpy as np
import torch
import tilelab
import tilelab.language as T


def values(shape, dtype, low, high, seed):
    drawn = np.random.default_rng(seed).integers(low, high + 1, shape)
    return torch.from_numpy(drawn).to(getattr(torch, dtype))

"""


@dataclass(frozen=True)
class Tensor:
    """A parameter: what it holds before (whole numbers from low to high, drawn with the seed)."""

    tile: Tile
    low: int
    high: int
    seed: int = 0

    def numbers(self) -> Any:
        drawn = np.random.default_rng(self.seed).integers(self.low, self.high + 1, self.tile.shape)
        return drawn.astype(np.float64).astype(numpy_type(self.tile.dtype))

    def text(self) -> str:
        return (f"values({self.tile.shape}, {self.tile.dtype!r}, {self.low}, {self.high}, "
                f"{self.seed})")  # fmt: skip


@dataclass(frozen=True)
class Launch:
    """One kernel: its grid, its threads, and its body."""

    grid: tuple[int, ...]
    threads: int
    allocations: Sequence[str]
    tiles: Sequence[Tile]
    body: Sequence[Statement]
    heads: Sequence[str] = ()
    """The extents of the grid as the program spells them, where that differs."""

    def lines(self) -> list[str]:
        names = ("bx", "by", "bz")[: len(self.grid)]
        extents = ", ".join(self.heads or map(str, self.grid))
        bound = names[0] if len(names) == 1 else f"({', '.join(names)})"
        head = f"with T.Kernel({extents}, threads={self.threads}) as {bound}:"
        return [head, *(f"    {a}" for a in self.allocations), *indented(self.body)]

    def run(self, memory: Env) -> None:
        for block in itertools.product(*(range(n) for n in reversed(self.grid))):
            env = dict(memory)
            env.update(zip(("bx", "by", "bz"), reversed(block), strict=False))
            for tile in self.tiles:
                env[tile.name] = np.zeros(tile.shape, numpy_type(tile.dtype))
            run_all(self.body, env)


@dataclass
class Program:
    """Tensors and kernels; `sizes` are dynamic sizes by name, `numbers` scalar parameters."""

    tensors: list[Tensor]
    launches: list[Launch]
    sizes: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, tuple[str, int]] = field(default_factory=dict)
    configs: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """The program as a Python file that compiles and simulates it."""
        params = [f'{t.tile.name}: T.Tensor({t.tile.spelled()}, "{t.tile.dtype}")'
                  for t in self.tensors]  # fmt: skip
        params += [f"{name}: T.{dtype}" for name, (dtype, _) in self.numbers.items()]
        lines = [f'{size} = T.dynamic("{size}")' for size in self.sizes]
        lines += ["", "@T.prim_func", "def main(", *(f"    {p}," for p in params), "):"]
        lines += [f"    {line}" for launch in self.launches for line in launch.lines()]
        return HEAD + "\n".join(lines) + "\n"

    def calling(self, target: str) -> str:
        """Lines after the text that run it."""
        args = [t.text() for t in self.tensors] + [str(v) for _, v in self.numbers.values()]
        listed = "".join(f"    {a},\n" for a in args)
        return (f'\nkernel = tilelab.compile(main, target="{target}", '
                f"pass_configs={self.configs!r})\nargs = [\n{listed}]\n"
                "report = kernel.simulate(*args)\nprint(report.findings)\n")  # fmt: skip

    def expected(self) -> dict[str, Any]:
        """What numpy makes of the grammar's program."""
        memory: Env = {t.tile.name: t.numbers() for t in self.tensors}
        memory.update(self.sizes)
        memory.update({n: v for n, (_, v) in self.numbers.items()})
        for launch in self.launches:
            launch.run(memory)
        return {t.tile.name: memory[t.tile.name] for t in self.tensors}


@dataclass(frozen=True)
class Verdict:
    """What became of a program: "right", "too large", "refused TLnnnn", or a failure's kind with
    its details."""

    kind: str
    details: str = ""

    @property
    def good(self) -> bool:
        return self.kind in ("right", "too large")


_counter = itertools.count()


def compiled(program: Program, target: str) -> Any:
    """The program's kernel, traced from its text."""
    text = program.text()
    path = f"<drawn {next(_counter)}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    names: dict[str, Any] = {"__name__": "drawn"}
    exec(compile(text, path, "exec"), names)
    return tilelab.compile(names["main"], target=target, pass_configs=program.configs)


def judge(program: Program, target: str, nvrtc: Callable[[Any, str], str] | None = None) -> Verdict:
    """Compile, simulate under all checks, compare; with `nvrtc`, compile the CUDA text too."""
    try:
        kernel = compiled(program, target)
    except SharedMemoryOverflow:
        return Verdict("too large")
    except TileError as error:
        return Verdict(f"refused {error.code}", str(error))
    except Exception:
        return _crash("compiling")
    try:
        return _run(kernel, program) if nvrtc is None else _built(kernel, program, target, nvrtc)
    except TileError as error:
        return Verdict(f"error {error.code}", str(error))
    except Exception:
        return _crash("running")


def _crash(when: str) -> Verdict:
    text = traceback.format_exc()
    last = [line for line in text.splitlines() if "tilelab/" in line or "tests/" in line][-1:]
    return Verdict(f"crash {when} {' '.join(last).strip()}", text)


def _built(kernel: Any, program: Program, target: str, nvrtc: Callable[[Any, str], str]) -> Verdict:
    found = _run(kernel, program)
    complaint = nvrtc(kernel, target) if found.good else ""
    return Verdict("nvrtc", complaint) if complaint else found


def _run(kernel: Any, program: Program) -> Verdict:
    tensors = [
        torch.from_numpy(t.numbers().astype(np.float64)).to(getattr(torch, t.tile.dtype))
        for t in program.tensors
    ]
    want = program.expected()
    report = kernel.simulate(*tensors, *(v for _, v in program.numbers.values()))
    if report.findings:
        first = report.findings[0]
        return Verdict(f"finding {first.code}", "\n".join(map(str, report.findings[:3])))
    for tensor, got in zip(program.tensors, tensors, strict=True):
        name = tensor.tile.name
        wrong = got.to(torch.float64).numpy() != want[name].astype(np.float64)
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            return Verdict(
                "mismatch",
                f"{int(wrong.sum())} of {wrong.size} elements of {name} are wrong, first at {at}: "
                f"{got.to(torch.float64).numpy()[at]}, not {want[name].astype(np.float64)[at]}",
            )
    return Verdict("right")
