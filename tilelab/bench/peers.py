"""Which implementations can be measured here, and running one in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilelab.errors import TileRuntimeError, TileValueError

KNOWN = ("torch", "tilelang", "triton", "pallas")
_MODULES = {"pallas": "jax"}  # where it has another name


def parse_peers(text: str | Sequence[str] | None) -> tuple[str, ...]:
    """Peers to measure: all known ones that are importable, or those named.

    Raises TileValueError (TL2101) for an unknown name.
    """
    if text is None:
        return tuple(p for p in KNOWN if available(p))
    names = [n for n in (text.split(",") if isinstance(text, str) else text) if n]
    for name in names:
        if name not in KNOWN:
            raise TileValueError(
                f"no peer is called {name!r}", code="TL2101", hint="peers: " + ", ".join(KNOWN)
            )
    return tuple(n for n in names if available(n))


def available(name: str) -> bool:
    """Whether a peer is installed (tilelab's own stand-in for tilelang does not count)."""
    found = importlib.util.find_spec(_MODULES.get(name, name))
    return found is not None and "tilelab" not in str(found.origin or found.loader)


def measure(name: str, task: str, spec: dict[str, Any], timeout: float = 900) -> dict[str, Any]:
    """The result of one task for one implementation.

    Raises TileRuntimeError (TL2102) with the end of its output when it fails.
    """
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH", "")) if p)
    done = subprocess.run(
        [sys.executable, "-m", "tilelab.bench.worker", name, task],
        input=json.dumps(spec),
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise TileRuntimeError(
            f"{name} failed at the task {task}: exit status {done.returncode}\n{tail}",
            code="TL2102",
            hint="run the same with --json to see what was measured before",
        )
    return json.loads(done.stdout.strip().splitlines()[-1])
