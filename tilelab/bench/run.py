"""Running suites and writing their tables."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from tilelab.bench.peers import parse_peers
from tilelab.bench.problems import PROBLEMS
from tilelab.bench.reference import load
from tilelab.bench.suites import NEEDS_GPU, SUITES, Beside
from tilelab.bench.table import Table
from tilelab.errors import TileRuntimeError, TileValueError


def machine() -> tuple[str, bool]:
    """What is measured on, and whether it has a GPU."""
    import torch

    cpu = f"{os.cpu_count()} CPU cores ({platform.machine()})"
    if torch.cuda.is_available():
        return f"{torch.cuda.get_device_name(0)}, {cpu}, torch {torch.__version__}", True
    return f"{cpu}, no GPU, torch {torch.__version__}", False


def run(
    suites: Sequence[str],
    peers: str | Sequence[str] | None = None,
    *,
    references: Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> list[Table]:
    """Measure `suites` ("all": every suite that this machine can run) against `peers` and the
    hand-written kernels described in the folder `references` (docs/reference-kernels.md).

    Raises TileValueError for an unknown suite (TL2103) or a wrong description (TL2121),
    TileRuntimeError (TL2104) for a suite that needs a GPU where there is none.
    """
    names = list(SUITES) if "all" in suites else list(suites)
    for name in names:
        if name not in SUITES:
            raise TileValueError(
                f"no suite is called {name!r}",
                code="TL2103",
                hint="suites: " + ", ".join([*SUITES, "all"]),
            )
    # What was asked for is looked at first: a mistake there is one on every machine.
    beside = Beside(parse_peers(peers), load(references, PROBLEMS))
    where, has_gpu = machine()
    if not has_gpu:
        refused = [n for n in names if n in NEEDS_GPU]
        if refused and "all" not in suites:
            raise TileRuntimeError(
                f"{', '.join(refused)} needs an NVIDIA GPU and there is none here",
                code="TL2104",
                hint="run compile, sim and notebook, which need none",
            )
        names = [n for n in names if n not in NEEDS_GPU]
    asked = (f" --peers {','.join(beside.peers)}" if beside.peers else "") + (
        f" --reference {references}" if references else ""
    )
    date = datetime.date.today().isoformat()
    tables: list[Table] = []
    for name in names:
        rows = SUITES[name](beside, progress)
        tables.append(Table(name, f"tilelab bench {name}{asked}", date, where, rows))
    return tables


def as_json(tables: Sequence[Table]) -> str:
    """Tables as a JSON list."""
    return json.dumps([t.to_json() for t in tables], indent=1)


def write(tables: Sequence[Table], path: Path) -> None:
    """Write tables as JSON (*.json), or as markdown sections: those that the file has already are
    replaced where they stand, the rest of its text is kept, new ones are added at its end."""
    if path.suffix == ".json":
        path.write_text(as_json(tables) + "\n")
        return
    parts = re.split(r"(?m)^(?=## )", path.read_text("utf-8") if path.exists() else "")
    for table in tables:
        section = table.to_markdown() + "\n"
        places = [i for i, part in enumerate(parts) if part.split("\n", 1)[0] == table.heading]
        if places:
            parts[places[0]] = section
        else:
            parts[-1] = parts[-1].rstrip("\n") + "\n\n" if parts[-1].strip() else ""
            parts.append(section)
    path.write_text("".join(parts).rstrip("\n") + "\n", "utf-8")
