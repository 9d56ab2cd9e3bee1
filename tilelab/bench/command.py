"""`tilelab bench SUITE ...`: arguments, progress, output."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tilelab.bench.peers import KNOWN
from tilelab.bench.run import run, write
from tilelab.bench.suites import SUITES


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print tables; exit status 0. Progress goes to standard error."""
    parser = argparse.ArgumentParser(
        prog="tilelab bench",
        description="Measure tilelab beside its peers: same inputs, same timing, results checked "
        "before timing. A peer that is not installed has an empty column.",
    )
    parser.add_argument("suites", nargs="+", choices=[*SUITES, "all"], metavar="SUITE",
                        help=", ".join([*SUITES, "all"]))  # fmt: skip
    parser.add_argument("--peers", help=f"of {','.join(KNOWN)} (default: those installed)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--out", type=Path, help="write markdown (*.md) or JSON (*.json) there too")
    options = parser.parse_args(argv)
    tables = run(
        options.suites,
        options.peers,
        progress=lambda text: print(f"measuring {text} ...", file=sys.stderr, flush=True),
    )
    if options.json:
        print(json.dumps([t.to_json() for t in tables], indent=1))
    else:
        print("\n\n".join(t.to_text() for t in tables))
    if options.out is not None:
        write(tables, options.out)
    return 0
