"""Every name of the language that programs use most: it is there and a test's program uses it, or
it raises an error that says it is not.

tests/data/language_names.txt holds the names in order of use: in the examples and tests of the
peer, those for Blackwell's tensor memory left out.
"""

from __future__ import annotations

import ast
import inspect
from functools import cache
from pathlib import Path

import pytest

import tilelab.language as T
from tilelab.errors import TileNameError
from tilelab.language.known import GROUP_OF

TESTS = Path(__file__).resolve().parent.parent
NAMES = (TESTS / "data" / "language_names.txt").read_text("utf-8").split()
SIGNATURES = (TESTS / "data" / "language_signatures.txt").read_text("utf-8").splitlines()
"""One function a line: its name and its arguments in TileLang 0.1.15. `=` marks those that may be
left out, those after `*` are given by name."""

OLDER_ORDER = frozenset({"Pipelined", "gemm", "reduce"})
"""Their last arguments stand as in 0.1.13, which had more of them."""

REFUSED = frozenset({
    "gemm_sp", "WSID", "WSPipeline",
    "WSRole", "WSSchedule", "WSScope", "WSSync", "annotate_ws_schedule", "ws_op",
})  # fmt: skip
"""Names of the list that this version does not have."""


@cache
def _used() -> frozenset[str]:
    """Names that the programs of the tests use: `T.name`, getattr(T, "name"), or in a string."""
    found: set[str] = set()
    for path in sorted(TESTS.rglob("*.py")):
        if path == Path(__file__):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "T":
                found.add(node.attr)
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return frozenset(found)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in REFUSED])
def test_a_name_is_there_and_used(name: str) -> None:
    assert getattr(T, name) is not None
    assert name in _used(), f"no program of the tests uses T.{name}"


def test_the_refused_names_are_those() -> None:
    assert {n for n in NAMES if not hasattr(T, n)} == REFUSED


@pytest.mark.parametrize("name", sorted(n for n in {*GROUP_OF, *REFUSED} if not hasattr(T, n)))
def test_a_missing_name_says_so(name: str) -> None:
    with pytest.raises(TileNameError, match=f"T.{name} is part of the language") as raised:
        getattr(T, name)
    assert raised.value.code == "TL1005"
    assert raised.value.hint


@pytest.mark.parametrize("line", SIGNATURES, ids=[s.split()[0] for s in SIGNATURES])
def test_arguments_are_the_peers(line: str) -> None:
    """Every way to pass the arguments that TileLang allows: by place, by name, with as few as it
    takes."""
    name, *words = line.split()
    signature = inspect.signature(getattr(T, name))
    star = next((n for n, w in enumerate(words) if w.startswith("*")), len(words))
    by_place, by_name = words[:star], [w for w in words[star:] if not w.startswith("*")]
    needed = [w for w in (*by_place, *by_name) if not w.endswith("=")]
    signature.bind(**dict.fromkeys(needed))
    signature.bind(**dict.fromkeys(w.rstrip("=") for w in (*by_place, *by_name)))
    bound = signature.bind(*by_place, **dict.fromkeys(w for w in by_name if w in needed))
    if name not in OLDER_ORDER:
        assert [w.rstrip("=") for w in by_place] == list(bound.arguments)[: len(by_place)]


def test_the_list_is_long_enough() -> None:
    assert len(NAMES) == len(set(NAMES)) >= 120
