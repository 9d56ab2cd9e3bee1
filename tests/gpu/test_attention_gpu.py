"""Attention on the device: against float32, and its tile counter under streams and graphs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.attention import compiled

pytestmark = pytest.mark.gpu

MANY = (2, 960, 40, 64)  # more tiles than multiprocessors: blocks draw them
D64 = {"block_M": 192, "block_N": 128, "threads": 384}
D128 = {"block_M": 128, "block_N": 128, "threads": 256}


def _operands(shape: tuple[int, ...]) -> list[Any]:
    return [torch.randn(shape, device="cuda", dtype=torch.float16) for _ in range(3)]


@pytest.mark.parametrize("off", [None, "tl.own_trips", "tl.defer_sums", "tl.tile_counter"])
@pytest.mark.parametrize(
    "shape, how",
    [
        ((1, 512, 2, 128), D128),
        ((1, 1920, 3, 64), D64),
        ((2, 1111, 20, 64), D64),
        ((3, 77, 1, 64), {}),
        ((1, 1000, 3, 128), {**D128, "causal": False}),
    ],
)
def test_attention(shape: Any, how: dict[str, Any], off: str | None) -> None:
    q, k, v = _operands(shape)
    got = compiled(shape, None if off is None else {off: False}, **how)(q, k, v)
    wide = [x.transpose(1, 2).float() for x in (q, k, v)]
    attend = torch.nn.functional.scaled_dot_product_attention
    want = attend(*wide, is_causal=how.get("causal", True)).transpose(1, 2)
    assert ((got.float() - want).norm() / want.norm()).item() < 1e-3


def test_streams_share_no_counter() -> None:
    kernel, sets = compiled(MANY, **D64), [_operands(MANY) for _ in range(3)]
    want = [kernel(*s) for s in sets]
    torch.cuda.synchronize()
    streams, outs = [torch.cuda.Stream() for _ in sets], [[] for _ in sets]
    for _ in range(10):
        for stream, operands, out in zip(streams, sets, outs, strict=True):
            with torch.cuda.stream(stream):
                out.append(kernel(*operands))
    torch.cuda.synchronize()
    assert all(torch.equal(o, w) for w, out in zip(want, outs, strict=True) for o in out)


def test_replays_of_graphs_share_no_counter() -> None:
    kernel, sets = compiled(MANY, **D64), [_operands(MANY) for _ in range(2)]
    want = [kernel(*s) for s in sets]
    torch.cuda.synchronize()
    graphs: list[Any] = []
    for operands in sets:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = kernel(*operands)
        graphs.append((graph, out, torch.cuda.Stream()))
    for _ in range(3):
        for _, out, _ in graphs:
            out.fill_(float("nan"))
        torch.cuda.synchronize()
        for graph, _, stream in graphs:
            with torch.cuda.stream(stream):
                graph.replay()
        beside = kernel(*sets[0])
        torch.cuda.synchronize()
        assert torch.equal(beside, want[0])
        assert all(torch.equal(out, w) for (_, out, _), w in zip(graphs, want, strict=True))
