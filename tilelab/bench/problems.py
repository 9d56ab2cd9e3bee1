"""What is measured on a GPU: inputs, result and torch's way of each program of `programs/`.

A specification ("spec") is plain data: {"program", "sizes", "config", ...}. Hides torch's calls
and the references, which are computed in float32.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Spec = dict[str, Any]
Tensors = tuple[Any, ...]
Maker = Callable[[Spec], Callable[..., Any]]


@dataclass(frozen=True)
class Problem:
    """`inputs(spec)` draws tensors anew at each call; `reference(spec, *inputs)` is the result in
    float32; `peers` make functions of the same inputs, by column; an error of the result (norm of
    the difference over that of the reference) above `tolerance` stops the measurement.

    Hand-written kernels name sizes by `sizes`, the inputs by `tensors` and the result by `result`;
    `empty(spec)` allocates it. `defaults` are settings of the program that a row leaves out.
    """

    inputs: Callable[[Spec], Tensors]
    reference: Callable[..., Any]
    peers: dict[str, Maker]
    tolerance: float
    sizes: tuple[str, ...]
    tensors: tuple[str, ...]
    result: str
    empty: Callable[[Spec], Any]
    defaults: Spec = field(default_factory=Spec)


def names_of(problem: Problem, spec: Spec) -> Spec:
    """What a description of a hand-written kernel can name in a row: sizes and settings."""
    named = zip(problem.sizes, spec["sizes"], strict=True)
    return {**problem.defaults, **dict(named), **spec["config"]}


def _result(*axes: int, dtype: str = "float16") -> Callable[[Spec], Any]:
    """An allocator of results whose axes have the sizes at these positions."""

    def empty(spec: Spec) -> Any:
        import torch

        kind = getattr(torch, spec["config"].get("dtype", dtype))
        return torch.empty([spec["sizes"][a] for a in axes], device="cuda", dtype=kind)

    return empty


def _normal(*shape: int, dtype: str = "float16") -> Any:
    import torch

    return torch.randn(*shape, device="cuda").to(getattr(torch, dtype))


def relative_error(got: Any, reference: Any) -> float:
    """Norm of the difference over the norm of the reference."""
    return float((got.float() - reference).norm() / reference.norm())


def _triton(program: str) -> Maker:
    """A program of `programs/triton_*`, which needs Triton only when a row asks for it."""

    def make(spec: Spec) -> Callable[..., Any]:
        return importlib.import_module(f"tilelab.bench.programs.triton_{program}").tuned(spec)

    return make


# ---- GEMM --------------------------------------------------------------------------------------


def _gemm_inputs(spec: Spec) -> Tensors:
    m, n, k = spec["sizes"]
    dtype = spec["config"].get("dtype", "float16")
    return _normal(m, k, dtype=dtype), _normal(k, n, dtype=dtype)


def _gemm_reference(spec: Spec, a: Any, b: Any) -> Any:
    del spec
    return a.float() @ b.float()


def _matmul(spec: Spec) -> Callable[..., Any]:
    def multiply(a: Any, b: Any) -> Any:
        return a @ b

    del spec
    return multiply


# ---- 8-bit GEMM --------------------------------------------------------------------------------


def _fp8_inputs(spec: Spec) -> Tensors:
    m, n, k = spec["sizes"]
    return tuple(_normal(*shape, dtype="float8_e4m3fn") for shape in ((m, k), (n, k)))


def _fp8_reference(spec: Spec, a: Any, b: Any) -> Any:
    del spec
    return a.float() @ b.float().T


def _scaled_mm(spec: Spec) -> Callable[..., Any]:
    import torch

    fast = not spec["config"].get("two_levels", False)
    one = torch.ones((), device="cuda")
    multiply: Any = vars(torch)["_scaled_mm"]  # torch 2.11 has no public name for it

    def scaled(a: Any, b: Any) -> Any:
        return multiply(a, b.T, one, one, out_dtype=torch.bfloat16, use_fast_accum=fast)

    return scaled


# ---- GEMM with 4-bit weights -------------------------------------------------------------------


def _dequant_inputs(spec: Spec) -> Tensors:
    import torch

    m, n, k = spec["sizes"]
    codes = torch.randint(0, 256, (n, k // 2), device="cuda", dtype=torch.uint8)
    scales = torch.rand(k // spec["config"].get("group", 128), n, device="cuda") + 0.5
    return _normal(m, k), codes, (scales / 16).half()


def _weights(codes: Any, scales: Any) -> Any:
    import torch

    nibbles = torch.stack((codes & 15, codes >> 4), -1).flatten(1).float() - 8
    return nibbles * scales.float().T.repeat_interleave(nibbles.shape[1] // scales.shape[0], 1)


def _dequant_reference(spec: Spec, a: Any, codes: Any, scales: Any) -> Any:
    del spec
    return a.float() @ _weights(codes, scales).half().float().T


def _dense(spec: Spec) -> Callable[..., Any]:
    """The product with weights of 16 bits that were unpacked before: four times their bytes."""
    known: dict[int, Any] = {}

    def multiply(a: Any, codes: Any, scales: Any) -> Any:
        if id(codes) not in known:
            known[id(codes)] = _weights(codes, scales).half()
        return a @ known[id(codes)].T

    del spec
    return multiply


# ---- rows --------------------------------------------------------------------------------------


def _row_inputs(spec: Spec) -> Tensors:
    return (_normal(*spec["sizes"]),)


def _rmsnorm_reference(spec: Spec, x: Any) -> Any:
    del spec
    import torch

    return x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)


def _rmsnorm(spec: Spec) -> Callable[..., Any]:
    import torch

    shape = [spec["sizes"][1]]

    def normalise(x: Any) -> Any:
        return torch.nn.functional.rms_norm(x, shape, eps=1e-6)

    return normalise


def _softmax(spec: Spec) -> Callable[..., Any]:
    def soften(x: Any) -> Any:
        return x.softmax(-1)

    del spec
    return soften


def _softmax_reference(spec: Spec, x: Any) -> Any:
    del spec
    return x.float().softmax(-1)


def _compiled(maker: Maker) -> Maker:
    def make(spec: Spec) -> Callable[..., Any]:
        import torch

        return torch.compile(maker(spec))  # pyright: ignore[reportUnknownMemberType]

    return make


def _device_copy(spec: Spec) -> Callable[..., Any]:
    """A copy of the input to a tensor of its shape: what memory bandwidth allows."""
    import torch

    del spec
    places: dict[int, Any] = {}

    def copy(x: Any) -> Any:
        place = places.setdefault(id(x), torch.empty_like(x))
        return place.copy_(x)

    return copy


# ---- attention ---------------------------------------------------------------------------------


def _attention_inputs(spec: Spec) -> Tensors:
    batch, heads, seq, dim = spec["sizes"]
    return tuple(_normal(batch, seq, heads, dim) for _ in range(3))


def _attention_reference(spec: Spec, q: Any, k: Any, v: Any) -> Any:
    """Head by head, so that the scores of one head fit."""
    import torch

    batch, heads, seq, dim = spec["sizes"]
    out = torch.empty(batch, seq, heads, dim, device="cuda")
    hidden = torch.ones(seq, seq, device="cuda", dtype=torch.bool).triu(1)
    for b in range(batch):
        for h in range(heads):
            score = q[b, :, h].float() @ k[b, :, h].float().T / math.sqrt(dim)
            if spec["config"].get("causal"):
                score.masked_fill_(hidden, -math.inf)
            out[b, :, h] = score.softmax(-1) @ v[b, :, h].float()
    return out


def _sdpa(backend: str) -> Maker:
    def make(spec: Spec) -> Callable[..., Any]:
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel

        causal = bool(spec["config"].get("causal"))
        chosen = getattr(SDPBackend, backend)

        def attend(q: Any, k: Any, v: Any) -> Any:
            with sdpa_kernel(chosen):
                out = torch.nn.functional.scaled_dot_product_attention(
                    q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=causal
                )
            return out.transpose(1, 2)

        return attend

    return make


def _decode_inputs(spec: Spec) -> Tensors:
    batch, heads, kv_heads, seq, dim, _ = spec["sizes"]
    shared = (batch, seq, kv_heads, dim)
    return _normal(batch, heads, dim), _normal(*shared), _normal(*shared)


def _decode_reference(spec: Spec, q: Any, k: Any, v: Any) -> Any:
    import torch

    batch, heads, kv_heads, _, dim, _ = spec["sizes"]
    grouped = q.float().view(batch, kv_heads, heads // kv_heads, dim)
    score = torch.einsum("bgid,bsgd->bgis", grouped, k.float()) / math.sqrt(dim)
    out = torch.einsum("bgis,bsgd->bgid", score.softmax(-1), v.float())
    return out.reshape(batch, heads, dim)


def _sdpa_decode(spec: Spec) -> Callable[..., Any]:
    import torch

    del spec

    def attend(q: Any, k: Any, v: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(
            q[:, :, None], k.transpose(1, 2), v.transpose(1, 2), enable_gqa=True
        )[:, :, 0]

    return attend


_MNK = ("M", "N", "K")
_ROWS = (("M", "N"), ("X",), "Y", _result(0, 1))

PROBLEMS: dict[str, Problem] = {
    "gemm": Problem(
        _gemm_inputs, _gemm_reference, {"torch": _matmul, "triton": _triton("gemm")}, 5e-3,
        _MNK, ("A", "B"), "C", _result(0, 1), {"dtype": "float16"},
    ),
    "fp8_gemm": Problem(
        _fp8_inputs, _fp8_reference, {"torch": _scaled_mm}, 1e-2,
        _MNK, ("A", "B"), "C", _result(0, 1, dtype="bfloat16"), {"two_levels": False},
    ),
    "dequant_gemm": Problem(
        _dequant_inputs, _dequant_reference, {"torch": _dense}, 5e-3,
        _MNK, ("A", "Q", "S"), "C", _result(0, 1), {"group": 128},
    ),
    "rmsnorm": Problem(
        _row_inputs, _rmsnorm_reference,
        {"copy": _device_copy, "torch": _rmsnorm, "torch.compile": _compiled(_rmsnorm),
         "triton": _triton("rmsnorm")},
        2e-3, *_ROWS,
    ),
    "softmax": Problem(
        _row_inputs, _softmax_reference,
        {"copy": _device_copy, "torch": _softmax, "torch.compile": _compiled(_softmax),
         "triton": _triton("softmax")},
        2e-3, *_ROWS,
    ),
    "attention": Problem(
        _attention_inputs, _attention_reference,
        {"torch": _sdpa("CUDNN_ATTENTION"), "FlashAttention-2": _sdpa("FLASH_ATTENTION")}, 5e-3,
        ("B", "H", "S", "D"), ("Q", "K", "V"), "O", _result(0, 2, 1, 3), {"causal": False},
    ),
    "decode": Problem(
        _decode_inputs, _decode_reference, {"torch": _sdpa_decode}, 5e-3,
        ("B", "H", "KV", "S", "D", "splits"), ("Q", "K", "V"), "O", _result(0, 1, 4),
    ),
}  # fmt: skip
