"""The magics in a real IPython shell: pictures, errors that point at the cell, fresh text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tilelab.notebook import unload_ipython_extension
from tilelab.notebook.exercise import Verdict

BODY = """import tilelang
import tilelang.language as T

def matmul(M, N, K, block_K=64, stages=3):
    @T.prim_func
    def product(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"),
                C: T.Tensor((M, N), "float16")):
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
EAGER = """import tilelang
import tilelang.language as T

@tilelang.jit
def double(A):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], "float32"]
    B = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(M, 64), threads=128) as bx:
        tile = T.alloc_fragment((64, N), "float32")
        T.copy(A[bx * 64, 0], tile)
        for i, j in T.Parallel(64, N):
            tile[i, j] = tile[i, j] * 2
        T.copy(tile, B[bx * 64, 0])
    return B
"""
WIDGET = "application/vnd.jupyter.widget-view+json"
SIZES = "M=128 N=128 K=128"


def run(shell: Any, line: str, body: str = BODY) -> Any:
    return shell.run_cell(f"%%tilelang {line}\n{body}")


def published(shell: Any) -> list[dict[str, Any]]:
    """Bundles of data, without the line that tells of progress where a step takes long."""
    outputs = shell.display_pub.outputs
    return [o["data"] for o in outputs if not (o.get("transient") or {}).get("display_id")]


def test_cell_shows_three_pictures_and_names_the_kernel(shell: Any) -> None:
    assert run(shell, SIZES).success
    data = published(shell)
    assert len(data) == 3
    for bundle in data:
        assert set(bundle) == {"text/plain", "image/svg+xml", WIDGET}
        assert bundle["image/svg+xml"].startswith("<svg")
    assert shell.user_ns["matmul_kernel"].name == "product"


def test_options_reach_the_compiler(shell: Any) -> None:
    assert run(shell, f"--target sm_80 --show memory --name k {SIZES} stages=2").success
    (bundle,) = published(shell)
    assert "65,536 B (64 KiB) dynamic" in bundle["text/plain"]
    assert shell.user_ns["k"].target.name == "sm_80"


def test_plain_is_the_textbook_structure(shell: Any) -> None:
    assert run(shell, f"--plain --show none --target sm_90a --name plain {SIZES}").success
    assert run(shell, f"--show none --target sm_90a --name fast {SIZES}").success
    names = shell.user_ns
    assert names["plain"].pass_configs == {"tl.plain_pipeline": True}
    assert names["plain"].program.kernels[0].dynamic_bytes == 98_304
    shell.run_cell("again = %tilelab show fast --plain --show memory")
    assert "98,304 B" in names["again"].to_text()


def test_the_same_text_gives_the_same_cuda_as_without_the_magic(shell: Any) -> None:
    assert run(shell, f"--show none {SIZES}").success
    shell.run_cell(BODY + "\nk2 = tilelang.compile(matmul(128, 128, 128))")
    names = shell.user_ns
    assert names["matmul_kernel"].get_kernel_source() == names["k2"].get_kernel_source()


def test_an_edited_cell_uses_its_latest_text(shell: Any) -> None:
    for stages in (2, 4):
        body = BODY.replace("stages=3", f"stages={stages}")
        assert run(shell, f"--plain --show none {SIZES}", body).success
        kernel = shell.user_ns["matmul_kernel"].program.kernels[0]
        assert kernel.dynamic_bytes == stages * 32_768


