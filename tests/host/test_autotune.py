"""The autotuner on the simulator: every config tried, wrong and failing ones out, best kept."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tests.host.programs import BLOCKS, eager_scale, scale_factory
from tilelab.autotuner import AutoTuner, autotune, get_autotune_inputs, set_autotune_inputs
from tilelab.autotuner import measure as measure_module
from tilelab.autotuner import search as search_module
from tilelab.autotuner.measure import TooSlow, time_limit
from tilelab.autotuner.settings import Settings
from tilelab.errors import TileError, TileRuntimeError, TileWarning
from tilelab.kernel import JITKernel
from tilelab.logs import Progress, set_log_level
from tilelab.profiler import Milliseconds


def lazy(**options: Any) -> Any:
    return autotune(configs=options.pop("configs", BLOCKS), **options)(
        tilelab.jit(out_idx=[-1])(scale_factory)
    )


def test_every_config_is_tried_and_the_best_is_returned() -> None:
    tuned = lazy(ref_prog=lambda a: a * 2)
    kernel = tuned(256)
    result = tuned.tune(256)
    assert isinstance(kernel, JITKernel) and result.kernel is kernel
    assert [t.config for t in result.trials] == BLOCKS
    assert kernel.latency == min(t.latency for t in result.trials if t.latency is not None)
    assert kernel.config in BLOCKS and kernel.ref_latency is not None
    assert kernel.latency is not None and "modelled" in repr(kernel.latency)
    assert kernel.get_tuner_result()["config"] == kernel.config
    a = torch.randn(256)
    assert torch.equal(kernel(a), a * 2)


def test_a_call_is_tuned_once_for_its_arguments() -> None:
    tuned = lazy()
    assert tuned(256) is tuned(256)
    assert tuned(256) is not tuned(128)


def test_arguments_that_are_passed_are_not_tuned() -> None:
    tuned = lazy()
    assert tuned(256, block=32).config is None
    partly = lazy(configs=[{"block": b, "threads": t} for b in (64, 128) for t in (32, 64)])
    assert partly(256, block=128).config["block"] == 128
    assert len(partly.tune(256, block=128).trials) == 2


def test_a_failing_config_is_reported_and_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    tuned = lazy(configs=[{"block": 64}, {"block": 64, "threads": 0}])
    trials = tuned.tune(256).trials
    assert trials[0].latency is not None and trials[1].latency is None
    assert "threads=0" in capsys.readouterr().err and "TL1431" in trials[1].problem


def test_a_wrong_result_loses() -> None:
    factors = [{"factor": 3.0}, {"factor": 2.0}]
    tuned = lazy(configs=factors, ref_prog=lambda a: a * 2)
    assert tuned(256).config == {"factor": 2.0}
    assert "elements differ" in tuned.tune(256).trials[0].problem
    unchecked = lazy(configs=factors, ref_prog=lambda a: a * 2, skip_check=True)
    assert all(t.latency is not None for t in unchecked.tune(256).trials)


def test_the_user_may_judge_and_supply() -> None:
    seen: list[Any] = []

    def judge(got: list[Any], expected: list[Any]) -> None:
        seen.append((got, expected))

    def supply(params: list[Any]) -> list[Any]:
        assert [(p.name, str(p.dtype), p.shape) for p in params] == [("A", "float32", (256,))]
        return [torch.ones(256)]

    tuned = lazy(ref_prog=lambda a: a * 5, supply_prog=supply, manual_check_prog=judge)
    tuned(256)
    assert len(seen) == len(BLOCKS) and torch.equal(seen[0][0][0], torch.full((256,), 2.0))


def test_nothing_left_says_why() -> None:
    with pytest.raises(TileRuntimeError, match="none of 3 configs") as raised:
        lazy(ref_prog=lambda a: a * 7)(256)
    assert raised.value.code == "TL1652" and "elements differ" in str(raised.value)


def test_configs_may_depend_on_the_arguments() -> None:
    tuned = lazy(configs=lambda n, **_: [{"block": n // 4}, {"block": n // 2}])
    assert [t.config["block"] for t in tuned.tune(128).trials] == [32, 64]


def test_pass_configs_of_a_config_reach_the_compiler() -> None:
    key = tilelab.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED
    tuned = lazy(configs=[{"block": 64, "pass_configs": {key: True}}])
    kernel = tuned(256)
    assert kernel.pass_configs == {"tl.disable_warp_specialized": True}
    assert tuned.mode == "lazy"


def test_do_not_specialize_keeps_the_config() -> None:
    tuned = lazy(do_not_specialize=["n"])
    first, second = tuned(256), tuned(128)
    assert first is not second and first.config == second.config
    assert torch.equal(second(torch.ones(128)), torch.full((128,), 2.0))


def test_an_eager_function_is_tuned_and_run() -> None:
    tuned = autotune(configs=BLOCKS, ref_prog=lambda a: a * 3)(eager_scale())
    a = torch.randn(256)
    assert torch.equal(tuned(a, factor=3.0), a * 3)
    assert tuned.compile(n=256, factor=3.0).config in BLOCKS
    assert torch.equal(tuned(a, 3.0, 64, 64), a * 3)
    assert tuned.mode == "eager"


def test_given_inputs_are_used_and_kept() -> None:
    @tilelab.jit
    def double(n, block: int = 64):
        @T.prim_func
        def main(A: T.Tensor((n,), "float32")):
            with T.Kernel(n // block, threads=64) as bx:
                for i in T.Parallel(block):
                    A[bx * block + i] = A[bx * block + i] * 2

        return main

    a, seen = torch.ones(128), []

    def reference(x: torch.Tensor) -> None:
        seen.append(x.clone())
        x *= 2

    with set_autotune_inputs(a):
        assert get_autotune_inputs() == (a,)
        autotune(configs=BLOCKS, ref_prog=reference)(double)(128)
    assert get_autotune_inputs() is None
    assert torch.equal(a, torch.ones(128)) and all(torch.equal(s, a) for s in seen[:3])
    assert set_autotune_inputs([a, a]).tensors == (a, a)


def test_step_by_step() -> None:
    tuner = (
        AutoTuner.from_kernel(kernel=lambda block: scale_factory(256, block=block), configs=BLOCKS)
        .set_compile_args(out_idx=[-1], target="sm_80")
        .set_profile_args(ref_prog=lambda a: a * 2, cache_input_tensors=True, backend="event")
    )
    with pytest.warns(TileWarning, match="use_pipeline has no effect"):
        result = tuner.run(warmup=1, rep=1, use_pipeline=True)
    assert result.kernel.target.name == "sm_80" and len(result.trials) == 3
    assert "C[" in result.libcode or "__global__" in result.libcode
    assert result.config in BLOCKS and str(result).count("\n") == 2
    made = AutoTuner.from_kernel(tilelab.jit(out_idx=[-1])(scale_factory), BLOCKS).run()
    assert made.latency == result.latency or made.latency is not None


def test_builds_are_waited_for_where_they_compete(monkeypatch: pytest.MonkeyPatch) -> None:
    class Built:
        cubin = None

    settled: list[int] = []
    monkeypatch.setattr(search_module.driver, "find", lambda: object())
    monkeypatch.setattr(search_module, "measure", lambda *_: settled.append(1) or Milliseconds(1))
    monkeypatch.setattr(search_module.Inputs, "make", lambda *_: [])
    made = [Built() for _ in range(3)]
    futures: list[Any] = []
    with search_module._built(
        lambda c: made[c["i"]], [{"i": i} for i in range(3)], Settings()
    ) as f:
        futures = f
        search_module._settle(f, Settings(), Progress("test"))
        assert all(future.done() for future in f)
    trial, kernel = search_module._try(
        {"i": 0}, futures[0], Settings(), search_module.Inputs(Settings(), None), None
    )
    assert trial.latency == 1 and kernel is made[0] and settled == [1]


def test_timeouts_end_a_config() -> None:
    with pytest.raises(TooSlow, match=r"longer than 0\.05 s"), time_limit(0.05):
        while True:
            pass
    with pytest.raises(TileRuntimeError, match="longer than") as raised:
        lazy(configs=[{"block": 1}], timeout=0.01)(65_536)
    assert raised.value.code == "TL1652"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_limit_that_passes_in_a_finalizer() -> None:
    """What is raised there is dropped, so the limit is told once more."""

    class Slow:
        def __del__(self) -> None:
            while True:
                pass

    with pytest.raises(TooSlow), time_limit(0.05):
        Slow()
        while True:
            pass


@pytest.mark.parametrize(
    "make",
    [
        lambda: autotune(configs=BLOCKS)(scale_factory),
        lambda: autotune(configs=BLOCKS, warmups=3),
        lambda: autotune(configs=BLOCKS, timeout="10"),
        lambda: autotune(configs=BLOCKS, rep=-1),
        lambda: lazy(configs=[])(256),
        lambda: lazy(configs={"block": 3})(256),
        lambda: lazy(configs=[3])(256),
        lambda: lazy(configs=[{"blok": 3}])(256),
        lambda: AutoTuner.from_kernel(3, BLOCKS),  # type: ignore[arg-type]
        lambda: AutoTuner.from_kernel(scale_factory, BLOCKS).run(speed=3),
    ],
)
def test_misuse_is_said(make: Any) -> None:
    with pytest.raises(TileError) as raised:
        make()
    assert raised.value.code == "TL1651" and raised.value.hint


def test_a_kernel_that_was_not_tuned_says_so() -> None:
    with pytest.raises(TileError) as raised:
        tilelab.compile(scale_factory()).get_tuner_result()
    assert raised.value.code == "TL1653"


def test_the_log_level_hides_progress(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        set_log_level("WARNING")
        lazy()(64)
        assert capsys.readouterr().err == ""
    finally:
        set_log_level("INFO")
    lazy()(64)
    assert "autotune scale_factory: 3/3, best" in capsys.readouterr().err
    with pytest.raises(TileError) as raised:
        set_log_level("LOUD")
    assert raised.value.code == "TL1643"


@pytest.mark.parametrize(("best", "runs"), [(None, 1), (1.0, 1), (4.9, 2)])
def test_a_config_out_of_reach_is_not_timed_in_full(
    best: float | None, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[dict[str, Any]] = []

    def timed(**how: Any) -> Milliseconds:
        calls.append(how)
        return Milliseconds(5.0)

    monkeypatch.setattr(measure_module, "_timer", lambda *_: timed)
    assert measure_module.measure(None, Settings(rep=7), [], best) == 5.0
    assert len(calls) == runs
    assert ("rep" in calls[-1]) == (best != 1.0)
