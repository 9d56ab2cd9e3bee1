"""Where a function's text comes from: file, cell, exec, `python -c`; and text that is stale."""

import linecache
import subprocess
import sys
from pathlib import Path

import pytest

import tilelab.language as T
from tests.frontend.helpers import body_text, expect
from tilelab.errors import TileError

CELL = """
def build(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(n):
                B[i] = A[i] {op}
    return main
"""


def run_cell(text: str, name: str, register: bool = True):
    """Run a cell as IPython does, and give its factory."""
    names = {"T": T}
    if register:
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), names)
    return names["build"]


def test_cells_and_their_latest_text() -> None:
    for count, op in [(1, "+ 1.0"), (2, "* 3.0"), (3, "+ 1.0")]:
        build = run_cell(CELL.format(op=op), f"<ipython-input-{count}-abc>")
        assert body_text(build(32)).endswith(f"A[i] {op}")
    first = run_cell(CELL.format(op="- 1.0"), "<cell-7>")
    assert body_text(first(8)).endswith("A[i] - 1.0")
    second = run_cell(CELL.format(op="* 5.0"), "<cell-7>")
    assert body_text(second(8)).endswith("A[i] * 5.0")


def test_stale_text_is_noticed() -> None:
    build = run_cell(CELL.format(op="- 1.0"), "<cell-8>")
    text = CELL.format(op="* 5.0")
    linecache.cache["<cell-8>"] = (len(text), None, text.splitlines(True), "<cell-8>")
    with expect(RuntimeError, "TL1404", "source", "changed"):
        build(8)


def test_no_source() -> None:
    build = run_cell(CELL.format(op="+ 9.0"), "<nowhere>", register=False)
    with expect(RuntimeError, "TL1402", "source"):
        build(8)


def test_text_of_exec_that_nobody_keeps() -> None:
    """Other texts at hand that define the same name are not taken for an older version of it."""
    other = CELL.format(op="- 2.0")
    names = {"T": T}
    exec(CELL.replace("{op}", "+ 2.0"), names)
    with expect(RuntimeError, "TL1402", "source"):
        names["build"](8)
    assert other


def test_errors_point_into_the_cell() -> None:
    text = CELL.replace("A[i] {op}", "A[i, 2]")
    with expect(IndexError, "TL1105", "<cell-9>, line 7", "B[i] = A[i, 2]", "       ^^^^^^^"):
        run_cell(text, "<cell-9>")(8)


def test_python_dash_c() -> None:
    code = (
        "import tilelab.language as T\n"
        "@T.prim_func\n"
        "def main(A: T.Tensor((8,), 'float32')):\n"
        "    with T.Kernel(1):\n"
        "        A[0] = 2.0\n"
        "print(main.script())\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=False
    )
    assert "A[0] = 2.0" in done.stdout, done.stderr
    bad = code.replace("A[0]", "A[0, 1]")
    done = subprocess.run(
        [sys.executable, "-c", bad], capture_output=True, text=True, cwd=root, check=False
    )
    assert "TL1105" in done.stderr and "A[0, 1] = 2.0" in done.stderr


def test_what_is_no_function() -> None:
    with expect(TypeError, "TL1451"):
        T.prim_func(lambda A: A)
    with expect(TypeError, "TL1451"):
        T.prim_func(3)


def test_a_file_that_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "changing_kernel.py"
    path.write_text("import tilelab.language as T\n" + CELL.format(op="+ 1.0"))
    monkeypatch.syspath_prepend(tmp_path)
    module = __import__("changing_kernel")
    path.write_text("import tilelab.language as T\n" + CELL.format(op="* 7.5 + 2.0"))
    with pytest.raises(TileError, match="changed"):
        module.build(4)


def test_columns_count_characters() -> None:
    text = CELL.replace("A[i] {op}", 'A[i, len("每个")]')
    shown = 'B[i] = A[i, len("每个")]\n           ^^^^^^^^^^^^^^^'
    with expect(IndexError, "TL1105", shown) as caught:
        run_cell(text, "<cell-10>")(8)
    assert caught.error.loc.end_column - caught.error.loc.column == len('A[i, len("每个")]')
