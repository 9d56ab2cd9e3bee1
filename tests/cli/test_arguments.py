"""Argument lines as the magics and the command line read them: 40 lines, 40 outcomes."""

from __future__ import annotations

from typing import Any

import pytest

from tilelab.cli import parser
from tilelab.commands.arguments import HelpShown, constants, split_line
from tilelab.errors import TileValueError
from tilelab.notebook.magics import cell_parser, line_parser
from tilelab.target import SM80, SM90A
from tilelab.views import ALL_KINDS, DEFAULT_KINDS

GOOD: list[tuple[str, dict[str, Any]]] = [
    ("", {"target": None, "show": DEFAULT_KINDS, "run": False, "name": None, "constants": []}),
    ("--target sm_80", {"target": SM80}),
    ("--target=sm_90a", {"target": SM90A}),
    ("--target sm_90", {"target": SM90A}),
    ("--target 'cuda -arch=sm_80'", {"target": SM80}),
    ("--show memory", {"show": ("memory",)}),
    ("--show=memory,source", {"show": ("memory", "source")}),
    ("--show 'memory, source'", {"show": ("memory", "source")}),
    ("--show none", {"show": ()}),
    ("--show ''", {"show": ()}),
    ("--show all", {"show": ALL_KINDS}),
    ("--run", {"run": True}),
    ("--inputs a,b", {"inputs": "a,b", "run": False}),
    ("--name gemm", {"name": "gemm"}),
    ("--name=_odd", {"name": "_odd"}),
    ("--out-idx -1", {"out_idx": [-1]}),
    ("--out-idx=-1", {"out_idx": [-1]}),
    ("--out-idx 1,2", {"out_idx": [1, 2]}),
    ("M=1024 N=1024", {"constants": ["M=1024", "N=1024"]}),
    ("M=1024 --run N=64", {"constants": ["M=1024", "N=64"], "run": True}),
    ("--run M=1024", {"constants": ["M=1024"], "run": True}),
    ('label="two words"', {"constants": ["label=two words"]}),
    ("alpha=-1.5", {"constants": ["alpha=-1.5"]}),
    ("--target sm_80 --show memory --name k M=8", {"name": "k", "constants": ["M=8"]}),
]
BAD = [
    ("--targt sm_80", "did you mean --target"),
    ("--shw memory", "did you mean --show"),
    ("--sho memory", "did you mean --show"),
    ("--out-index 1", "did you mean --out-idx"),
    ("--rum", "did you mean --run"),
    ("--zzz", "--help"),
    ("--target", "expected one argument"),
    ("--target sm_75", "sm_80"),
    ("--target cuda", "names no chip"),
    ("--show memry", "did you mean memory"),
    ("--out-idx x", "list of positions"),
    ("--name 'open", "quotation"),
]


@pytest.mark.parametrize(("line", "expected"), GOOD, ids=[line for line, _ in GOOD])
def test_lines_that_can_be_followed(line: str, expected: dict[str, Any]) -> None:
    options = vars(cell_parser().parse_intermixed_args(split_line(line)))
    assert {k: options[k] for k in expected} == expected


@pytest.mark.parametrize(("line", "words"), BAD, ids=[line for line, _ in BAD])
def test_lines_that_cannot(line: str, words: str) -> None:
    with pytest.raises(TileValueError) as caught:
        cell_parser().parse_intermixed_args(split_line(line))
    assert caught.value.code == "TL1702"
    assert words in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize("make", [cell_parser, line_parser, parser])
def test_help_is_text_and_leaves_nothing(make: Any) -> None:
    with pytest.raises(HelpShown) as caught:
        made = make()
        made.parse_args(["--help"])
    assert "usage:" in caught.value.text


def test_options_of_commands_are_suggested_too() -> None:
    with pytest.raises(TileValueError, match="did you mean --device"):
        parser().parse_args(["run", "--devic", "sim", "x.py"])
    with pytest.raises(TileValueError, match="did you mean show"):
        parser().parse_args(["shwo", "x.py"])


class Names:
    float16 = "the type"


def test_constants_become_values() -> None:
    words = ["a=1", "b=-2.5", "c=True", "d='x'", "e=float16", "f=T.float16", "g=(1, 2)", "h=size",
             "i=2*size//4", "k=2 * 32", "l=e4m3", "m=size-of"]  # fmt: skip
    assert constants(words, {"T": Names, "size": 64}) == {
        "a": 1, "b": -2.5, "c": True, "d": "x", "e": "float16", "f": "the type", "g": (1, 2),
        "h": 64, "i": 32, "k": 64, "l": "e4m3", "m": "size-of",
    }  # fmt: skip


@pytest.mark.parametrize("words", [["M"], ["2=3"], ["=3"], ["M=1", "M=2"], ["M=1/0"]])
def test_constants_that_are_none(words: list[str]) -> None:
    with pytest.raises(TileValueError) as caught:
        constants(words, {})
    assert caught.value.code == "TL1702"
