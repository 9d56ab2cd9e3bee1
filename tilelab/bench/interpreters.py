"""The GEMM of `programs/` on a CPU: tilelab's simulator, Triton's interpreter, Pallas' for TPUs.

Runs in a process of the worker. Hides how each interpreter is switched on.
"""

from __future__ import annotations

import importlib
import os
import resource
import time
from collections.abc import Callable
from typing import Any

from tilelab.bench.problems import relative_error

Spec = dict[str, Any]


def sim(name: str, spec: Spec) -> Spec:
    """A GEMM on a CPU: {"seconds", "processor" (time of all threads), "peak_gib", "error"}, times
    the least of spec["rounds"] runs after a first one.

    spec["checks"]: with all of the implementation's checks; one that has none raises SystemExit.
    """
    import torch

    run = _SIMULATORS[name](spec)
    m, n, k = spec["shape"]
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(m, k, generator=generator).half()
    b = torch.randn(k, n, generator=generator).half()
    c, times, used = run(a, b), list[float](), list[float]()
    for _ in range(spec["rounds"]):
        started, before = time.perf_counter(), time.process_time()
        c = run(a, b)
        times.append(time.perf_counter() - started)
        used.append(time.process_time() - before)
    error = relative_error(c, a.float() @ b.float())
    if not error < 5e-3:
        raise SystemExit(f"{name}: wrong result: relative error {error:.2e}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    return {"seconds": min(times), "processor": min(used), "peak_gib": peak, "error": error}


def _sim_tilelab(spec: Spec) -> Callable[[Any, Any], Any]:
    importlib.import_module("tilelab.shim").install()
    kernel = importlib.import_module("tilelab.bench.programs.gemm").build(*spec["shape"])

    def run(a: Any, b: Any) -> Any:
        report = kernel.simulate(a, b, checks=spec["checks"])
        if not report.ok:
            raise SystemExit(str(report))
        return report.outputs[0]

    return run


def _sim_triton(spec: Spec) -> Callable[[Any, Any], Any]:
    if spec["checks"]:
        raise SystemExit("triton's interpreter has no checks of races or uninitialised memory")
    os.environ["TRITON_INTERPRET"] = "1"
    return importlib.import_module("tilelab.bench.programs.triton_gemm").run


def _sim_pallas(spec: Spec) -> Callable[[Any, Any], Any]:
    os.environ["JAX_PLATFORMS"] = "cpu"
    program = importlib.import_module("tilelab.bench.programs.pallas_gemm")
    return lambda a, b: program.run(a, b, checks=spec["checks"])


_SIMULATORS: dict[str, Callable[[Spec], Callable[[Any, Any], Any]]] = {
    "tilelab": _sim_tilelab, "triton": _sim_triton, "pallas": _sim_pallas,
}  # fmt: skip
