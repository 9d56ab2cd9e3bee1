"""Kernels saved as data and loaded again: the same program, and nothing that was not one."""

from __future__ import annotations

import copy
import importlib
import json
import pkgutil
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER, build
from tests.ops import nibble_programs
from tilelab import artifact
from tilelab.artifact.schema import FACTORIES, fields
from tilelab.errors import TileError
from tilelab.thread import intrinsic, intrinsics
from tilelab.thread.nodes import ThreadKernel

GEMMS: dict[str, dict[str, Any]] = {
    "pipelined": {}, "tails": {"bm": 64, "bn": 64, "bk": 32, "stages": 2},
    "relu": {"relu": True, "swizzle": 4}, "transposed": {"ta": True, "tb": True},
}  # fmt: skip


def _scaled(N: int, text: str = "x") -> Any:
    @T.prim_func
    def scaled(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, 64), threads=64) as bx:
            for i in T.Parallel(64):
                if bx * 64 + i < N:
                    B[bx * 64 + i] = A[bx * 64 + i] * 2.0

    return tilelab.compile(scaled, target=HOPPER)


def _sent(kernel: Any) -> dict[str, Any]:
    """As it comes out of a pipe."""
    return json.loads(json.dumps(artifact.save(kernel)))


@pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
@pytest.mark.parametrize("name", list(GEMMS))
def test_round_trip(name: str, target: Any) -> None:
    """The same CUDA text, and the same simulated numbers and counters."""
    kernel = build(130, 96, 72, target=target, **GEMMS[name])
    loaded = artifact.load(_sent(kernel))
    assert loaded.source.text == kernel.source.text
    assert loaded.declared_outputs == (2,)
    rng = np.random.default_rng(0)
    flip = (lambda x: x.T.copy()) if name == "transposed" else (lambda x: x)
    a = flip(rng.standard_normal((130, 72)).astype(np.float16))
    b = flip(rng.standard_normal((72, 96)).astype(np.float16))
    out = np.full((130, 96), np.nan, np.float16)
    report = loaded.simulate(a, b, out)
    assert report.ok, str(report)
    assert np.array_equal(out, kernel(a, b))
    assert report.total().to_dict() == kernel.simulate(a, b).total().to_dict()


@pytest.mark.parametrize("N", [1000, 1001])
def test_round_trip_of_a_tail(N: int) -> None:
    """Versions for whole tiles, and the question whether tensors allow them."""
    kernel = _scaled(N)
    loaded = artifact.load(_sent(kernel))
    assert loaded.source.text == kernel.source.text
    a, b = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    assert loaded.simulate(a, b).ok
    assert np.array_equal(b, a * 2)


def test_round_trip_of_numbers_by_pairs() -> None:
    program = nibble_programs.shifted("float16", -8)
    kernel = tilelab.compile(program, target=HOPPER)
    assert artifact.load(_sent(kernel)).source.text == kernel.source.text


def test_places_of_the_own_file_only() -> None:
    """Findings name lines of the file that is given, and quote no other."""
    data = _sent(_scaled(100))
    own = artifact.load(data, file=__file__).program.kernels[0].body.body[0].loc
    assert own is not None and own.file == __file__
    foreign = artifact.load(data, file="solution.py").program.kernels[0].body.body[0].loc
    assert foreign is not None and foreign.file == "<artefact>" and foreign.text() == ""


