"""Every kernel of the repository, compiled: of the tests and their cases, the demo, the benchmarks,
the exercises and the notebooks, so that a test can hold for all of them."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import tilelab
from tests.attention import flash_attention
from tests.kernels import AMPERE, HOPPER, gemm
from tilelab import shim
from tilelab.commands.run import run_script
from tilelab.demo.kernels import gemm as demo_gemm
from tilelab.errors import TileError
from tilelab.kernel import JITKernel

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
TARGETS = {"hopper": HOPPER, "ampere": AMPERE}
PLAIN = {"tl.plain_pipeline": True}

Make = Callable[[], list[JITKernel]]


def _compiled(program: Callable[[], Any], target: Any, **options: Any) -> Make:
    return lambda: [tilelab.compile(program(), target=target, **options)]


def _of_tests() -> Iterator[tuple[str, Make]]:
    programs: dict[str, Callable[[], Any]] = {
        "gemm": lambda: gemm(256, 256, 512),
        "gemm, 2 stages": lambda: gemm(256, 256, 512, bk=32, stages=2),
        "gemm, no stages": lambda: gemm(256, 256, 256, stages=0),
        "gemm, tails": lambda: gemm(257, 191, 130),
        "gemm, transposed": lambda: gemm(256, 256, 256, ta=True, tb=True),
        "gemm, two consumers": lambda: gemm(256, 256, 512, bn=256, bk=32, threads=256),
        "gemm, relu and swizzle": lambda: gemm(256, 256, 256, swizzle=10, relu=True),
        "attention, causal": lambda: flash_attention((1, 256, 2, 64)),
        "attention, full": lambda: flash_attention((1, 256, 2, 64), causal=False),
        "demo gemm": lambda: demo_gemm(256, 256, 256, tile_k=64, stages=3),
    }
    for name, program in programs.items():
        for chip, target in TARGETS.items():
            yield f"{name}, {chip}", _compiled(program, target)
            yield f"{name}, {chip}, plain", _compiled(program, target, pass_configs=PLAIN)


BENCH: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "gemm": ("gemm", (256, 256, 256), {}),
    "fp8_gemm": ("fp8_gemm", (256, 256, 256), {}),
    "dequant_gemm": ("dequant_gemm", (128, 128, 256), {}),
    "rmsnorm": ("rmsnorm", (3, 1024), {"threads": 128}),
    "softmax": ("softmax", (3, 1024), {"threads": 128}),
    "attention": (
        "attention", (1, 2, 128, 64),
        {"causal": True, "tile_m": 64, "tile_n": 64, "threads": 128},
    ),
    "decode": ("split", (1, 8, 2, 256, 64, 2), {}),
}  # fmt: skip
"""Module of bench/programs -> its function, and sizes that a test can afford."""


def _of_bench() -> Iterator[tuple[str, Make]]:
    for module, (function, sizes, config) in BENCH.items():

        def make(
            module: str = module, function: str = function, sizes: Any = sizes, config: Any = config
        ) -> list[JITKernel]:
            shim.install()
            loaded = importlib.import_module(f"tilelab.bench.programs.{module}")
            program = getattr(loaded, function)(*sizes, **config)
            return [tilelab.compile(program, target=HOPPER)]

        yield f"bench {module}", make


EXERCISES: dict[str, tuple[str, tuple[int, ...]]] = {
    "03_vector_add": ("vector_add", (1000,)),
    "05_row_sum": ("row_sum", (33, 100)),
    "10_tiled_gemm": ("gemm", (257, 191, 130)),
}


def _of_exercises() -> Iterator[tuple[str, Make]]:
    for folder, (function, sizes) in EXERCISES.items():

        def make(
            folder: str = folder, function: str = function, sizes: Any = sizes
        ) -> list[JITKernel]:
            shim.install()
            path = ROOT / "exercises" / folder / "solution.py"
            spec = importlib.util.spec_from_file_location(f"solution_{folder}", path)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return [getattr(module, function)(*sizes)]

        yield f"exercise {folder}", make


REFUSING = ("011", "012", "043", "104", "107")
"""Cases that show an error; the last two have right kernels as well."""


def _of_cases() -> Iterator[tuple[str, Make]]:
    for path in sorted((ROOT / "tests" / "cases").glob("*.py")):
        yield f"case {path.stem}", lambda path=path: run_case(path)


@cache
def run_case(path: Path) -> list[JITKernel]:
    """The kernels that a case makes while it runs, for each feature set that takes them."""
    made: list[JITKernel] = []
    real = JITKernel.__init__

    def noted(self: JITKernel, *args: Any, **options: Any) -> None:
        real(self, *args, **options)
        made.append(self)

    with mock.patch.object(JITKernel, "__init__", noted), contextlib.redirect_stdout(io.StringIO()):
        run_script(str(path))
    found: list[JITKernel] = []
    for kernel in made:
        for target in TARGETS.values():
            try:
                options = {"target": target, "pass_configs": kernel.pass_configs}
                found.append(tilelab.compile(kernel.prim_func, **options))
            except TileError:
                assert path.stem[:3] in REFUSING, f"{path.stem} makes a kernel that is refused"
    return found


def _of_notebooks() -> Iterator[tuple[str, Make]]:
    for path in NOTEBOOKS:
        yield f"notebook {path.stem}", lambda path=path: run_notebook(path)


@cache
def run_notebook(path: Path) -> list[JITKernel]:
    """The kernels that a notebook leaves behind; its pictures and its mistakes are dropped."""
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell

    from tilelab.notebook import unload_ipython_extension

    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(colors="nocolor")
    shell.display_pub = CapturingDisplayPublisher()
    try:
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                shell.run_cell("".join(cell["source"]))
        found = {id(v): v for v in shell.user_ns.values() if isinstance(v, JITKernel)}
        return list(found.values())
    finally:
        unload_ipython_extension(shell)
        InteractiveShell.clear_instance()


KERNELS: dict[str, Make] = {
    name: make
    for part in (_of_tests, _of_cases, _of_bench, _of_exercises, _of_notebooks)
    for name, make in part()
}
"""A name for each kernel, case or notebook -> a function that compiles it."""
