"""`python -m tests.fuzz FAMILY FIRST COUNT`: many draws, a line for each failure's kind."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.run import FAMILIES, TARGETS, examine, report, smallest


def main() -> None:
    """Draw, judge, shrink and write down what failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("family", choices=[*FAMILIES, "all"])
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--nvrtc", action="store_true", help="compile the CUDA text too")
    parser.add_argument("--on-cpu", action="store_true", help="run the CUDA text too (host.py)")
    parser.add_argument("--out", default="", help="folder for failing programs")
    parser.add_argument("--repeat", type=int, default=1, help="failures of a kind to write down")
    options = parser.parse_args()
    families = list(FAMILIES) if options.family == "all" else [options.family]
    seen: Counter[str] = Counter()
    started = time.process_time()
    for seed in range(options.first, options.first + options.count):
        for family in families:
            for target in TARGETS:
                made, verdict = examine(family, seed, target, options.nvrtc, options.on_cpu)
                kind = f"{verdict.kind} {target}" if not verdict.good else verdict.kind
                seen[kind] += 1
                if verdict.good or seen[kind] > options.repeat:
                    continue
                small = smallest(family, made, target, verdict, options.nvrtc)
                text = report(family, small, target, seed)
                if options.out:
                    safe = "".join(ch if ch.isalnum() else "-" for ch in verdict.kind)[:60]
                    path = Path(options.out) / f"{family}-{seed}-{target}-{safe}.py"
                    path.write_text(text)
                    print(f"{seed} {kind}: {path}", flush=True)
                else:
                    print(text, flush=True)
        if (seed - options.first) % 20 == 19:  # what an interrupted run has shown counts too
            print(f"to {seed}:", ", ".join(f"{n} {kind}" for kind, n in seen.items()), flush=True)
    for kind, count in seen.most_common():
        print(f"{count:6} {kind}")
    print(f"{time.process_time() - started:.0f} s of processor time")


if __name__ == "__main__":
    sys.exit(main())
