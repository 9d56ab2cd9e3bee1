"""Compiled kernels on disk: machine code with its report, found again by what made it.

An entry is a folder with `kernel.cubin`, `kernel.json` and `kernel.cu`, written beside its place
and renamed into it, so that readers never see half of one. No pickle. Hides paths and formats.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from tilelab.calls import answer_all
from tilelab.errors import warn
from tilelab.runtime.nvrtc import CompilerWarning, Cubin, Resources

_FORMAT = 1
_STATE = {"enabled": True}


def enable_cache() -> None:
    """Use the cache on disk again (in this process)."""
    _STATE["enabled"] = True


def disable_cache() -> None:
    """Compile every kernel anew (in this process) and store none."""
    _STATE["enabled"] = False


def is_cache_enabled() -> bool:
    """Whether kernels are looked up and stored; TILELAB_DISABLE_CACHE=1 switches that off."""
    off = any(
        os.environ.get(name, "0").lower() in ("1", "true", "yes", "on")
        for name in ("TILELAB_DISABLE_CACHE", "TILELANG_DISABLE_CACHE")
    )
    return _STATE["enabled"] and not off


def cache_folder() -> Path:
    """TILELAB_CACHE_DIR, else TILELANG_CACHE_DIR, else the user's cache folder. Inside it, a
    folder for tilelab keeps its entries apart from TileLang's."""
    for name in ("TILELAB_CACHE_DIR", "TILELANG_CACHE_DIR"):
        if os.environ.get(name):
            return Path(os.environ[name]) / "tilelab"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tilelab"


@lru_cache(maxsize=1)
def sources_hash() -> str:
    """A hash of tilelab's own Python text: another version never meets this one's entries."""
    digest = hashlib.sha256()
    folder = Path(__file__).parent.parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def cache_key(
    program_text: str,
    target: str,
    *,
    pass_configs: Mapping[str, Any] | None = None,
    options: Sequence[str] = (),
    compiler: tuple[int, int] = (0, 0),
) -> str:
    """The name of an entry: a hash of everything that decides the machine code."""
    configs = sorted((str(k), repr(v)) for k, v in (pass_configs or {}).items())
    parts = [_FORMAT, sources_hash(), program_text, target, configs, list(options), compiler]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def load(key: str) -> Cubin | None:
    """The stored machine code, or None. A damaged entry is removed, so it is built again."""
    folder = _place(key)
    if not is_cache_enabled() or not folder.is_dir():
        return None
    try:
        return _read(folder)
    except (OSError, ValueError, KeyError, TypeError):
        shutil.rmtree(folder, ignore_errors=True)
        return None


def store(key: str, cubin: Cubin, cuda: str) -> None:
    """Keep machine code and its CUDA text. A folder that cannot be written is a warning."""
    if not is_cache_enabled():
        return
    final = _place(key)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=final.parent))
    except OSError as error:
        _warn_once(str(final.parent.parent), str(error))
        return
    try:
        (scratch / "kernel.cubin").write_bytes(cubin.image)
        (scratch / "kernel.cu").write_text(cuda, encoding="utf-8")
        (scratch / "kernel.json").write_text(json.dumps(_report(cubin), indent=1))
        os.replace(scratch, final)
    except OSError as error:
        if not final.is_dir():  # not a race: someone else's equal entry would be there
            _warn_once(str(final.parent.parent), str(error))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def clear_cache() -> int:
    """Remove every entry; the number removed."""
    entries = [p for p in cache_folder().glob("??/*") if p.is_dir()]
    for entry in entries:
        shutil.rmtree(entry, ignore_errors=True)
    return len(entries)


def _place(key: str) -> Path:
    return cache_folder() / key[:2] / key


def _report(cubin: Cubin) -> dict[str, Any]:
    facts = asdict(cubin)
    del facts["image"]
    facts["sha256"] = hashlib.sha256(cubin.image).hexdigest()
    return facts


def _read(folder: Path) -> Cubin:
    facts = json.loads((folder / "kernel.json").read_text())
    image = (folder / "kernel.cubin").read_bytes()
    if hashlib.sha256(image).hexdigest() != facts.pop("sha256"):
        raise ValueError("the machine code does not match its report")
    resources = {name: Resources(**r) for name, r in facts.pop("resources").items()}
    remarks = tuple(CompilerWarning(**w) for w in facts.pop("warnings"))
    return Cubin(image=image, resources=resources, warnings=remarks, **facts)


@lru_cache(maxsize=8)
def _warn_once(folder: str, problem: str) -> None:
    text = f"kernels are not cached: {folder} cannot be written ({problem})"
    warn(text + "; set TILELAB_CACHE_DIR to a folder of yours")


answer_all(globals(), ("disable_cache", "enable_cache", "is_cache_enabled"), "tilelab")
