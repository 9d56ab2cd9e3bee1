"""Run a lowered program on numpy arrays: launches, groups of blocks, the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelab.errors import TileTypeError, TileValueError
from tilelab.ir import RESIDENT, Buffer, Expr, Pool, ScalarParam, TensorParam, Var, WorkCounter
from tilelab.sim.code import Code
from tilelab.sim.counters import KernelCounters
from tilelab.sim.evaluate import evaluate, scalar
from tilelab.sim.findings import Findings, chosen_checks
from tilelab.sim.frame import Array, Env, Frame
from tilelab.sim.global_order import GlobalOrder
from tilelab.sim.global_written import GlobalWritten, note_unwritten
from tilelab.sim.group import BlockGroup
from tilelab.sim.model import kernel_seconds, launch_facts, target_of
from tilelab.sim.pools import Pools
from tilelab.sim.report import SimReport
from tilelab.sim.scheduler import SCHEDULES, Schedule, Scheduler
from tilelab.sim.speech import Speech
from tilelab.sim.statements import RUNNERS
from tilelab.sim.strand import Strand
from tilelab.sim.timeline import Clock, Event, Timeline
from tilelab.sim.waiting import DRIVERS
from tilelab.thread import Program, ThreadKernel
from tilelab.thread.costs import rates

MAX_GROUP = 256
Progress = Callable[[int, int], None]
OPTIONS = frozenset({
    "checks", "seed", "schedule", "max_memory", "loop_seconds", "max_steps", "timeline_block",
    "progress",
})  # fmt: skip
"""The keyword arguments of `simulate` that a caller of a kernel may give."""


def simulate(
    program: Program,
    arrays: Mapping[str, Array],
    scalars: Mapping[str, int | float] | None = None,
    *,
    checks: bool | Iterable[str] = True,
    seed: int = 0,
    schedule: Schedule = "late",
    max_memory: int = 3 << 30,
    loop_seconds: float = 5.0,
    max_steps: int | None = None,
    registers: Mapping[str, int] | None = None, timeline_block: int = 0,
    progress: Progress | None = None, unset: Iterable[str] = (),
    resident_blocks: int | None = None, to_tables: bool = True,
) -> SimReport:  # fmt: skip
    """Run all kernels of `program`; `arrays` (tensor parameters by name) change in place.

    `scalars` are runtime numbers and dynamic sizes by name; sizes that are missing are read off
    the arrays' shapes. `checks`: True, False, or names, as `findings.chosen_checks` has them.
    A while loop of many iterations that runs longer than `loop_seconds` is taken to have no end.
    After `max_steps` steps (a step is one statement of one group of blocks; None: no limit) the
    program is stopped, with a finding: unlike seconds, the same on every machine.
    `registers`: a thread's, by kernel, for the occupancy. `timeline_block`: the block (linear, x
    fastest) whose modelled timeline is kept. `progress(done, total)` counts blocks. `unset`
    names tensors that begin without values, as outputs do that the call allocates.
    `resident_blocks`: how many blocks of a persistent kernel the imagined device holds at once
    (None: one on each multiprocessor of the target). `to_tables`: False leaves the tensors that
    tables of addresses lead to as they were.

    Raises TileErrors for arguments that do not fit and for programs that cannot be simulated;
    problems of the program itself are findings.
    """
    started = time.perf_counter()
    findings = Findings(chosen_checks(checks), by_hand=program.by_hand)
    _check_schedule(schedule)
    env = _environment(program, arrays, scalars or {})
    _set_resident(program, resident_blocks, env)
    memory = _bind(program, arrays, env)
    written = GlobalWritten(program, memory, _without_values(program, unset))
    code = Code(RUNNERS, DRIVERS, loop_seconds, _counted("max_steps", max_steps))
    how = _How(schedule, seed, max_memory, timeline_block, to_tables)
    launches: list[_Launch] = []
    with np.errstate(all="ignore"):
        for kernel in program.kernels:
            launches.append(_Launch(kernel, env, memory, findings, code, how, written))
            launches[-1].run(progress, (registers or {}).get(kernel.name))
    if not findings.all():  # blocks that were stopped wrote nothing
        note_unwritten(program, [n.order for n in launches], findings, unset)
    return _report(program.name, launches, findings, started, timeline_block, code.steps)


def _report(
    name: str,
    launches: Sequence[_Launch],
    findings: Findings,
    started: float,
    block: int,
    steps: int,
) -> SimReport:
    seconds = time.perf_counter() - started
    modelled = sum(kernel_seconds(n.target, n.counters.total(), n.blocks) for n in launches)
    return SimReport(
        findings.all(),
        tuple(n.counters for n in launches),
        tuple(event for n in launches for event in n.events),
        seconds,
        sum(n.blocks for n in launches),
        1e3 * modelled,
        tuple(line for n in launches for line in n.speech.lines),
        name,
        block,
        min((n.target.limits.clock_hz for n in launches), default=1e9),
        sum(n.dropped for n in launches),
        orders=tuple(n.order for n in launches),
        steps=steps,
        notes=findings.notes(),
    )


def _check_schedule(schedule: str) -> None:
    if schedule not in SCHEDULES:
        raise TileValueError(
            f"there is no schedule {schedule!r}", code="TL2108", hint="use " + ", ".join(SCHEDULES)
        )


def _set_resident(program: Program, wanted: int | None, env: Env) -> None:
    wanted = _counted("resident_blocks", wanted)
    sms = min((target_of(k).limits.sms for k in program.kernels), default=1)
    env.set(RESIDENT, scalar(sms if wanted is None else wanted, RESIDENT.dtype))


def _counted(name: str, wanted: int | None) -> int | None:
    if wanted is not None and wanted < 1:
        raise TileValueError(
            f"{name} is {wanted}", code="TL2115", hint="give 1 or more, or leave it out"
        )
    return wanted


def _without_values(program: Program, unset: Iterable[str]) -> list[Buffer]:
    """Tensors that hold nothing when the program begins: workspaces (counters hold 0), and those
    named."""
    named = {p.name: p.buffer for p in program.params if isinstance(p, TensorParam)}
    spaces = [b for b in program.workspaces if not isinstance(b, WorkCounter)]
    return [*spaces, *(named[name] for name in unset)]


class _NoMemory:
    """Expressions of launches and shapes read no buffer."""

    def read(self, load: Any, indices: Any, frame: Any) -> Any:
        raise TileTypeError(f"a launch extent reads {load.buffer.name}", code="TL2105")

    def divided_by_zero(self, where: Any, frame: Any) -> None:
        raise TileValueError("a launch extent or a shape divides by zero", code="TL2012")

    def guarded(self, e: Any, cond: Any, frame: Any) -> None:
        """There is nothing to guard."""


_NO_MEMORY = _NoMemory()


def _number(value: Expr | int, env: Env) -> int:
    if isinstance(value, int):
        return value
    one = np.zeros(1, np.int64)
    return int(evaluate(value, Frame(one, one, env, 1), _NO_MEMORY))


def _environment(
    program: Program, arrays: Mapping[str, Array], scalars: Mapping[str, int | float]
) -> Env:
    env = Env()
    known: dict[str, int | float] = {**_sizes_of(program, arrays), **scalars}
    wanted = [p.var for p in program.params if isinstance(p, ScalarParam)]
    for var in [*wanted, *program.sizes]:
        if var.name not in known:
            raise TileValueError(
                f"the number {var.name!r} is missing", code="TL2106",
                hint="pass it in `scalars`",
            )  # fmt: skip
        env.set(var, scalar(known[var.name], var.dtype))
    return env


def _sizes_of(program: Program, arrays: Mapping[str, Array]) -> dict[str, int]:
    """Dynamic sizes that stand alone as an extent of a tensor."""
    found: dict[str, int] = {}
    for param in program.params:
        if isinstance(param, TensorParam) and param.name in arrays:
            shape = arrays[param.name].shape
            for size, extent in zip(param.buffer.shape, shape, strict=False):
                if isinstance(size, Var):
                    found.setdefault(size.name, extent)
    return found


def _bind(program: Program, arrays: Mapping[str, Array], env: Env) -> dict[Buffer, Array]:
    memory: dict[Buffer, Array] = {}
    for param in program.params:
        if not isinstance(param, TensorParam):
            continue
        buffer = param.buffer
        if param.name not in arrays:
            raise TileValueError(f"the tensor {param.name!r} is missing", code="TL2106",
                                 hint="pass it in `arrays`")  # fmt: skip
        array = arrays[param.name]
        shape = tuple(_number(s, env) for s in buffer.shape)
        if array.dtype != buffer.dtype.numpy or array.shape != shape:
            raise TileTypeError(
                f"{param.name} is {array.dtype} {array.shape}, the program wants "
                f"{buffer.dtype} {shape}", code="TL2107",
            )  # fmt: skip
        memory[buffer] = array
    for buffer in program.workspaces:
        shape = tuple(_number(s, env) for s in buffer.shape)
        memory[buffer] = np.zeros(shape, buffer.dtype.numpy)
    return memory


@dataclass(frozen=True)
class _How:
    """Options of all launches of a call."""

    schedule: Schedule
    seed: int
    max_memory: int
    timeline_block: int
    to_tables: bool


class _Launch:
    """One kernel over its grid."""

    def __init__(
        self,
        kernel: ThreadKernel,
        env: Env,
        memory: dict[Buffer, Array],
        findings: Findings,
        code: Code,
        how: _How,
        written: GlobalWritten,
    ) -> None:
        self.written = written
        self.kernel, self.env, self.memory = kernel, env, dict(memory)
        self.pools = Pools(kernel, memory, lambda size: _number(size, env))
        self.memory.update(self.pools.arrays())
        for view in (v for v in kernel.views if not isinstance(v, Pool)):
            flat = memory[view.storage].reshape(-1).view(view.dtype.numpy)
            self.memory[view] = flat.reshape([_number(s, env) for s in view.shape])
        self.findings, self.code, self.how = findings, code, how
        code.learn(kernel.body)
        self.grid = tuple(_number(g, env) for g in kernel.grid)
        self.target = target_of(kernel)
        self.counters = KernelCounters(kernel.name)
        self.order = GlobalOrder(kernel, self.memory, int(np.prod(self.grid)))
        self.pools.watch(self.memory, self.order.writes)
        self.events: list[Event] = []
        self.dropped = 0  # events that the timeline did not keep
        self.speech = Speech()

    @property
    def blocks(self) -> int:
        """How many blocks the grid has."""
        return int(np.prod(self.grid))

    def run(self, progress: Progress | None, registers: int | None) -> None:
        """All blocks, a group at a time. registers: a thread's, for the occupancy, if known."""
        self.counters.launch = launch_facts(self.kernel, self.target, self.grid, registers)
        total, size = self.blocks, self._group_size()
        for first in range(0, total, size):
            if self.code.spent:
                break
            numbers = np.arange(first, min(first + size, total))
            group = self._run_group(numbers)
            if group.timeline is not None:
                self.events, self.dropped = group.timeline.events, group.timeline.dropped
            if progress is not None:
                progress(first + len(numbers), total)
            if group.hung and group.dead.all():
                break  # on the chip, too, the others only begin when some of these end
        if self.how.to_tables:
            self.pools.give_back()

    def _group_size(self) -> int:
        """As many blocks as fit, counting shared memory, registers and as much again."""
        kernel = self.kernel
        shared = sum(s.num_bytes for s in kernel.shared)
        registers = sum(int(np.prod(b.static_shape)) * b.dtype.bytes for b in kernel.locals)
        per_block = 4 * (shared + registers * kernel.num_threads) + (1 << 12)
        return int(min(max(self.how.max_memory // per_block, 1), MAX_GROUP))

    def _run_group(self, numbers: Array) -> BlockGroup:
        kernel = self.kernel
        timeline = self._timeline(numbers)
        group = BlockGroup(
            kernel, self.grid, numbers, self.memory, self.findings, self.counters, self.order,
            self.written,
            timeline,
        )  # fmt: skip
        group.speech, group.pools = self.speech, self.pools
        env = Env(self.env)
        rest = numbers
        for var, extent in zip(kernel.block_vars, self.grid, strict=False):
            env.set(var, (rest % extent).astype(var.dtype.numpy)[:, None] if extent > 1 else 0)
            rest = rest // extent
        lanes = np.arange(kernel.num_threads)
        left = lanes
        for var, extent in zip(kernel.thread_vars, kernel.threads, strict=False):
            env.set(var, (left % extent).astype(var.dtype.numpy)[None])
            left = left // extent
        if kernel.launched is not None:
            env.set(kernel.launched, scalar(self.grid[0], kernel.launched.dtype))
        frame = Frame(np.arange(group.size), lanes, env, group.size)
        late = self.how.schedule != "eager"
        frames = [frame]
        if self.code.asks(kernel.body):  # blocks wait for each other: each runs by itself
            rows = np.arange(group.size)
            frames = [frame.narrowed(rows == r, None, group.size) for r in rows]
        roots = [
            Strand(group, self.code, Clock(timeline, "block"), part, kernel.body, late)
            for part in frames
        ]
        Scheduler(group, roots, self.how.schedule, self.how.seed).run()
        return group

    def _timeline(self, numbers: Array) -> Timeline | None:
        """A timeline for the group that holds the block to be timed (the last one of a smaller
        grid)."""
        block = min(self.how.timeline_block, int(np.prod(self.grid)) - 1)
        row = block - int(numbers[0])
        if not 0 <= row < len(numbers):
            return None
        return Timeline(self.kernel.name, row, rates(self.target.limits))
