"""One case, the structure, the benchmark: what the runner answers, as plain data.

Runs in the runner, on an artefact that was checked. Hides the order in which a call is distrusted:
findings, memory, inputs, fences, values.
"""

from __future__ import annotations

from typing import Any

from judge.compare import Difference, difference, tolerance
from judge.failure import own
from judge.kernels import Evidence, KernelCase, KernelTask, Sizes
from judge.memory import Call, Data
from tilelab import TileError, artifact

FILE = "solution.py"


class Refused(Exception):
    """An artefact that is not the kernel that was asked for: code and sentence."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


def load(task: KernelTask, data: Any, sizes: Sizes) -> Any:
    """The kernel of an artefact, with the parameters that the exercise asks for."""
    try:
        kernel = artifact.load(data, file=FILE)
    except TileError as error:
        raise Refused("ARTIFACT_INVALID", error.message) from error
    params = kernel.params
    if len(params) != len(task.tensors):
        text = f"the kernel has {len(params)} parameters, {len(task.tensors)} are asked for"
        raise Refused("SIGNATURE", text)
    for param, spec in zip(params, task.tensors, strict=True):
        wanted = spec.extents(sizes)
        buffer = getattr(param, "buffer", None)
        found = tuple(getattr(s, "value", s) for s in buffer.shape) if buffer is not None else ()
        if buffer is None or found != wanted or buffer.dtype != spec.dtype or buffer.strides:
            shown = f"{buffer.dtype}{list(found)}" if buffer is not None else "a number"
            text = f"{param.name} is {shown}, {spec.name} is {spec.dtype}{list(wanted)}"
            raise Refused("SIGNATURE", text)
    return kernel


def failed(code: str, message: str, **detail: Any) -> dict[str, Any]:
    """A case that was not passed."""
    return {"status": "fail", "code": code, "message": message, **detail}


def run_case(task: KernelTask, kernel: Any, case: KernelCase, seed: int, gpu: bool) -> Any:
    """Simulate with every check on; then, where there is a GPU, run there too."""
    data = Data(case.sizes, seed, case.scale, case.shift)
    with own("making the inputs"):
        call = Call(task, data, "cpu")
    report = kernel.simulate(*call.tensors, max_steps=task.max_steps(case.sizes))
    with own("comparing with the reference"):
        result = _judge(task, kernel, call, report)
    return _on_gpu(task, kernel, data, seed) if gpu and result["status"] == "pass" else result


def _on_gpu(task: KernelTask, kernel: Any, data: Data, seed: int) -> Any:
    import torch

    with own("making the inputs on the GPU"):
        call = Call(task, data, "cuda", shift=seed % 7)
        torch.cuda.synchronize()
    kernel(*call.tensors)
    torch.cuda.synchronize()
    with own("comparing with the reference on the GPU"):
        return _judge(task, kernel, call, None)


def _judge(task: KernelTask, kernel: Any, call: Call, report: Any) -> dict[str, Any]:
    if report is not None and not report.ok:
        return _finding(report.findings[0])
    if call.inputs_changed():
        return failed("INPUT_CHANGED", "an input is not what it was before the call",
                      cause=_why_changed(task, kernel))  # fmt: skip
    if call.fences_broken():
        return failed("OUT_OF_BOUNDS", "memory beside a tensor was written",
                      cause="an index runs past the end: guard the last tile")  # fmt: skip
    reference, magnitude = call.expected()
    allowed = tolerance(reference, magnitude, task.output.dtype, task.reduction(call.data.sizes))
    found = difference(call.output, reference, allowed)
    if found is None:
        return {"status": "pass"}
    name = kernel.params[task.tensors.index(task.output)].name
    writer = None if report is None else report.writer_of(name, found.index)
    return _wrong(task, found, call.data.sizes, writer)


def _finding(found: Any) -> dict[str, Any]:
    where = {} if found.loc is None else {"line": found.loc.line, "text": found.loc.text().strip()}
    who = {"block": list(found.block or ()), "warp": found.warp, "lane": found.lane}
    return failed(
        f"FINDING_{found.code}", found.message, finding={**where, **who}, cause=found.hint
    )  # fmt: skip


def _wrong(task: KernelTask, d: Difference, sizes: Sizes, writer: Any) -> dict[str, Any]:
    code = "UNWRITTEN" if d.got != d.got and d.unwritten else "WRONG_VALUES"
    detail: dict[str, Any] = {
        "index": list(d.index), "got": _shown(d.got, d.expected),
        "expected": _shown(d.expected, d.got),
        "allowed": f"{d.allowed:.3g}", "cause": _cause(task, d, sizes),
    }  # fmt: skip
    if writer is not None:
        detail["owner"] = {"block": writer.block, "warp": writer.warp, "lane": writer.lane}
        if writer.loc is not None:
            detail["finding"] = {"line": writer.loc.line, "text": writer.loc.text().strip()}
    return failed(code, f"{d.wrong} of {d.total} elements are wrong", **detail)


def _shown(value: float, other: float) -> str:
    """A number as briefly as it still differs from another one."""
    short = f"{value:.7g}"
    return repr(value) if short == f"{other:.7g}" else short


def _why_changed(task: KernelTask, kernel: Any) -> str:
    asked, found = [t.name for t in task.tensors], [p.name for p in kernel.params]
    if asked != found and sorted(asked) == sorted(found):
        return f"the parameters are {', '.join(found)}; asked for, in order: {', '.join(asked)}"
    return f"the kernel writes into an input; write {task.output.name} only"


_FEW = 2
"""So few elements at the end are left out by a guard; a tile that is missing has more."""


def _cause(task: KernelTask, d: Difference, sizes: Sizes) -> str:
    """The likeliest reason, from which elements are wrong and how."""
    if d.unwritten == d.wrong == d.total:
        return "nothing was written to the output (it was filled with NaN before the call)"
    ends = d.last == tuple(e - 1 for e in task.output.extents(sizes))
    if d.unwritten == d.wrong <= _FEW and ends:
        return (f"nothing was written at {list(d.index)}, the end: a guard such as `i < N - 1` "
                "leaves it out (`i < N` keeps it), or the grid ends a tile too early")  # fmt: skip
    if d.unwritten == d.wrong and ends and d.last[0] - d.index[0] + 1 == d.wrong:
        return (f"nothing was written from {list(d.index)} on: the grid ends too early "
                "(T.ceildiv rounds up), or all blocks write the same elements")  # fmt: skip
    if d.unwritten == d.wrong:
        return "elements were never written: the grid or a guard leaves them out"
    if d.unwritten:
        return "NaN spreads from memory that nobody wrote: clear accumulators, load every tile"
    if abs(d.got - d.expected) <= 64 * d.allowed:
        return "close, but less accurate than float32: compute and accumulate in float32"
    if any(d.index) and ends and 2 * d.wrong < d.total:
        return "only a part up to the last element is wrong: look at the tail"
    if d.expected and abs(d.got / d.expected - round(d.got / d.expected)) < 1e-3:
        return "a whole multiple of what was expected: something is added more than once"
    if task.reduction(sizes) > 1:
        return ("terms are missing, or others were added: does the loop reach the last, incomplete "
                "tile, and is the sum kept from tile to tile?")  # fmt: skip
    return "computed from other elements, or with another formula"


def evidence(task: KernelTask, kernel: Any, seed: int) -> Evidence:
    """What the rules of structure look at."""
    sizes = task.structure_sizes
    call = Call(task, Data(sizes, seed), "cpu")
    report = kernel.simulate(*call.tensors, max_steps=task.max_steps(sizes))
    # A kernel of its own for these sizes, with fine counters and wrong results, shows nothing.
    with own("comparing with the reference"):
        result = _judge(task, kernel, call, report)
    if result["status"] != "pass":
        raise Refused(result["code"], result["message"])
    total = report.total()
    program = kernel.program
    return Evidence(
        sizes=sizes,
        counters={name: float(v) for name, v in total.amounts.items()},
        costs=kernel.costs,
        opcodes=_opcodes(kernel),
        shared_bytes=max(k.dynamic_bytes + k.static_bytes for k in program.kernels),
        ideal_bytes=sum(t.numel() * t.element_size() for t in call.tensors),
        bank_conflict_degree=total.bank_conflict_degree,
        sector_ratio=total.sector_ratio,
    )


def _opcodes(kernel: Any) -> dict[str, int] | None:
    try:
        return kernel.opcodes
    except TileError as error:
        if error.code == "TL1601":  # no NVRTC or no disassembler here
            return None
        raise
