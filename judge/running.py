"""One case, the structure, the benchmark: what the runner answers, as plain data.

Runs in the runner, on an artefact that was checked. Hides the order in which a call is distrusted:
findings, memory, inputs, fences, values.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

from judge.causes import likely_cause
from judge.compare import Difference, difference, tolerance
from judge.failure import own
from judge.kernels import Evidence, KernelCase, KernelTask, Sizes, Tensor
from judge.memory import Call, Data
from judge.seen import Seen
from tilelab import TileError, artifact

FILE = "solution.py"
HALVES = ("float16", "bfloat16")
OUT_OF_BOUNDS = "TL2001"
"""The code of the simulator's finding or note on an access beside a tensor."""


class Refused(Exception):
    """An artefact that is not the kernel that was asked for: code, sentence, what to do."""

    def __init__(self, code: str, text: str, **detail: Any) -> None:
        super().__init__(text)
        self.code, self.text, self.detail = code, text, detail


def load(task: KernelTask, data: Any, sizes: Sizes) -> Any:
    """The kernel of an artefact, with the parameters that the exercise asks for."""
    try:
        kernel = artifact.load(data, file=FILE)
    except TileError as error:
        raise Refused("ARTIFACT_INVALID", error.message) from error
    asked = ", ".join(t.name for t in task.tensors)
    if len(kernel.params) != len(task.tensors):
        found = ", ".join(p.name for p in kernel.params) or "none"
        raise Refused(
            "SIGNATURE", f"the kernel's parameters are: {found}; asked for: {asked}",
            cause="declare one T.Tensor for each, in this order", **_at_definition(kernel),
        )  # fmt: skip
    for param, spec in zip(kernel.params, task.tensors, strict=True):
        problem = _other_tensor(param, spec, sizes)
        if problem:
            text, cause = problem
            raise Refused("SIGNATURE", text, cause=cause, **_at_definition(kernel))
    return kernel


def _other_tensor(param: Any, spec: Tensor, sizes: Sizes) -> tuple[str, str] | None:
    """How a parameter differs from what is asked for, and what to do."""
    wanted, declared = spec.extents(sizes), ", ".join(map(str, spec.shape))
    buffer = getattr(param, "buffer", None)
    if buffer is None:
        return (f"the parameter {param.name} is a number; asked for is the tensor {spec.name}",
                f"declare it as T.Tensor(({declared},), {spec.dtype!r})")  # fmt: skip
    found = tuple(getattr(s, "value", s) for s in buffer.shape)
    if found == wanted and buffer.dtype == spec.dtype and not buffer.strides:
        return None
    text = (f"{param.name} is declared as {buffer.dtype}{list(found)}; the task asks for "
            f"{spec.name}: {spec.dtype}{list(wanted)}")  # fmt: skip
    if buffer.strides:
        return text + " without strides", "declare it as T.Tensor"
    if buffer.dtype != spec.dtype:
        return text, f"its elements are to be {spec.dtype}"
    if sorted(map(str, found)) == sorted(map(str, wanted)):
        return text, f"its extents are, in order, {declared}"
    return text, f"its extents follow from the arguments: ({declared})"


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
                      **_why_changed(task, kernel))  # fmt: skip
    if call.fences_broken():
        return failed("OUT_OF_BOUNDS", "memory beside a tensor was written",
                      cause="an index runs past the end: guard the last tile")  # fmt: skip
    reference, magnitude = call.expected()
    allowed = tolerance(reference, magnitude, task.output.dtype, task.reduction(call.data.sizes))
    found = difference(call.output, reference, allowed)
    if found is None:
        return {"status": "pass", **_note(report)}
    return _wrong(task, kernel, call, report, found, (reference, allowed))


def _place(loc: Any) -> dict[str, Any]:
    """A line of the student's with its text, as the report shows it; {} for none."""
    return {} if loc is None else {"line": loc.line, "text": loc.text().strip()}


def _note(report: Any, code: str = "") -> dict[str, Any]:
    """What is right and yet seldom meant, as the simulator notes it; of one code, or of any."""
    notes = () if report is None else report.notes
    note = next((n for n in notes if code in ("", n.code)), None)
    if note is None:
        return {}
    return {"note": {"text": note.message, "cause": note.hint, **_line_of(note.loc)}}


def _line_of(loc: Any) -> dict[str, Any]:
    return {} if loc is None else {"line": loc.line}


def _finding(found: Any) -> dict[str, Any]:
    who = {"block": list(found.block or ()), "warp": found.warp, "lane": found.lane}
    return failed(
        f"FINDING_{found.code}", found.message, finding={**_place(found.loc), **who},
        cause=found.hint,
    )  # fmt: skip


def _wrong(
    task: KernelTask, kernel: Any, call: Call, report: Any, d: Difference, right: tuple[Any, Any]
) -> dict[str, Any]:
    code = "UNWRITTEN" if d.got != d.got and d.unwritten else "WRONG_VALUES"
    name = kernel.params[task.tensors.index(task.output)].name

    def writer(index: tuple[int, ...]) -> Any:
        return None if report is None else report.writer_of(name, index)

    stored = _stored_at(name)
    seen = _seen(task, kernel, call, report, d, right, writer)
    cause = likely_cause(replace(seen, stores=bool(stored)))
    detail: dict[str, Any] = {
        "index": list(d.index), "got": _shown(d.got, d.expected),
        "expected": _shown(d.expected, d.got), "allowed": f"{d.allowed:.3g}", "cause": cause.text,
    }  # fmt: skip
    owner = writer(d.index)
    if owner is not None:
        detail["owner"] = {"block": owner.block, "warp": owner.warp, "lane": owner.lane}
        loc = owner.loc
    elif cause.at_launch:
        loc = kernel.program.kernels[0].loc
    else:  # the first statement that writes the output
        notes = () if report is None else report.notes
        loc = next((n.loc for n in notes if n.buffer == name), None)
    place = _place(loc) or stored
    return failed(
        code, f"{d.wrong} of {d.total} elements are wrong", **detail,
        **({"finding": place} if place else {}), **_note(report, OUT_OF_BOUNDS),
    )  # fmt: skip


