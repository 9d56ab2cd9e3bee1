"""Measures one implementation in a process of its own: `python -m tilelab.bench.worker NAME TASK`.

NAME is "tilelab" or "tilelang"; the same text runs for both, so both are built, checked and timed
alike, each next to torch in its own process. Specification on standard input, result as JSON on
the last line of standard output.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

Spec = dict[str, Any]


def _program(name: str) -> Any:
    """The shared GEMM program, with `import tilelang` answered by implementation `name`."""
    if name == "tilelab":
        importlib.import_module("tilelab.shim").install()
    return importlib.import_module("tilelab.bench.programs.gemm")


def _inputs(spec: Spec, device: str) -> tuple[Any, Any]:
    import torch

    torch.manual_seed(int(spec.get("seed", 0)))  # pyright: ignore[reportUnknownMemberType]
    dtype = getattr(torch, spec.get("dtype", "float16"))
    m, n, k = spec["shape"]
    a = torch.randn(m, k, device=device, dtype=dtype)
    return a, torch.randn(k, n, device=device, dtype=dtype)


def _relative_error(c: Any, a: Any, b: Any) -> float:
    reference = a.float() @ b.float()
    return float((c.float() - reference).norm() / reference.norm())


def gemm(name: str, spec: Spec) -> Spec:
    """Milliseconds of the kernel and of torch.matmul, in turn, medians over rounds."""
    from tilelab.runtime.timing import do_bench

    kernel = _program(name).build(*spec["shape"], **spec.get("config", {}))
    a, b = _inputs(spec, "cuda")
    error = _relative_error(kernel(a, b), a, b)
    if not error < 5e-3:
        raise SystemExit(f"{name}: wrong result before timing: relative error {error:.2e}")
    rounds: dict[str, list[float]] = {"kernel": [], "torch": []}
    for _ in range(spec.get("rounds", 5)):
        rounds["torch"].append(float(do_bench(lambda: a @ b, rep=60, return_mode="median")))
        rounds["kernel"].append(float(do_bench(lambda: kernel(a, b), rep=60, return_mode="median")))
    return {"error": error, **{k: statistics.median(v) for k, v in rounds.items()}}


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


def sim(name: str, spec: Spec) -> Spec:
    """Seconds and peak memory (GiB) of one simulated GEMM on CPU tensors."""
    kernel = _program(name).build(*spec["shape"])
    a, b = _inputs(spec, "cpu")
    started = time.perf_counter()
    c = kernel(a, b)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    return {"seconds": seconds, "peak_gib": peak, "error": _relative_error(c, a, b)}


TASKS: dict[str, Callable[[str, Spec], Spec]] = {
    "gemm": gemm,
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
