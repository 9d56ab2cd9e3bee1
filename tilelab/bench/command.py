"""`tilelab bench SUITE ...`: arguments, progress, output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from tilelab.bench.peers import KNOWN
from tilelab.bench.run import as_json, run, write
from tilelab.bench.suites import SUITES

Parser = TypeVar("Parser", bound=argparse.ArgumentParser)


def add_options(parser: Parser) -> Parser:
    """The command's own options, in `parser`, which it returns."""
    parser.description = (
        "Measure tilelab beside its peers: same inputs, same timing, results checked before "
        "timing. A peer that is not installed has no column."
    )
    parser.add_argument("suites", nargs="+", choices=[*SUITES, "all"], metavar="SUITE",
                        help=", ".join([*SUITES, "all"]))  # fmt: skip
    parser.add_argument("--peers", help=f"of {','.join(KNOWN)} (default: those installed)")
    parser.add_argument("--reference", type=Path, metavar="FOLDER",
                        help="measure the hand-written kernels that FOLDER/*.json describe, too "
                        "(docs/reference-kernels.md)")  # fmt: skip
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE",
                        help="write JSON to FILE; alone or as -: print it, not tables")  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="FILE",
                        help="write JSON (*.json) or markdown there, too: sections that the file "
                        "has are replaced, the rest of its text is kept")  # fmt: skip
    return parser


def follow(options: argparse.Namespace) -> None:
    """Measure and print tables. Progress goes to standard error."""
    tables = run(
        options.suites,
        options.peers,
        references=options.reference,
        progress=lambda text: print(f"measuring {text} ...", file=sys.stderr, flush=True),
    )
    if options.json == "-":
        print(as_json(tables))
    else:
        print("\n\n".join(t.to_text() for t in tables))
        if options.json:
            Path(options.json).write_text(as_json(tables) + "\n")
    if options.out is not None:
        write(tables, options.out)


def main(argv: Sequence[str] | None = None) -> int:
    """`python -m tilelab.bench`: exit status 0."""
    follow(add_options(argparse.ArgumentParser(prog="tilelab bench")).parse_args(argv))
    return 0
