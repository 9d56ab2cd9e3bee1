"""What tilelab bench measures beside tilelab: hand-written kernels, Triton, variants; its files."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tilelab.bench import Row, Table, command, suites
from tilelab.bench.arithmetic import calculate
from tilelab.bench.foreign import machine_code
from tilelab.bench.problems import PROBLEMS, names_of
from tilelab.bench.reference import load
from tilelab.bench.rows import ATTENTION, GEMM, LADDER, ladder
from tilelab.bench.run import write
from tilelab.bench.suites import Beside
from tilelab.errors import TileError, TileValueError

SCALE = {
    "program": "softmax", "entry": "scale", "grid": ["M"], "block": ["min(N, 256)"],
    "where": "threads == 256", "defines": {"WIDTH": "N"}, "shared": 64,
    "arguments": [{"tensor": "X"}, {"tensor": "Y"}, {"int32": "M"}, {"float32": "1 / sqrt(N)"}],
}  # fmt: skip
SOURCE = """#include <cuda_fp16.h>
extern "C" __global__ void scale(const half* x, half* y, int rows, float factor) {
  for (int i = threadIdx.x; i < WIDTH; i += blockDim.x)
    y[blockIdx.x * WIDTH + i] = __float2half(factor * __half2float(x[blockIdx.x * WIDTH + i]));
}
"""


def _folder(path: Path, description: Any, source: str = SOURCE) -> Path:
    text = description if isinstance(description, str) else json.dumps(description)
    (path / "scale.json").write_text(text)
    (path / "scale.cu").write_text(source)
    return path


def test_a_description_says_where_it_applies_and_is_built_for_the_row(tmp_path: Path) -> None:
    (made,) = load(_folder(tmp_path, SCALE), PROBLEMS)
    names = {"M": 8192, "N": 4096, "threads": 256, "sms": 132}
    assert made.name == "scale" and made.applies("softmax", names)
    assert not made.applies("softmax", {**names, "threads": 128})
    assert not made.applies("rmsnorm", names)
    assert [made.number("block", b, names) for b in made.block] == [256]
    cubin = machine_code(made, names, "sm_90a")
    assert cubin.resources["scale"].registers > 0
    (tmp_path / "scale.cu").write_text(SOURCE.replace("factor *", "factor +* "))
    with pytest.raises(TileError, match="NVRTC rejects line 4"):
        machine_code(made, names, "sm_90a")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"program": "gem"}, "has 'program': 'gem'"),
        ({"grid": []}, "has 'grid'"),
        ({"grid": [1, 1, 1, 1]}, "has 'grid'"),
        ({"block": "256"}, "has 'block'"),
        ({"entry": None}, "has 'entry': None"),
        ({"arguments": []}, "has 'arguments'"),
        ({"arguments": [{"pointer": "X"}]}, "has the argument"),
        ({"arguments": ["X"]}, "has the argument 'X'"),
        ({"arguments": [{"map": "X"}]}, "with box None"),
        ({"arguments": [{"map": "X", "box": [64, 64], "swizzle": 16}]}, "with swizzle 16"),
        ({"arguments": [{"tensor": "X", "int32": "M"}]}, "has the argument"),
        ({"source": "other.cu"}, "other.cu, which is no file"),
        ({"defines": ["N"]}, "has 'defines'"),
        ({"when": "True"}, "has 'when'"),
    ],
)
def test_a_wrong_description_is_refused_by_key(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(TileValueError, match=message) as caught:
        load(_folder(tmp_path, {**SCALE, **change}), PROBLEMS)
    assert caught.value.code == "TL2121" and "allowed" in caught.value.hint


def test_a_folder_without_descriptions_and_no_json(tmp_path: Path) -> None:
    assert load(None, PROBLEMS) == ()
    with pytest.raises(TileValueError, match=r"no \*.json"):
        load(tmp_path, PROBLEMS)
    with pytest.raises(TileValueError, match="no folder"):
        load(tmp_path / "missing", PROBLEMS)
    for text, message in (("{", "is no JSON"), ("[]", "no JSON object"), ("{}", "no 'program'")):
        with pytest.raises(TileValueError, match=message):
            load(_folder(tmp_path, text), PROBLEMS)


def test_arithmetic() -> None:
    names = {"M": 300, "dtype": "float16", "causal": True, "sms": 132}
    for text, value in {
        "min(sms, ceildiv(M, 128) * 2)": 6, "2 ** 3 - -1": 9, "M // 7 % 5": 2, "M / 8": 37.5,
        "dtype == 'float16' and not M < 300": True, "1 < 2 < 2 or causal": True, "sqrt(4)": 2.0,
        "128 + 64 * (causal == 1)": 192,
    }.items():  # fmt: skip
        assert calculate(text, names, what="x") == value, text
    for text, message in {
        "tile": "'tile' is not known", "M.real": "is no arithmetic", "M +": "cannot be calculated",
        "__import__('os')": "'__import__' is not known", "M / 0": "division", "dtype - 1": "str",
        "M << 2": "LShift", "[M]": "is no arithmetic",
    }.items():  # fmt: skip
        with pytest.raises(TileValueError, match=message):
            calculate(text, names, what="'grid'")


@pytest.mark.parametrize("row", [*GEMM, *ATTENTION])
def test_rows_name_what_a_description_can_ask_for(row: Any) -> None:
    names = names_of(PROBLEMS[row.program], row.spec())
    assert {"tile_m", "tile_n", "threads"} <= set(names)
    assert ("dtype" if row.program == "gemm" else "causal") in names


def test_columns_of_a_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A reference and Triton get their columns only in rows that are theirs, and only when asked
    for; TileLang's process times one column of torch's."""
    references = load(_folder(tmp_path, {**SCALE, "program": "gemm", "where": "M > 64"}), PROBLEMS)
    asked: list[dict[str, Any]] = []

    def fake(name: str, task: str, spec: dict[str, Any]) -> dict[str, Any]:
        asked.append({"name": name, **spec})
        others = [*spec["columns"], *(r["column"] for r in spec.get("references", ()))]
        ratio = {c: (0.9, 1.25, 1.5) for c in others}
        return {"ms": {c: (1.0, 2.0, 3.0) for c in ["kernel", *others]}, "ratio": ratio,
                "rounds": 7, "error": 1e-4}  # fmt: skip

    monkeypatch.setattr(suites, "measure", fake)
    beside = Beside(("torch", "triton", "tilelang"), references)
    found = suites.SUITES["gemm"](beside, lambda text: None)
    assert found[0].values["tilelab/scale.cu"] == 1.25
    assert found[0].values["tilelab/triton"] == 1.25
    assert found[0].values["tilelab/tilelang"] == 1.0
    assert found[0].spreads["tilelab/scale.cu"] == (0.9, 1.5)
    assert found[0].spreads["tilelab/tilelang"] == pytest.approx((0.9 / 1.5, 1.5 / 0.9))
    assert "scale.cu" not in found[-1].values  # M is 64 there
    assert [a["columns"] for a in asked[:2]] == [["torch", "triton"], ["torch"]]
    found = suites.SUITES["gemm"](Beside(("tilelang",)), lambda text: None)
    assert found[0].spreads["tilelab/tilelang"] == pytest.approx((1 / 3, 3.0))
    asked.clear()
    found = suites.SUITES["softmax"](Beside(), lambda text: None)
    assert found[0].values["triton"] is None and asked[0]["columns"] == ["copy"]


