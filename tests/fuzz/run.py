"""Families of drawn programs, and how one draw is judged, shrunk and shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.fuzz import host
from tests.fuzz.choices import Choices, shrink
from tests.fuzz.draw_attention import draw_attention
from tests.fuzz.draw_flow import draw_flow
from tests.fuzz.draw_product import draw_product
from tests.fuzz.draw_rows import draw_rows
from tests.fuzz.draw_threads import draw_threads
from tests.fuzz.program import Program, Verdict, compiled, judge
from tilelab.target import TARGETS as CHIPS

FAMILIES: dict[str, Callable[[Choices], Program]] = {
    "flow": draw_flow,
    "product": draw_product,
    "attention": draw_attention,
    "threads": draw_threads,
    "rows": draw_rows,
}
TARGETS = ("sm_80", "sm_90a")


def nvrtc_complaint(kernel: Any, target: str) -> str:
    """What NVRTC says against the kernel's CUDA text; empty when it compiles."""
    from tests.thread.nvrtc import compile_cuda

    try:
        compile_cuda(kernel.get_kernel_source(kernel_only=False), CHIPS[target])
    except AssertionError as error:
        return str(error)
    return ""


def examine(
    family: str, seed: int, target: str, nvrtc: bool = False, on_cpu: bool = False
) -> tuple[list[int], Verdict]:
    """The draw of a seed: its choices and what became of it. `on_cpu` runs the CUDA text too, where
    it is text that a CPU can run."""
    choices = Choices(seed)
    program = FAMILIES[family](choices)
    verdict = judge(program, target, nvrtc_complaint if nvrtc else None)
    if on_cpu and verdict.kind == "right":
        kernel = compiled(program, target)
        verdict = host.run_text(kernel, program) if host.runs_here(kernel) else verdict
    return choices.made, verdict


def smallest(
    family: str, made: list[int], target: str, verdict: Verdict, nvrtc: bool = False
) -> list[int]:
    """A simpler draw that fails in the same way."""

    def fails(candidate: list[int]) -> bool:
        try:
            program = FAMILIES[family](Choices(replay=candidate))
        except Exception:
            return False
        return judge(program, target, nvrtc_complaint if nvrtc else None).kind == verdict.kind

    return shrink(made, fails, 60)


def report(family: str, made: list[int], target: str, seed: int) -> str:
    """A failing draw as runnable text, with what is wrong in its comments."""
    program = FAMILIES[family](Choices(replay=made))
    verdict = judge(program, target)
    notes = "\n".join(f"# {line}" for line in f"{verdict.kind}\n{verdict.details}".splitlines())
    head = f"# tests.fuzz {family}, seed {seed}, {target}\n{notes}\n"
    return head + program.text() + program.calling(target)
