"""The cache on disk: what is stored comes back, what is damaged is built again."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from tilelab.runtime import cache
from tilelab.runtime.nvrtc import CompilerWarning, Cubin, Resources

CUBIN = Cubin(
    b"\x7fELF machine code", "a log", "sm_80", {"k": Resources(10, 1, 2, 3, 4)},
    (CompilerWarning("C7510", "slow", "k"),), 0.25,
)  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("TILELANG_CACHE_DIR", "TILELAB_DISABLE_CACHE", "TILELANG_DISABLE_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TILELAB_CACHE_DIR", str(tmp_path))
    return tmp_path / "tilelab"


def files(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file()]


def test_round_trip(folder: Path) -> None:
    key = cache.cache_key("text", "sm_80")
    assert cache.load(key) is None
    cache.store(key, CUBIN, "__global__")
    assert cache.load(key) == CUBIN
    assert {p.name for p in files(folder)} == {"kernel.cubin", "kernel.json", "kernel.cu"}
    assert not [p for p in folder.rglob(".new-*")]


def test_keys_tell_everything_apart() -> None:
    keys = {
        cache.cache_key("text", "sm_80"),
        cache.cache_key("text ", "sm_80"),
        cache.cache_key("text", "sm_90a"),
        cache.cache_key("text", "sm_80", pass_configs={"tl.x": True}),
        cache.cache_key("text", "sm_80", pass_configs={"tl.x": 1}),
        cache.cache_key("text", "sm_80", options=["--use_fast_math"]),
        cache.cache_key("text", "sm_80", compiler=(13, 0)),
        cache.cache_key("text", "sm_80", compiler=(13, 5)),
    }
    assert len(keys) == 8
    assert cache.cache_key("t", "a", pass_configs={"x": 1, "y": 2}) == cache.cache_key(
        "t", "a", pass_configs={"y": 2, "x": 1}
    )


@pytest.mark.parametrize("name", ["kernel.cubin", "kernel.json"])
@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", None])
def test_damage_is_noticed(folder: Path, name: str, content: bytes | None) -> None:
    key = cache.cache_key("text", "sm_80")
    cache.store(key, CUBIN, "")
    path = next(p for p in files(folder) if p.name == name)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    assert cache.load(key) is None
    assert files(folder) == []
    cache.store(key, CUBIN, "")
    assert cache.load(key) == CUBIN


def test_a_changed_report_is_noticed(folder: Path) -> None:
    key = cache.cache_key("text", "sm_80")
    cache.store(key, CUBIN, "")
    path = next(p for p in files(folder) if p.name == "kernel.json")
    facts = json.loads(path.read_text())
    facts["unknown"] = 1
    path.write_text(json.dumps(facts))
    assert cache.load(key) is None


def test_storing_twice_keeps_one() -> None:
    key = cache.cache_key("text", "sm_80")
    cache.store(key, CUBIN, "")
    cache.store(key, CUBIN, "")
    assert cache.load(key) == CUBIN
    assert cache.clear_cache() == 1 and cache.load(key) is None


def test_writers_and_readers_at_once() -> None:
    key, problems = cache.cache_key("text", "sm_80"), []

    def work() -> None:
        for _ in range(20):
            cache.store(key, CUBIN, "")
            found = cache.load(key)
            if found != CUBIN:
                problems.append(found)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert problems == []


def test_switches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = cache.cache_key("text", "sm_80")
    cache.disable_cache()
    try:
        assert not cache.is_cache_enabled()
        cache.store(key, CUBIN, "")
        assert not folder.exists() and cache.load(key) is None
    finally:
        cache.enable_cache()
    assert cache.is_cache_enabled()
    monkeypatch.setenv("TILELANG_DISABLE_CACHE", "1")
    assert not cache.is_cache_enabled()


def test_tilelang_s_variable_is_honoured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILELAB_CACHE_DIR")
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path / "theirs"))
    assert cache.cache_folder() == tmp_path / "theirs" / "tilelab"


def test_a_folder_that_cannot_be_written_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("TILELAB_CACHE_DIR", str(blocker))
    cache._warn_once.cache_clear()
    with pytest.warns(UserWarning, match="TILELAB_CACHE_DIR"):
        cache.store(cache.cache_key("text", "sm_80"), CUBIN, "")