@pytest.mark.parametrize(
    ("right", "wrong", "line", "words"),
    [
        ("T.gemm(a, b, c)", "T.gem(a, b, c)", 17, "did you mean T.gemm"),
        ("T.gemm(a, b, c)", "T.gemm(A, b, c)", 17, "do not fit"),
        ('"float32")', '"float33")', 12, "float33"),
        ("T.copy(A[by * 128, ko * block_K], a)", "T.copy(A[by * 128], a)", 15, "1 index"),
    ],
)
def test_errors_name_the_line_of_the_cell(
    right: str, wrong: str, line: int, words: str, shell: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    body = BODY.replace(right, wrong)
    result = run(shell, f"--show none {SIZES}", body)
    said = capsys.readouterr().out
    assert not result.success
    assert f"line {line}" in said and words in said
    assert "^" in said


def test_an_error_of_the_language_is_short_and_calls_the_cell_by_name(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, SIZES, BODY.replace("T.gemm(", "T.gem("))
    said = capsys.readouterr().out
    assert "Traceback" not in said and len(said.splitlines()) <= 8
    assert "at Cell In[1], line 17" in said


def test_a_plain_error_keeps_its_traceback(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert not run(shell, SIZES, BODY + "\n1 / 0\n").success
    said = capsys.readouterr().out
    assert "ZeroDivisionError" in said and "line 21" in said
    assert "magics.py" not in said


def test_a_cell_that_is_no_python_shows_its_own_line_alone(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not run(shell, SIZES, "x = 1\nwith T.Kernel(1)\n    pass\n").success
    said = capsys.readouterr().out
    assert "Cell In[1], line 3" in said and "SyntaxError" in said
    assert "magics.py" not in said and "interactiveshell" not in said


def test_wrong_lines_and_help(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert not run(shell, "--targt sm_80").success
    assert "did you mean --target?" in capsys.readouterr().out
    assert run(shell, "--help").success
    assert "usage: %%tilelang" in capsys.readouterr().out
    assert not run(shell, "M=1 N=1").success
    assert "K=1024" in capsys.readouterr().out
    assert not run(shell, "", "x = 1").success
    assert "TL1703" in capsys.readouterr().out


def test_run_takes_inputs_from_the_notebook(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")
    assert not run(shell, f"--run --show none --out-idx -1 {SIZES}").success
    assert "A: 128x128 float16" in capsys.readouterr().out
    names = shell.user_ns
    names["A"] = names["B"] = torch.eye(128, dtype=torch.float16)
    assert run(shell, f"--run --show none --out-idx -1 {SIZES}").success
    assert torch.equal(names["C"], torch.eye(128, dtype=torch.float16))
    names["x"] = names["A"] * 2
    assert run(shell, f"--inputs x,B --show none --out-idx -1 {SIZES}").success
    assert torch.equal(names["C"], names["x"])


def test_eager_functions_take_sizes_from_inputs_or_constants(shell: Any) -> None:
    torch = pytest.importorskip("torch")
    assert run(shell, "--show memory M=128 N=64", EAGER).success
    x = shell.user_ns["x"] = torch.randn(128, 64)
    assert run(shell, "--show none --inputs x", EAGER).success
    assert torch.equal(shell.user_ns["B"], 2 * x)


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        (f"%%tilelang M=128 --devise cuda\n{BODY}", "%%tilelang M=128 --devise cuda"),
        ("%tilelab show nothing", "%tilelab show nothing"),
        ("%tilelab", "%tilelab"),
    ],
)
def test_a_magics_own_errors_show_its_line_as_it_was_written(
    cell: str, line: str, shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not shell.run_cell(cell).success
    said = capsys.readouterr().out
    assert f"    {line}\n    {'^' * len(line)}\n" in said and "get_ipython" not in said


def test_cells_are_called_by_their_names_in_reports_and_notes(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    body = BODY.replace("            T.clear(c)\n", "")
    assert run(shell, f"--show none --out-idx -1 {SIZES}", body).success
    shell.run_cell(
        "import torch\na = torch.ones(128, 128).half()\nfound = matmul_kernel.simulate(a, a)"
    )
    assert "at Cell In[" in str(shell.user_ns["found"])
    capsys.readouterr()
    shell.run_cell("matmul_kernel(a)")
    said = capsys.readouterr().out
    assert "is defined at Cell In[" in said and "<ipython" not in said


def test_device_says_where_the_cell_and_its_run_work(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    asks = "import torch\nA = torch.ones(128, 128, device='cuda').half()\nB = A\n" + BODY
    line = f"--show none --run --out-idx -1 {SIZES}"
    assert run(shell, f"{line} --device sim", asks).success
    assert shell.user_ns["A"].device.type == shell.user_ns["C"].device.type == "cpu"
    assert (shell.user_ns["C"] == 128).all()
    if not pytest.importorskip("torch").cuda.is_available():
        assert not run(shell, f"{line} --device cuda").success
        assert "TL1707" in capsys.readouterr().out


def test_line_magic(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shell, f"--show none {SIZES}").success
    report = shell.run_line_magic("tilelab", "show matmul_kernel --show memory,pipeline")
    assert [view.kind for view in report.views] == ["memory", "pipeline"]
    shell.run_line_magic("tilelab", "doctor")
    said = capsys.readouterr().out
    assert "simulate" in said and "anywidget" in said
    shell.run_cell("%tilelab show matmul_kernl")
    assert "did you mean matmul_kernel?" in capsys.readouterr().out


def test_kernels_and_fragments_display_as_pictures(shell: Any) -> None:
    assert run(shell, f"--show none {SIZES}").success
    shell.run_cell("matmul_kernel")
    shell.run_cell("from tilelab.layout import atoms")
    shell.run_cell("atoms.mma_c()")
    shown = {"text/plain", "image/svg+xml", WIDGET}
    assert [set(data) for data in published(shell)] == [shown] * 4
    assert published(shell)[-1]["text/plain"].startswith("FRAGMENT")


def test_no_socket_is_opened(shell: Any) -> None:
    tables = [Path(f"/proc/self/net/{kind}") for kind in ("tcp", "tcp6")]
    if not tables[0].exists():
        pytest.skip("needs /proc")

    def listening() -> int:
        lines = [line.split() for t in tables if t.exists() for line in t.read_text().splitlines()]
        return sum(words[3] == "0A" for words in lines)

    before = listening()
    assert run(shell, f"--show all {SIZES}").success
    assert listening() == before


def test_unloading_takes_everything_back() -> None:
    from IPython.core.interactiveshell import InteractiveShell

    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(colors="nocolor")
    shell.run_line_magic("load_ext", "tilelab")
    assert "tilelang" in shell.magics_manager.magics["cell"]
    unload_ipython_extension(shell)
    assert "tilelang" not in shell.magics_manager.magics["cell"]
    assert "tilelab" not in shell.magics_manager.magics["line"]
    assert not any(type(finder).__name__ == "PeerFinder" for finder in sys.meta_path)
    InteractiveShell.clear_instance()


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("--name 3x", "TL1702", "'3x' is no name of a variable"),
        ("--name class", "TL1702", "'class' is no name of a variable"),
        ("--inputs nope", "TL1705", "tensors here: xs, ys"),
        ("--inputs xss", "TL1705", "did you mean xs?"),
        ("--target sm_70", "TL1702", "see %%tilelang --help"),
        ("--out-idx x", "TL1702", "see %%tilelang --help"),
        ("--show cats", "TL1702", "see %%tilelang --help"),
        ("--taget sm_80", "TL1702", "did you mean --target?"),
    ],
)
def test_mistakes_in_the_line(shell: Any, capsys: Any, line: str, code: str, words: str) -> None:
    shell.run_cell("import numpy, tilelab, tilelab.language as T")
    shell.run_cell("xs = numpy.zeros(64); ys = numpy.ones(64)")
    body = """
@T.prim_func
def main(A: T.Tensor((64,), "float64")):
    with T.Kernel(1, threads=64):
        A[0] = 1
"""
    capsys.readouterr()
    shell.run_cell(f"%%tilelang {line}\n{body}")
    text = capsys.readouterr()
    assert code in text.out + text.err
    assert words in text.out + text.err


def test_help_without_a_body_constants_of_what_is_made_and_unloading(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("%tilelang --help")
    assert "usage: %%tilelang" in capsys.readouterr().out
    shell.run_cell("%tilelang")
    assert "write %%tilelang above a kernel" in capsys.readouterr().out
    assert run(shell, f"--show none {SIZES}").success
    shell.run_cell("%tilelab show matmul_kernel M=3")
    assert "matmul_kernel is made already: it has no M" in capsys.readouterr().out
    shell.run_cell("%tilelab show")
    said = capsys.readouterr().out
    assert "required: kernel" in said and "key=value" not in said.splitlines()[0]
    shell.run_cell("%unload_ext tilelab")
    assert "define how to unload" not in capsys.readouterr().out
    assert "tilelang" not in shell.magics_manager.magics["cell"]
    shell.run_cell("%load_ext tilelab")


@pytest.mark.parametrize("kind", ["schedule", "roofline", "sim", "compare"])
def test_pictures_of_a_run_are_widgets_too(kind: str, shell: Any) -> None:
    assert run(shell, f"--show {kind} {SIZES}").success
    (bundle,) = published(shell)
    assert set(bundle) == {"text/plain", "image/svg+xml", WIDGET}


def test_show_of_a_name_takes_what_a_cell_takes(shell: Any, capsys: Any) -> None:
    shell.run_cell(BODY)
    shell.run_cell(f"kept = %tilelab show matmul {SIZES} --show compare,memory --target sm_90a")
    kept = shell.user_ns["kept"]
    assert [view.kind for view in kept.views] == ["ladder", "memory"]
    assert "as in a textbook" in kept.to_text()
    capsys.readouterr()
    shell.run_cell(f"%tilelab show matmul {SIZES} --show none --out-idx -1 --plain")
    assert "JITKernel product" in capsys.readouterr().out and not published(shell)


def test_help_and_an_eager_cell_without_sizes(shell: Any, capsys: Any) -> None:
    shell.run_cell("%%tilelang -h\npass")
    assert "--inputs" in capsys.readouterr().out
    shell.run_cell("import tilelab, tilelab.language as T")
    body = """
@tilelab.jit
def add_one(A):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    with T.Kernel(1, threads=64):
        A[0] = A[0] + 1
"""
    shell.run_cell(f"%%tilelang --show none\n{body}")
    text = capsys.readouterr()
    assert "N=1024 in the call, or after %%tilelang" in text.out + text.err
    shell.run_cell(f"%%tilelang --show none N=64\n{body}")
    assert "add_one_kernel = " in capsys.readouterr().out


def test_cases_that_fail_alike_are_one_line() -> None:
    case = {"id": "x", "category": "tails", "hidden": True, "points": 0, "max_points": 1,
            "status": "fail", "message": "wrong", "detail": {}, "code": "WRONG"}  # fmt: skip
    score = {"points": 0, "assessed": 9, "total": 9}
    report = {"exercise": "02", "status": "fail", "score": score, "cases": [case] * 9,
              "cause": "", "hint": "", "flags": []}  # fmt: skip
    text = Verdict(report).to_text()
    assert text.splitlines()[1:] == ["  tails: fail 0/1  wrong (9 times)"]
