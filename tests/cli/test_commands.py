"""The commands on small scripts: results, exit codes, and what is said when something fails."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tilelab.cli import main

KERNEL = """
import tilelang
import tilelang.language as T


def matmul(M, N, K, block_K=64, stages=3):
    @T.prim_func
    def product(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, 128), T.ceildiv(M, 128), threads=128) as (bx, by):
            a = T.alloc_shared((128, block_K), "float16")
            b = T.alloc_shared((block_K, 128), "float16")
            c = T.alloc_fragment((128, 128), "float32")
            T.clear(c)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=stages):
                T.copy(A[by * 128, ko * block_K], a)
                T.copy(B[ko * block_K, bx * 128], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 128, bx * 128])

    return product
"""
PLAINEST = """
import tilelang.language as T


@T.prim_func
def copied(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            B[i] = A[i]
"""
SCRIPT = (
    KERNEL
    + """
import sys

if __name__ == "__main__":
    kernel = tilelang.compile(matmul(256, 256, 256), out_idx=[2])
    print(tilelang.__name__, kernel.target, sys.argv[1:])
"""
)
RUNNING = (
    KERNEL
    + """
import torch

a = torch.randn(128, 128, device="cuda", dtype=torch.float16)
b = torch.randn(128, 128, device="cuda", dtype=torch.float16)
c = tilelang.compile(matmul(128, 128, 128), out_idx=[2])(a, b)
torch.testing.assert_close(c.float(), a.float() @ b.float(), rtol=1e-2, atol=1e-1)
print("right", torch.cuda.get_device_name())
"""
)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "gemm_script.py"
    path.write_text(SCRIPT)
    return path


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "user.py"
    path.write_text(text)
    return str(path)


def test_run_passes_arguments_and_answers_for_tilelang(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--target", "sm_80", str(script), "--size", "3"]) == 0
    assert capsys.readouterr().out == "tilelab sm_80 ['--size', '3']\n"


def test_run_on_the_simulator_serves_cuda(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--device", "sim", write(tmp_path, RUNNING)]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("right tilelab simulator") and "modelled" in said.err


@pytest.mark.parametrize("name", ["cuda", "gpu"])
def test_run_on_a_gpu_that_is_not_there(
    name: str, script: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tilelab.commands.run.driver.find", lambda: None)
    assert main(["run", "--device", name, str(script)]) == 1
    assert "TL1707" in capsys.readouterr().err


def test_simulate_sums_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--target", "sm_80", write(tmp_path, RUNNING)]) == 0
    assert "no findings" in capsys.readouterr().out


def test_an_error_of_the_language_is_its_text_and_caret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, KERNEL.replace("T.gemm(a, b, c)", "T.gem(a, b, c)") + "matmul(1, 1, 1)")
    assert main(["run", path]) == 1
    said = capsys.readouterr().err
    assert "Traceback" not in said and "T.gem(a, b, c)" in said and "^^^" in said
    assert "did you mean T.gemm" in said and "line 21" in said


def test_another_error_is_a_traceback_that_begins_in_the_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", write(tmp_path, "def f():\n    return 1 / 0\n\n\nf()\n")]) == 1
    said = capsys.readouterr().err
    assert re.findall(r'File "([^"]+)", line (\d+)', said)[0][1] == "5"
    assert "runpy" not in said and "ZeroDivisionError" in said


def test_a_scripts_own_exit_code_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["run", write(tmp_path, "raise SystemExit(7)\n")])
    assert caught.value.code == 7


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run", "nowhere.py"], 1, "TL1706"),
        (["runn", "x.py"], 2, "did you mean run?"),
        (["show"], 2, "SCRIPT[:NAME]"),
        (["run"], 2, "required: script\n"),
        (["demo", "--size", "0"], 2, "'0' is no size: give 1 or more"),
        ([], 2, "COMMAND"),
    ],
)
def test_wrong_use(
    arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    assert words in capsys.readouterr().err


def test_show_prints_twins_and_writes_pictures(
    script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "pictures"
    sizes = ["M=256", "N=256", "K=256"]
    assert main(["show", f"{script}:matmul", *sizes, "--show", "all", "--svg", str(folder)]) == 0
    said = capsys.readouterr().out
    for head in ("FRAGMENT", "PIPELINE", "SHARED MEMORY", "SOURCE", "PASSES", "SASS"):
        assert head in said
    pictures = sorted(folder.iterdir())
    assert len(pictures) == 6
    for path in pictures:
        ElementTree.fromstring(path.read_text())


def test_show_takes_what_a_notebook_takes(
    script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = ["show", f"{script}:matmul", "M=128", "N=128", "K=256", "--target", "sm_90a"]
    folder = tmp_path / "pictures"
    assert main([*ask, "--show", "compare", "--svg", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "LADDER" in said and "as in a textbook" in said and "tl.tma_store" in said
    assert [path.name for path in folder.iterdir()] == ["1-ladder.svg"]
    assert main([*ask, "--show", "none", "--out-idx", "-1", "--plain"]) == 0
    assert "<JITKernel" in capsys.readouterr().out
    assert main([*ask, "--show", "comapre"]) == 2
    assert "did you mean compare?" in capsys.readouterr().err


def test_show_says_when_a_kernel_has_nothing_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, PLAINEST)
    assert main(["show", path, "--show", "pipeline,compare", "--target", "sm_80"]) == 0
    assert "has nothing of what was asked for" in capsys.readouterr().out


def test_show_finds_the_last_kernel_and_says_what_it_needs(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(script)]) == 1
    assert "M=1024 N=1024 K=1024" in capsys.readouterr().err
    assert main(["show", f"{script}:matmull"]) == 1
    assert "did you mean matmul?" in capsys.readouterr().err
    assert main(["show", str(script), "M=128", "N=128", "K=128", "--show", "memory"]) == 0


def test_doctor_tells_what_works(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "Python" in said and "simulate" in said


def test_module_runs_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tilelab", "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "exit codes" in done.stdout
