"""Measures one implementation in a process of its own: `python -m tilelab.bench.worker NAME TASK`.

NAME is "tilelab" or "tilelang"; the same text runs for both, so both are built, checked and timed
alike, each next to torch in its own process. The task `sim` knows "triton" and "pallas" too.
Specification on standard input, result as JSON on the last line of standard output.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tilelab.bench.foreign import ForeignKernel
from tilelab.bench.interpreters import sim
from tilelab.bench.problems import PROBLEMS, Problem, relative_error
from tilelab.bench.reference import read
from tilelab.bench.timing import in_turn

Spec = dict[str, Any]


def _program(name: str, program: str = "gemm") -> Any:
    """A shared program, with `import tilelang` answered by implementation `name`."""
    if name == "tilelab":
        importlib.import_module("tilelab.shim").install()
    return importlib.import_module(f"tilelab.bench.programs.{program}")


def _inputs(spec: Spec, device: str) -> tuple[Any, Any]:
    import torch

    torch.manual_seed(int(spec.get("seed", 0)))  # pyright: ignore[reportUnknownMemberType]
    dtype = getattr(torch, spec.get("dtype", "float16"))
    m, n, k = spec["shape"]
    a = torch.randn(m, k, device=device, dtype=dtype)
    return a, torch.randn(k, n, device=device, dtype=dtype)


SETS = 3  # of inputs, used in turn, where they are small enough
SMALL_BYTES = 1 << 30


def measured(name: str, spec: Spec) -> Spec:
    """One row: results are checked on other inputs than those timed, then the kernel, torch's
    functions and hand-written kernels are launched in turn. {"error", "ms", "ratio", "rounds"},
    times by name."""
    problem = PROBLEMS[spec["program"]]
    _seed(spec)
    functions = {"kernel": _build(name, spec, spec["built"].get(name, {}))}
    for reference in spec.get("references", ()):
        functions[reference["column"]] = _foreign(reference["path"], problem, spec)
    errors = {label: _check(label, f, problem, spec) for label, f in functions.items()}
    functions.update({column: problem.peers[column](spec) for column in spec["columns"]})
    found = in_turn(_rotating(functions, problem, spec), spec.get("seconds", 0.5))
    return {"error": errors["kernel"], **found}


def variants(name: str, spec: Spec) -> Spec:
    """Builds of one program by label (spec["variants"]), checked and launched in turn, with torch.
    {"ms", "ratio", "rounds"}, times by label."""
    problem = PROBLEMS[spec["program"]]
    _seed(spec)
    functions: dict[str, Any] = {k: _build(name, spec, how) for k, how in spec["variants"].items()}
    for label, function in functions.items():
        _check(label, function, problem, spec)
    functions.update({column: problem.peers[column](spec) for column in spec["columns"]})
    return in_turn(_rotating(functions, problem, spec), spec.get("seconds", 0.5))


def _seed(spec: Spec) -> None:
    import torch

    torch.manual_seed(int(spec.get("seed", 0)))  # pyright: ignore[reportUnknownMemberType]


def _build(name: str, spec: Spec, how: Spec) -> Any:
    return _program(name, spec["program"]).build(*spec["sizes"], **spec["config"], **how)


def _foreign(path: str, problem: Problem, spec: Spec) -> Any:
    reference = read(Path(path), PROBLEMS)
    return ForeignKernel(reference, problem, spec)


def _rotating(functions: Spec, problem: Problem, spec: Spec) -> dict[str, Callable[[int], Any]]:
    """Functions of a launch's number, which take their inputs in turn."""
    first = problem.inputs(spec)
    size = sum(t.numel() * t.element_size() for t in first)
    sets = [first, *(problem.inputs(spec) for _ in range(SETS - 1 if size < SMALL_BYTES else 0))]
    return {label: partial(_rotated, function, sets) for label, function in functions.items()}


def _rotated(function: Callable[..., Any], sets: list[Any], number: int) -> Any:
    return function(*sets[number % len(sets)])


def _check(label: str, kernel: Any, problem: Problem, spec: Spec) -> float:
    inputs = problem.inputs(spec)
    error = relative_error(kernel(*inputs), problem.reference(spec, *inputs))
    if not error < problem.tolerance:
        raise SystemExit(f"{label}: wrong result before timing: relative error {error:.2e}")
    return error


_MODULES = {
    "tilelab": ("tilelab", "tilelab.language", "tilelab.jit"),
    "tilelang": ("tilelang", "tilelang.language"),
}


def compile_time(name: str, spec: Spec) -> Spec:
    """Seconds: import, and the second kernel of the process with empty caches."""
    started = time.perf_counter()
    # tilelab loads its parts when they are first used: the language and the compiler count too.
    for module in _MODULES[name]:
        importlib.import_module(module)
    imported = time.perf_counter() - started
    program = _program(name)
    program.build(256, 256, 256, tile_m=64, tile_n=64, stages=2)  # the process's first kernel
    started = time.perf_counter()
    kernel = program.build(*spec["shape"])
    _force_machine_code(kernel)
    return {"import": imported, "compile": time.perf_counter() - started}


def _force_machine_code(kernel: Any) -> None:
    """Both sides must have built the cubin when the clock stops."""
    if hasattr(kernel, "cubin"):
        _ = kernel.cubin


def launch(name: str, spec: Spec) -> Spec:
    """Microseconds of host time per call with its output allocated, the least of several rounds."""
    import torch

    kernel = _program(name).build(*spec["shape"])
    a, b = _inputs(spec, "cuda")
    calls = {"kernel": lambda: kernel(a, b), "torch": lambda: a @ b}
    return {key: _host_microseconds(fn, torch) for key, fn in calls.items()}


def _host_microseconds(fn: Callable[[], Any], torch: Any, calls: int = 300) -> float:
    """Fewer calls than the launch queue holds, so the host never waits for the GPU."""
    for _ in range(50):
        fn()
    best: list[float] = []
    gc.disable()
    for _ in range(20):
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(calls):
            fn()
        best.append((time.perf_counter() - started) / calls * 1e6)
    gc.enable()
    torch.cuda.synchronize()
    return statistics.median(best)


TASKS: dict[str, Callable[[str, Spec], Spec]] = {
    "measured": measured,
    "variants": variants,
    "compile": compile_time,
    "launch": launch,
    "sim": sim,
}


def main() -> int:
    """Run one task with caches of its own."""
    name, task = sys.argv[1], sys.argv[2]
    spec: Spec = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        for variable in ("TILELAB_CACHE_DIR", "TILELANG_CACHE_DIR"):
            os.environ[variable] = folder
        result = TASKS[task](name, spec)
    sys.stdout.write("\n" + json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
