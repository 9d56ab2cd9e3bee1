"""Argument parsing for a command line that lives in a notebook too: real argparse, no exit.

Hides how argparse reports errors and how `key=value` constants become Python values.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import keyword
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, cast

from tilelab.calls import did_you_mean, nearest
from tilelab.errors import TileError, TileValueError
from tilelab.target import TARGETS, Target, parse_target
from tilelab.views import ALL_KINDS, DEFAULT_KINDS, MAKERS

USAGE = "TL1702"


class HelpShown(Exception):
    """`--help` was asked for; `text` is the help."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def usage_error(message: str, hint: str) -> TileValueError:
    """A command line that cannot be followed (TL1702)."""
    return TileValueError(message, code=USAGE, hint=hint)


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises instead of leaving: HelpShown for `--help`, TileValueError
    (TL1702) for anything it cannot follow, with the option that was probably meant."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)

    def error(self, message: str) -> NoReturn:
        raise usage_error(f"{self.prog}: {message}", self._advice(message))

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise HelpShown(message or "")

    def print_help(self, file: Any = None) -> None:
        raise HelpShown(self.format_help())

    def format_help(self) -> str:
        """The help; argparse halves the percent signs of `%%tilelang` in some places."""
        halved = self.prog.replace("%%", "%")
        return super().format_help().replace(f"usage: {halved} ", f"usage: {self.prog} ", 1)

    def options(self) -> list[str]:
        """Every option string of this parser and its commands."""
        found = [name for action in self._actions for name in action.option_strings]
        for action in self._actions:
            commands: Any = action.choices  # a dict of parsers where the action is a command
            if isinstance(commands, dict):
                for made in cast("dict[str, Parser]", commands).values():
                    found += made.options()
        return found

    def _advice(self, message: str) -> str:
        found: list[str] = []
        for word in message.replace(":", " ").split():
            if re.match("--?[a-zA-Z]", word):  # -1 is a value
                option = word.split("=")[0]
                if option not in self.options():
                    found += difflib.get_close_matches(option, self.options(), 1, 0.5)
        choice = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if choice is not None:
            known = re.findall(r"[\w.-]+", choice[2])
            found += filter(None, [nearest(choice[1], known)])
        if found:
            return f"did you mean {' or '.join(dict.fromkeys(found))}?"
        return f"see {self.prog} --help"


def split_line(line: str) -> list[str]:
    """The words of a magic's line, quoted as in a shell."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise usage_error(f"the options cannot be split into words: {error}",
                          "close every quotation mark") from error  # fmt: skip


def target_argument(text: str) -> Target:
    """A `--target` value."""
    try:
        found = parse_target(text)
    except TileValueError as error:
        raise argparse.ArgumentTypeError(f"{error.message}; {error.hint}") from error
    if found is None:
        raise argparse.ArgumentTypeError(f"{text} names no chip; use one of {', '.join(TARGETS)}")
    return found


def counted(what: str) -> Callable[[str], int]:
    """The type of an argument that is a whole number from 1 on, called `what` in its error."""

    def count(text: str) -> int:
        if not text.isdecimal() or int(text) < 1:
            raise argparse.ArgumentTypeError(f"{text!r} is no {what}: give 1 or more")
        return int(text)

    return count


def kinds_argument(text: str) -> tuple[str, ...]:
    """A `--show` value: names of views between commas, "all" or "none"."""
    words = tuple(word for word in (w.strip() for w in text.split(",")) if word)
    if words in (("none",), ()):
        return ()
    if words == ("all",):
        return ALL_KINDS
    for word in words:
        if word not in MAKERS:
            near = did_you_mean(word, MAKERS)
            meant = f" ({near})" if near else ""
            known = ", ".join(MAKERS)
            raise argparse.ArgumentTypeError(f"there is no view {word!r}{meant}; one of {known}")
    return words


def add_kernel_options(parser: argparse.ArgumentParser) -> None:
    """The options that every command about one kernel has, in a notebook and in a terminal."""
    parser.add_argument("--target", type=target_argument, metavar="|".join(TARGETS),
                        help="the chip to compile for (default: the one here)")  # fmt: skip
    parser.add_argument("--show", type=kinds_argument, default=DEFAULT_KINDS, metavar="VIEWS",
                        help="some of " + ",".join(MAKERS) + " between commas, all, or none "
                        "(default: " + ",".join(DEFAULT_KINDS) + ")")  # fmt: skip
    parser.add_argument("--plain", action="store_true",
                        help="the textbook structure: one ring of stages, one tile a block, "
                        "results stored by the threads")  # fmt: skip
    parser.add_argument("--out-idx", type=outputs_argument, metavar="I",
                        help="parameters that a call returns, e.g. -1")  # fmt: skip
    parser.add_argument("constants", nargs="*", default=[], metavar="key=value",
                        help="constants for a factory or a @tilelang.jit function")  # fmt: skip


def name_argument(text: str) -> str:
    """A `--name` value: a variable of Python."""
    if not text.isidentifier() or keyword.iskeyword(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no name of a variable; use letters, digits and _, such as my_kernel"
        )
    return text


def outputs_argument(text: str) -> list[int]:
    """An `--out-idx` value: positions between commas."""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no list of positions like 2 or -1"
        ) from error


def constants(words: Sequence[str], names: Mapping[str, Any]) -> dict[str, Any]:
    """`key=value` words as keyword arguments.

    A value is Python: a literal (`1024`, `True`, `"float16"`, `(64, 64)`), or an expression of
    names in `names` (`T.float16`, `2*size`); or else plain text (`float16`). TileValueError
    (TL1702) for an expression that fails.
    """
    found: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key.isidentifier():
            raise usage_error(f"{word!r} is no key=value pair", "write constants as M=1024")
        if key in found:
            raise usage_error(f"the constant {key} is given twice", "give it once")
        found[key] = _value(text, names)
    return found


def _value(text: str, names: Mapping[str, Any]) -> Any:
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return text
    used = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    if not all(name in names for name in used):
        return text
    try:
        return eval(compile(tree, "<constant>", "eval"), dict(names))  # the reader's own words
    except TileError:
        raise
    except Exception as error:
        raise usage_error(
            f"the constant {text} cannot be worked out: {error}",
            "write a number, a text, or an expression of names",
        ) from error