def test_ladder_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step's gains follow from the times: to the textbook structure and to the step before."""

    def fake(name: str, task: str, spec: dict[str, Any]) -> dict[str, Any]:
        assert (name, task) == ("tilelab", "variants")
        labels = list(spec["variants"])
        share = {label: 1 / (1 + n) for n, label in enumerate(labels)} | {"torch": 0.5}
        return {"ms": {c: (s, s, s) for c, s in share.items()}, "rounds": 3,
                "ratio": {c: (s, s, s) for c, s in share.items() if c != labels[0]}}  # fmt: skip

    monkeypatch.setattr(suites, "measure", fake)
    found = suites.ladder(Beside(("torch",)), lambda text: None)
    steps = ladder(LADDER[0])
    assert len(found) == len(LADDER) * len(steps)
    assert [r.values["to textbook"] for r in found[:3]] == [1.0, 2.0, 3.0]
    assert [r.values["to step before"] for r in found[:3]] == [1.0, 2.0, 1.5]
    assert found[1].values["tilelab/torch"] == 1.0


def test_sections_of_a_file_are_replaced_where_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "benchmarks.md"

    def table(suite: str, value: float) -> Table:
        return Table(suite, f"tilelab bench {suite}", "d", "m", [Row("r", "s", {"a": value})])

    write([table("gemm", 1.5), table("sim", 2.5)], path)
    path.write_text("# Benchmarks\n\nWords.\n\n" + path.read_text())
    write([table("gemm", 3.5), table("fp8", 4.5)], path)
    text = path.read_text()
    assert text.startswith("# Benchmarks\n\nWords.\n\n## gemm\n")
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## gemm", "## sim", "## fp8",
    ]  # fmt: skip
    assert "3.50" in text and "1.50" not in text and "2.50" in text and "4.50" in text
    assert "\n\n\n" not in text and text.endswith("|\n")


def test_json_goes_to_a_file_or_to_the_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [Table("sim", "c", "d", "m", [Row("r", "s", {"a": 2.0})])]
    monkeypatch.setattr(command, "run", lambda *args, **kwargs: made)
    path = tmp_path / "out.json"
    assert command.main(["sim", "--json", str(path)]) == 0
    assert json.loads(path.read_text())[0]["rows"][0]["values"] == {"a": 2.0}
    assert "2.00" in capsys.readouterr().out  # the table is printed then, too
    for words in (["sim", "--json"], ["sim", "--json", "-"]):
        assert command.main(words) == 0
        assert json.loads(capsys.readouterr().out)[0]["suite"] == "sim"


TRITON = """
import torch
from tilelab.bench.programs import triton_{name} as program
torch.manual_seed(0)
x = torch.randn(3, 1000).half()
if {name!r} == "gemm":
    a, b = torch.randn(100, 72).half(), torch.randn(72, 136).half()
    got, want = program.run(a, b, 32, 64, 32), a.float() @ b.float()
elif {name!r} == "softmax":
    got, want = program.tuned({{"config": {{"threads": 128}}}})(x), x.float().softmax(-1)
else:
    got = program.tuned({{"config": {{"threads": 128}}}})(x)
    want = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)
print(float((got.float() - want).norm() / want.norm()))
"""


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")
@pytest.mark.parametrize("name", ["gemm", "softmax", "rmsnorm"])
def test_triton_programs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right on Triton's interpreter, at sizes that no tile divides."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    text = TRITON.format(name=name)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert float(done.stdout) < 1e-3