def _stored_at(name: str) -> dict[str, Any]:
    """The first line that stores to a tensor, by its looks; {} for none."""
    store = re.compile(
        rf"\b{re.escape(name)}\[.*\]\s*[-+*]?=[^=]|T\.copy\(.*,\s*{re.escape(name)}\b"
    )
    for number, line in enumerate(linecache.getlines(FILE), 1):
        if store.search(line):
            return {"line": number, "text": line.strip()}
    return {}


def _seen(
    task: KernelTask, kernel: Any, call: Call, report: Any, d: Difference, right: tuple[Any, Any],
    writer: Callable[[tuple[int, ...]], Any],
) -> Seen:  # fmt: skip
    """What the causes are told from; on the GPU nothing is known of blocks."""
    import torch

    def block_of(index: tuple[int, ...]) -> int | None:
        found = writer(index)
        return None if found is None else found.block

    launch = None if report is None or not report.counters else report.counters[0].launch
    text = "".join(linecache.getlines(FILE))
    halves = {b.name for k in kernel.program.kernels for b in k.locals
              if b.dtype in HALVES and re.search(rf"\b{re.escape(b.name)}\b", text)}  # fmt: skip
    return Seen(
        task, call.data.sizes, d, [x.double().cpu() for x in call.values()],
        call.output.to(torch.float64).cpu(), right[0].cpu(), right[1].cpu(),
        blocks=prod(launch.grid) if launch else 0, threads=launch.threads if launch else 0,
        block_of=block_of, halves=tuple(sorted(halves)),
    )  # fmt: skip


def _shown(value: float, other: float) -> str:
    """A number as briefly as it still differs from another one."""
    short = f"{value:.7g}"
    return repr(value) if short == f"{other:.7g}" else short


def _why_changed(task: KernelTask, kernel: Any) -> dict[str, Any]:
    asked, found = [t.name for t in task.tensors], [p.name for p in kernel.params]
    if asked != found and sorted(asked) == sorted(found):
        cause = f"the parameters are {', '.join(found)}; asked for, in order: {', '.join(asked)}"
    else:
        cause = f"the kernel writes into an input; write {task.output.name} only"
    return {"cause": cause, **_at_definition(kernel)}


def _at_definition(kernel: Any) -> dict[str, Any]:
    """The line that names the kernel's parameters; {} where it cannot be told."""
    begins = re.compile(rf"\s*def {re.escape(kernel.program.name)}\b")
    for number, line in enumerate(linecache.getlines(FILE), 1):
        if begins.match(line):
            return {"finding": {"line": number, "text": line.strip()}}
    return {}


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
    lines = {loc: c for counters in report.counters for loc, c in counters.lines.items() if loc}
    return Evidence(
        sizes=sizes,
        counters={name: float(v) for name, v in total.amounts.items()},
        costs=kernel.costs,
        opcodes=_opcodes(kernel),
        shared_bytes=max(k.dynamic_bytes + k.static_bytes for k in program.kernels),
        ideal_bytes=sum(t.numel() * t.element_size() for t in call.tensors),
        bank_conflict_degree=total.bank_conflict_degree,
        sector_ratio=total.sector_ratio,
        blocks=_blocks(task, kernel, report),
        places={
            "bytes": _worst(lines, _moved_bytes),
            "sectors": _worst(lines, lambda c: c.units("global") - c.ideal("global")),
            "banks": _worst(lines, lambda c: c.units("shared") - c.ideal("shared")),
            "launch": _place(program.kernels[0].loc),
        },
    )


def _moved_bytes(line: Any) -> float:
    return sum(v for name, v in line.amounts.items() if name.startswith("global_bytes"))


def _worst(lines: dict[Any, Any], cost: Callable[[Any], float]) -> dict[str, Any]:
    """The line that costs most; {} where none costs anything."""
    loc = max(lines, key=lambda at: cost(lines[at]), default=None)
    return _place(loc) if loc is not None and cost(lines[loc]) > 0 else {}


_LOOKED_AT = 4096


def _blocks(task: KernelTask, kernel: Any, report: Any) -> tuple[int, int]:
    """How many blocks wrote one of some elements of the output that lie evenly, and how many were
    launched. As many where that is not known: atomics, several kernels, blocks too small to be
    met by such elements."""
    import torch

    shape = task.output.extents(task.structure_sizes)
    name = kernel.params[task.tensors.index(task.output)].name
    counters, count = report.counters[0], min(prod(shape), _LOOKED_AT)
    launched = prod(counters.launch.grid) if counters.launch else 0
    flat = torch.linspace(0, prod(shape) - 1, count, dtype=torch.float64).long()
    found = [report.writer_of(name, tuple(int(i) for i in index))
             for index in torch.stack(torch.unravel_index(flat, shape), 1)]  # fmt: skip
    writers = {w.block for w in found if w is not None}
    seldom_met = count < prod(shape) and 2 * len(writers) > count
    if None in found or len(report.counters) > 1 or seldom_met:
        return launched, launched
    return len(writers), launched


def _opcodes(kernel: Any) -> dict[str, int] | None:
    try:
        return kernel.opcodes
    except TileError as error:
        if error.code == "TL1601":  # no NVRTC or no disassembler here
            return None
        raise
