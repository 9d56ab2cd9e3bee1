"""The GEMM of `gemm.py` in Pallas for TPUs, for its interpreter on a CPU."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false

import functools

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def _gemm(a, b, c, total):
    step = pl.program_id(2)

    @pl.when(step == 0)
    def _():
        total[...] = jnp.zeros_like(total)

    total[...] += jnp.dot(a[...], b[...], preferred_element_type=jnp.float32)

    @pl.when(step == pl.num_programs(2) - 1)
    def _():
        c[...] = total[...].astype(c.dtype)


@functools.cache
def _call(M, N, K, checks, tile_m, tile_n, tile_k):
    return jax.jit(
        pl.pallas_call(
            _gemm,
            grid=(M // tile_m, N // tile_n, K // tile_k),
            in_specs=[
                pl.BlockSpec((tile_m, tile_k), lambda i, j, k: (i, k)),
                pl.BlockSpec((tile_k, tile_n), lambda i, j, k: (k, j)),
            ],
            out_specs=pl.BlockSpec((tile_m, tile_n), lambda i, j, k: (i, j)),
            out_shape=jax.ShapeDtypeStruct((M, N), jnp.float16),
            scratch_shapes=[pltpu.VMEM((tile_m, tile_n), jnp.float32)],
            interpret=pltpu.InterpretParams(detect_races=checks),
        )
    )


def run(a, b, checks=False, tile_m=128, tile_n=128, tile_k=64):
    """C = A @ B for sizes that the tiles divide; `checks`: with the race detector."""
    call = _call(a.shape[0], b.shape[1], a.shape[1], checks, tile_m, tile_n, tile_k)
    out = call(jnp.asarray(a.numpy()), jnp.asarray(b.numpy()))
    return torch.from_numpy(np.array(out.block_until_ready()))
