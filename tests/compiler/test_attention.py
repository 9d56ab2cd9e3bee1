"""Attention: the structure that its plain source gets, and that it computes what it should."""

from __future__ import annotations

from typing import Any

import pytest

from tests.attention import compiled, error, expected, operands

PLAIN = {"tl.plain_pipeline": True}


@pytest.mark.parametrize("configs", [None, PLAIN], ids=["fast", "plain"])
@pytest.mark.parametrize(
    "shape, how",
    [
        ((1, 256, 1, 64), {}),
        ((1, 256, 2, 64), {"causal": False}),
        ((1, 200, 1, 64), {}),
        ((1, 77, 1, 64), {"causal": False}),
        ((1, 300, 1, 128), {"block_M": 128, "block_N": 128, "threads": 256}),
        ((1, 400, 1, 64), {"block_M": 192, "block_N": 128, "threads": 384}),
    ],
)
def test_attention_on_the_simulator(shape: Any, how: dict[str, Any], configs: Any) -> None:
    q, k, v = operands(shape)
    got = compiled(shape, configs, **how)(q, k, v)
    assert error(got, expected(q, k, v, how.get("causal", True))) < 1e-3


def test_operands_of_two_gemms_have_two_rings() -> None:
    names = [b.name for b in compiled((1, 256, 1, 64)).trace.pipelines[0].barriers]
    assert names[:4] == ["full K_shared", "empty K_shared", "full V_shared", "empty V_shared"]
    plain = compiled((1, 256, 1, 64), PLAIN).trace.pipelines[0]
    assert [b.name for b in plain.barriers] == ["full", "empty"]
    assert plain.barriers[0].expected_bytes == 2 * 64 * 64 * 2
