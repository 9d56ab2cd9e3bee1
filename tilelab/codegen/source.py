"""The generated text and where each of its lines comes from.

Hides how lines are collected while a kernel is written.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tilelab.errors import Loc, places
from tilelab.ir import Node

INDENT = "  "
WIDTH = 100


@dataclass(frozen=True)
class LineLink:
    """CUDA line `line` (from 1) was written for `node`, which comes from Python text `loc`."""

    line: int
    node: Node
    loc: Loc | None


@dataclass(frozen=True)
class KernelSpan:
    """Lines `first` to `last` (from 1, inclusive) hold the `__global__` function `name`."""

    name: str
    first: int
    last: int


@dataclass(frozen=True)
class CudaSource:
    """CUDA C++ of a program: text, its kernels in launch order, and line <-> node links."""

    text: str
    links: tuple[LineLink, ...]
    kernels: tuple[KernelSpan, ...]

    @property
    def kernel_names(self) -> tuple[str, ...]:
        """Names of the `__global__` functions, in the order of the program's kernels."""
        return tuple(k.name for k in self.kernels)

    def kernel_text(self, name: str) -> str:
        """The `__global__` function alone; KeyError lists the names."""
        for kernel in self.kernels:
            if kernel.name == name:
                lines = self.text.splitlines()[kernel.first - 1 : kernel.last]
                return "\n".join(lines) + "\n"
        raise KeyError(f"no kernel {name!r}; there are: {', '.join(self.kernel_names)}")

    def lines_of_loc(self, file: str, line: int) -> tuple[int, ...]:
        """CUDA lines written for a Python line, also where that line called a macro."""
        found = {k.line for k in self.links if any(_covers(p, file, line) for p in places(k.loc))}
        return tuple(sorted(found))

    def links_of_line(self, line: int) -> tuple[LineLink, ...]:
        """What a CUDA line was written for, outermost statement first."""
        return tuple(k for k in self.links if k.line == line)


def _covers(loc: Loc, file: str, line: int) -> bool:
    return loc.file == file and loc.line <= line <= max(loc.end_line, loc.line)


class Writer:
    """Lines of one kernel, with an indentation and the node each line was written for."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.links: list[LineLink] = []
        self.depth = 0

    def line(self, text: str, node: Node | None = None, loc: Loc | None = None) -> None:
        """Write a line at the current depth, folded where it is too long; "" leaves it empty."""
        indent = INDENT * self.depth
        code, mark, comment = text.partition("  // ")
        for number, part in enumerate(folded(code, WIDTH - self.width) if text else []):
            self.lines.append(indent + (INDENT * 2 if number else "") + part)
            self.link(node, loc)
        if mark:
            self.lines[-1] += mark + comment
        elif not text:
            self.lines.append("")

    def link(self, node: Node | None, loc: Loc | None) -> None:
        """Say that the last line was written for `node` too."""
        if node is not None:
            self.links.append(LineLink(len(self.lines), node, loc))

    @contextmanager
    def indented(self) -> Generator[None, None, None]:
        """One level deeper."""
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    @property
    def width(self) -> int:
        """Columns left of the text that is written at this depth."""
        return len(INDENT) * self.depth


def folded(code: str, width: int) -> list[str]:
    """`code` in pieces of at most `width` columns, broken where the fewest brackets are open."""
    pieces: list[str] = []
    while len(code) > width:
        place = max(_break_points(code, width), default=None)
        if place is None:
            break
        pieces.append(code[: place[-1]].rstrip())
        code = code[place[-1] :]
        if len(pieces) == 1:
            width -= 2 * len(INDENT)
    return [*pieces, code]


_BREAKS = {", ": 4, " = ": 4, "(": 3, " && ": 2, " || ": 2, " ? ": 2, " : ": 2, " + ": 1}

_TEMPLATE = 100  # never break a line there while anything else is left


def _break_points(code: str, width: int) -> Iterator[tuple[int, int, int]]:
    """Places where a line may end: (minus the open brackets, preference, position).

    An angle bracket next to a word is a template's: operators have spaces around them.
    """
    depth = 0
    for at, char in enumerate(code[:width]):
        after_word = at > 0 and code[at - 1] != " "
        depth += (char in "([{") - (char in ")]}")
        depth += _TEMPLATE * ((char == "<") - (char == ">")) * after_word
        if at < width // 4:
            continue
        for mark, preference in _BREAKS.items():
            if code.endswith(mark, 0, at + 1):
                yield -depth, preference, at + 1
