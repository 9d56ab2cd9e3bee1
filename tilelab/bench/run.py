"""Running suites and writing their tables."""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Callable, Sequence
from pathlib import Path

from tilelab.bench.peers import parse_peers
from tilelab.bench.suites import NEEDS_GPU, SUITES
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
    progress: Callable[[str], None] = lambda text: None,
) -> list[Table]:
    """Measure `suites` ("all": every suite that this machine can run) against `peers`.

    Raises TileValueError (TL2103) for an unknown suite, TileRuntimeError (TL2104) for one that
    needs a GPU where there is none.
    """
    names = list(SUITES) if "all" in suites else list(suites)
    for name in names:
        if name not in SUITES:
            raise TileValueError(
                f"no suite is called {name!r}",
                code="TL2103",
                hint="suites: " + ", ".join([*SUITES, "all"]),
            )
    where, has_gpu = machine()
    if not has_gpu:
        refused = [n for n in names if n in NEEDS_GPU]
        if refused and "all" not in suites:
            raise TileRuntimeError(
                f"{', '.join(refused)} needs an NVIDIA GPU and there is none here",
                code="TL2104",
                hint="run compile and sim, which need none",
            )
        names = [n for n in names if n not in NEEDS_GPU]
    chosen = parse_peers(peers)
    date = datetime.date.today().isoformat()
    tables: list[Table] = []
    for name in names:
        command = f"tilelab bench {name}" + (f" --peers {','.join(chosen)}" if chosen else "")
        rows = SUITES[name](chosen, progress)
        tables.append(Table(name, command, date, where, rows))
    return tables


def write(tables: Sequence[Table], path: Path) -> None:
    """Write tables as JSON (*.json) or as markdown sections."""
    if path.suffix == ".json":
        path.write_text(json.dumps([t.to_json() for t in tables], indent=1))
    else:
        path.write_text("\n".join(t.to_markdown() for t in tables))
