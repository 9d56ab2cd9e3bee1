"""Decisions as plain data: a buffer's layout, a loop's pipeline. Views and tests read these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tilelab.errors import Loc
from tilelab.ir import Buffer, Node
from tilelab.ir.printer import TEXTS, Printer

Mechanism = Literal["tma", "cp.async", "sync"]


@dataclass(frozen=True)
class LayoutDecision:
    """The layout of one buffer and why. `layout` is a layout.Fragment or layout.SharedLayout."""

    buffer: Buffer
    layout: Any
    reason: str


@dataclass(frozen=True)
class PlannedOp:
    """One tile op of a pipelined loop: what it does, on which engine, in which role."""

    label: str  # e.g. "A -> A_shared", "gemm C_local"
    kind: Literal["copy", "gemm", "compute"]
    engine: str  # "TMA", "cp.async", "wgmma", "mma.sync", "SIMT"
    bytes: int  # moved per iteration (copies), else 0
    loc: Loc | None
    op: Node | None = None


@dataclass(frozen=True)
class VersionedBuffer:
    """A shared buffer with one copy for each stage."""

    buffer: Buffer
    versions: int
    bytes_per_version: int


@dataclass(frozen=True)
class RolePlan:
    """Threads of one warp role, and its register budget (setmaxnreg) where there is one."""

    name: str
    first_thread: int
    threads: int
    registers: int | None


@dataclass(frozen=True)
class BarrierPlan:
    """A group of mbarriers: `count` of them (one a stage), who arrives and who waits."""

    name: str
    count: int
    arrivals: int
    expected_bytes: int
    waited_by: str
    arrived_by: str


@dataclass(frozen=True)
class Stamp:
    """A place of a kernel that was made to note when `role` reached it: before ("start"), after
    ("end") or at ("at") an instruction of the kind that its event has (`sim.Event.kind`). `row`
    numbers the roles that stamp; `name` is the barrier array's, or what is waited for."""

    kernel: str
    role: str
    row: int
    kind: str
    name: str
    edge: str
    loc: Loc | None


@dataclass(frozen=True)
class PipelinePlan:
    """A pipelined loop: which ops run ahead, in how many slots, and what orders them.

    `trip_count` is None when it is known only at run time. Slot of iteration k is
    `k % num_stages`; the prologue issues `prefetch` iterations before the first is consumed.
    """

    loop: str
    kernel: str
    mechanism: Mechanism
    num_stages: int
    prefetch: int
    trip_count: int | None
    producers: tuple[PlannedOp, ...]
    consumers: tuple[PlannedOp, ...]
    buffers: tuple[VersionedBuffer, ...]
    roles: tuple[RolePlan, ...]
    barriers: tuple[BarrierPlan, ...]
    loc: Loc | None
    reason: str


def _text(plan: PipelinePlan, printer: Printer) -> str:
    """A plan inside a program's text: pictures and notes say the rest."""
    return f"<{plan.mechanism}, {plan.num_stages} slots, {plan.prefetch} ahead>"


TEXTS[PipelinePlan] = _text
