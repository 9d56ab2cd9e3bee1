"""A view of every kind with any names in it, for tests of what holds for all pictures."""

from __future__ import annotations

import json
import re
from functools import cache

import tilelab
import tilelab.language as T
from tilelab.layout import row_major
from tilelab.target import SM90A
from tilelab.views import View, access_of, from_json, roofline_view, shared_view, show
from tilelab.views.roofline import Point

NAMES = ("product_kernel", "product", "left_tile", "right_tile", "sums", "step", "a_peer", "every")
"""What the views below name, and what `named` writes other names for."""


def gemm(size: int):
    @T.prim_func
    def product(
        left: T.Tensor((size, size), "float16"), right: T.Tensor((size, size), "float16"),
        out: T.Tensor((size, size), "float16"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(size, 128), T.ceildiv(size, 128), threads=128) as (bx, by):
            left_tile = T.alloc_shared((128, 64), "float16")
            right_tile = T.alloc_shared((64, 128), "float16")
            sums = T.alloc_fragment((128, 128), "float32")
            T.clear(sums)
            for step in T.Pipelined(T.ceildiv(size, 64), num_stages=3):
                T.copy(left[by * 128, step * 64], left_tile)
                T.copy(right[step * 64, bx * 128], right_tile)
                T.gemm(left_tile, right_tile, sums)
            T.copy(sums, out[by * 128, bx * 128])

    return product


@cache
def texts() -> tuple[str, ...]:
    """The views as JSON: each kind at least once, small maps and large ones."""
    kernel = tilelab.compile(gemm(256), target="sm_90a", out_idx=-1)
    found = list(show(kernel, "fragment", "pipeline", "memory", "source", "passes", "sass", "sim",
                      "schedule", "compare").views)  # fmt: skip
    for shape in ((8, 64), (64, 64), (256, 16)):
        tile = shared_view(row_major(shape, 16), buffer="left_tile", reason="every reason for it")
        found += [tile, access_of(tile, "column", 1)]
    points = [Point("a_peer", 1e9, 1e6, s, "every source") for s in (None, 1e-5)]
    return tuple(view.to_json() for view in (*found, roofline_view(points, SM90A)))


def named(name: str) -> list[View]:
    """The views, with `name` for everything in them that has a name of its own."""
    words = re.compile(r"\b(?:" + "|".join(NAMES) + r")\b")
    put = json.dumps(name)[1:-1]
    return [from_json(words.sub(lambda _: put, text)) for text in texts()]