def test_saving_refuses_foreign_code() -> None:
    """C functions, CUDA text and layouts given as functions are no data."""

    @T.prim_func
    def calls(A: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            A[t] = T.call_extern("float32", "own", A[t])

    @T.prim_func
    def brings(A: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            T.import_source("__device__ int own() { return 1; }")
            A[T.get_thread_binding()] = 1.0

    for program in (calls, brings):
        with pytest.raises(TileError, match="TL1670"):
            artifact.save(tilelab.compile(program, target=HOPPER))
    with pytest.raises(TileError, match="TL1670"):
        artifact.save("kernel")  # type: ignore[arg-type]


def _row(data: dict[str, Any], kind: str) -> list[Any]:
    return next(row for row in data["nodes"] if row[0] == kind)


def _set(kind: str, field: int, value: Any) -> Callable[[dict[str, Any]], None]:
    def edit(data: dict[str, Any]) -> None:
        _row(data, kind)[field] = value

    return edit


def _bomb(data: dict[str, Any]) -> None:
    """Each node twice in the next: 2^60 nodes when walked."""
    rows = [["Const", {"f": (1.0).hex()}, "float32"]]
    rows += [["Binary", "+", {"n": i}, {"n": i}, "float32"] for i in range(60)]
    data["nodes"] = rows


def _deep(data: dict[str, Any]) -> None:
    rows: list[list[Any]] = [["Const", {"f": (1.0).hex()}, "float32"]]
    rows += [["Unary", "-", {"n": i}, "float32"] for i in range(3000)]
    data["nodes"] = rows


def _add_instruction(row: Any) -> Callable[[dict[str, Any]], None]:
    return lambda data: data["instructions"].append(row)


FORGERIES: dict[str, Callable[[dict[str, Any]], None]] = {
    "operator": _set("Binary", 1, "+ __import__('os').system('true') +"),
    "function": lambda d: d["nodes"].insert(0, ["Call", "exec", [], "float32"]),
    "class": lambda d: d["nodes"].append(["Function", "f"]),
    "fields": lambda d: d["nodes"].append(["Const", 1]),
    "forward reference": lambda d: d["nodes"].insert(0, ["Unary", "-", {"n": 5}, "int32"]),
    "itself": lambda d: d["nodes"].insert(0, ["Unary", "-", {"n": 0}, "int32"]),
    "bomb": _bomb,
    "deep": _deep,
    "const": lambda d: d["nodes"].append(["Const", "1; evil()", "int32"]),
    "extern": _add_instruction(["extern.extern", ["system", ["value"]], {}]),
    "no instruction": _add_instruction(["os.system", ["true"], {}]),
    "asm in an argument": _add_instruction(["wgmma.wgmma_ss", [64, 'f16"; trap; //'], {}]),
    "format": _add_instruction(["debug.printf", ["%n%s", 0], {}]),
    "target": lambda d: d.update(target="sm_1"),
    "version": lambda d: d.update(version=99),
    "another key": lambda d: d.update(cubin="f00"),
    "options": lambda d: d.update(options={"tl.device_compile_flags": "-include=/etc/passwd"}),
    "outputs": lambda d: d.update(outputs=[17]),
    "program": lambda d: d.update(aligned=0),
    "line ends in a name": _set("Var", 1, "x\n}"),
    "threads": _set("ThreadKernel", 6, [1 << 30]),
    "dtype": _set("Var", 2, "float31"),
    "rank": _set("Load", 2, []),
    "not a dict": lambda d: d.clear(),
}  # fmt: skip


@pytest.mark.parametrize("name", list(FORGERIES))
def test_forged_artefacts_are_refused(name: str) -> None:
    """With the one error that says so."""
    data = _sent(_scaled(100))
    FORGERIES[name](data)
    with pytest.raises(TileError, match="TL1670"):
        artifact.load(data)


def test_cuda_text_of_its_own_is_refused() -> None:
    data = _sent(_scaled(100))
    names = [name for name, _ in fields(ThreadKernel)]
    _row(data, "ThreadKernel")[1 + names.index("sources")] = ["__device__ void f() {}"]
    with pytest.raises(TileError, match="CUDA text"):
        artifact.load(data)


def _damage(data: Any, rng: random.Random) -> None:
    """Replace one value anywhere by something else."""
    place, parents = data, []
    while isinstance(place, dict | list) and place:
        key = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
        parents.append((place, key))
        place = place[key]
    parent, key = rng.choice(parents[-3:])
    parent[key] = rng.choice([None, 0, -1, 1 << 70, 3, "x", "", [], {}, {"n": 0}, {"n": -1}, True,
                              {"f": "0x1p3"}, {"i": 99}, {"l": []}, ["Var"], 1.5])  # fmt: skip


def test_damaged_artefacts_fail_in_one_way() -> None:
    """Whatever is changed, loading answers with a kernel or with TL1670."""
    data = _sent(build(64, 64, 64, bm=64, bn=64, bk=32, stages=2))
    rng = random.Random(7)
    refused = 0
    for _ in range(300):
        copied = copy.deepcopy(data)
        _damage(copied, rng)
        try:
            artifact.load(copied)
        except TileError as error:
            assert error.code == "TL1670"
            refused += 1
    assert refused > 150


def test_calls_want_a_gpu() -> None:
    """On the CPU a loaded kernel is simulated by name, never by accident."""
    loaded = artifact.load(_sent(_scaled(8)))
    with pytest.raises(TileError, match="TL1618"):
        loaded(np.ones(8, np.float32), np.ones(8, np.float32))


def test_every_recorded_instruction_is_known_or_kept_out() -> None:
    """A lowering that uses a new one makes artefacts, and the judge grades them."""
    for found in pkgutil.iter_modules(intrinsics.__path__):
        importlib.import_module(f"{intrinsics.__name__}.{found.name}")
    kept_out = {"extern.extern", "stamp.stamp"}  # C text of the program's own; times of a run
    assert set(intrinsic.FACTORIES) == FACTORIES | kept_out


def test_a_tail_of_odd_length_is_saved() -> None:
    """Its wide accesses ask whether the tensors are aligned."""

    @T.prim_func
    def add(A: T.Tensor((561,), "float32"), B: T.Tensor((561,), "float32")):
        with T.Kernel(3, threads=128) as bx:
            for i in T.Parallel(256):
                if bx * 256 + i < 561:
                    B[bx * 256 + i] = A[bx * 256 + i] + 1.0

    given, out = np.arange(561, dtype=np.float32), np.empty(561, np.float32)
    loaded = artifact.load(_sent(tilelab.compile(add, target=HOPPER)))
    assert loaded.simulate(given, out).ok and np.array_equal(out, given + 1)
