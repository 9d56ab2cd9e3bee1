"""Atomic updates of one element (or two, four neighbours) of global or shared memory.

An instruction's value is what the element held before. CUDA's own atomics are used where there is
one for the type; the others are loops of compare-and-swap on the word that holds the element.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilelab.dtypes import DType
from tilelab.ir import Buffer, Scope
from tilelab.target import Feature
from tilelab.thread.intrinsic import Array, Intrinsic, Machine, Param, recorded
from tilelab.thread.intrinsics.helpers import INLINE, helper

ORDERS = ("relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst")
"""Memory orders by the names of the language; "relaxed" is the default."""

_SOURCE = "CUDA C++ Programming Guide, Atomic Functions"
_FENCE_BEFORE = frozenset({"release", "acq_rel", "seq_cst"})
_FENCE_AFTER = frozenset({"consume", "acquire", "acq_rel", "seq_cst"})
_FENCES = _FENCE_BEFORE | _FENCE_AFTER

Combine = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class Operation:
    """One kind of update: CUDA's function, its text for a compare-and-swap loop, its meaning."""

    name: str
    function: str
    native: frozenset[str]  # element types that CUDA's own function takes
    combined: str  # the new value out of `seen` (what is there) and `value`
    numpy: Combine
    floats: bool = True


def _exchanged(old: Array, value: Array) -> Array:
    return value


_INTS = frozenset({"int32", "uint32", "uint64"})
_WIDE_INTS = _INTS | {"int64"}
_SUMS = _INTS | {"float16", "bfloat16", "float32", "float64"}
OPERATIONS = {
    op.name: op
    for op in (
        Operation("add", "atomicAdd", _SUMS, "seen + value", np.add),
        Operation("max", "atomicMax", _WIDE_INTS, "{max}(seen, value)", np.fmax),
        Operation("min", "atomicMin", _WIDE_INTS, "{min}(seen, value)", np.fmin),
        Operation("or", "atomicOr", _INTS, "seen | value", np.bitwise_or, floats=False),
        Operation("and", "atomicAnd", _INTS, "seen & value", np.bitwise_and, floats=False),
        Operation("xor", "atomicXor", _INTS, "seen ^ value", np.bitwise_xor, floats=False),
        Operation("exchange", "atomicExch", _INTS | {"float32"}, "value", _exchanged),
    )
}
"""Updates by name. Of max and min, the one that is no NaN wins, as `fmax` has it."""


def has_atomic(op: str, dtype: DType) -> bool:
    """Whether an element of this type can be updated atomically."""
    operation = OPERATIONS[op]
    return dtype.bits >= 16 and (dtype.is_int or (dtype.is_float and operation.floats))


_LARGER = {"float16": "__h{}", "bfloat16": "__h{}", "float32": "f{}f", "float64": "f{}"}
_WORDS = {16: "unsigned short", 32: "unsigned int", 64: "unsigned long long"}


def _loop(op: Operation, dtype: DType) -> str:
    """Body of a compare-and-swap loop on the word that holds the element."""
    name, word = dtype.cuda, _WORDS[dtype.bits]
    pattern = _LARGER.get(dtype.name, "{}")
    combined = op.combined.format(max=pattern.format("max"), min=pattern.format("min"))
    return f"""  {word}* word = reinterpret_cast<{word}*>(p);
  {word} old = *word, expected;
  {name} seen;
  do {{
    expected = old;
    memcpy(&seen, &old, sizeof(seen));
    {name} next = ({name})({combined});
    {word} bits;
    memcpy(&bits, &next, sizeof(bits));
    old = atomicCAS(word, expected, bits);
  }} while (old != expected);
  memcpy(&seen, &old, sizeof(seen));
  return seen;"""


def _body(op: Operation, dtype: DType) -> str:
    if dtype.name in op.native:
        return f"  return {op.function}(p, value);"
    if dtype.name == "int64":  # two's complement: the unsigned operation has the same bits
        word = _WORDS[64]
        return f"  return {op.function}(reinterpret_cast<{word}*>(p), ({word})value);"
    return _loop(op, dtype)


def _fenced(order: str, call: str) -> tuple[str, str]:
    """Suffix of the helper's name for a memory order, and the text of its body."""
    if order not in _FENCES:
        return "", ""
    before = "  __threadfence();\n" if order in _FENCE_BEFORE else ""
    after = "  __threadfence();\n" if order in _FENCE_AFTER else ""
    body = f"{before}  auto old = {call};\n{after}  return old;"
    return f"_{order}", body


@recorded
def atomic(op: str, dtype: DType, order: str = "relaxed") -> Intrinsic:
    """`place = place op value` in one step; gives the value before."""
    operation = OPERATIONS[op]
    assert has_atomic(op, dtype) and order in ORDERS
    kind = dtype.cuda
    plain = f"""
{INLINE} {kind} atomic_{op}({kind}* p, {kind} value) {{
{_body(operation, dtype)}
}}"""
    base = helper(f"atomic_{op}_{dtype.name}", plain)
    suffix, body = _fenced(order, f"atomic_{op}(p, value)")
    head = f"{INLINE} {kind} atomic_{op}{suffix}({kind}* p, {kind} value)"
    text = f"{head} {{\n{body}\n}}" if suffix else ""

    def meaning(m: Machine, place: Any, value: Array) -> Array:
        if order in _FENCE_BEFORE:
            m.fence("memory")
        old = m.atomic(place, np.asarray(value)[None], operation.numpy)[0]
        if order in _FENCE_AFTER:
            m.fence("memory")
        return old

    return Intrinsic(
        f"atomic_{op}_{dtype.name}{suffix}", (Param("place", "updates"), Param("value", "value")),
        f"tl::atomic_{op}{suffix}({{place}}, {{value}})", text, meaning, cost="atomic",
        source=_SOURCE, requires=(base,), includes=(dtype.header,) if dtype.header else (),
        fences=order in _FENCES,
    )  # fmt: skip


_PAIRS = {"float16": "__half2", "bfloat16": "__nv_bfloat162"}
_RED = {"float16": "noftz.v{}.f16x2", "bfloat16": "noftz.v{}.bf16x2", "float32": "v{}.f32"}
"""Suffix of a vector reduction of global memory, by element type, of so many 32-bit words."""


def widest_sum(place: Buffer, features: frozenset[Feature]) -> int:
    """Neighbouring elements of a buffer that one atomic instruction adds to at most: a power of
    two (16 bytes of global memory where chips have vector reductions)."""
    if place.dtype.name in _RED and place.scope is Scope.GLOBAL and Feature.VECTOR_RED in features:
        return 16 // place.dtype.bytes
    return 2 if place.dtype.name in _PAIRS else 1


@recorded
def atomic_add_run(count: int, dtype: DType, *, in_global: bool = False) -> Intrinsic:
    """Add `count` neighbouring registers to `count` neighbouring elements (2, 4 or 8, aligned to
    their size). Each element is added atomically; pairs of 16-bit floats take one instruction.
    `in_global`: the place is global memory, where chips that have vector reductions take one for
    16 bytes (PTX ISA, red)."""
    words = count * dtype.bytes // 4
    if in_global and dtype.name in _RED and words > 1:
        return _vector_red(count, words, dtype)
    kind, pair = dtype.cuda, _PAIRS.get(dtype.name)
    if pair is not None:
        step = f"""  for (int i = 0; i < {count}; i += 2)
    atomicAdd(reinterpret_cast<{pair}*>(p + i), {pair}(value[i], value[i + 1]));"""
    else:
        step = f"  for (int i = 0; i < {count}; ++i) atomicAdd(p + i, value[i]);"
    return _run_record(f"atomic_add_x{count}", count, 1 if pair is None else 2, dtype, f"""
{INLINE} void atomic_add_x{count}({kind}* p, const {kind}* value) {{
#pragma unroll
{step}
}}""")  # fmt: skip


def _vector_red(count: int, words: int, dtype: DType) -> Intrinsic:
    """One `red` of 2 or 4 words that hold `count` elements."""
    kind, name = dtype.cuda, f"red_add_x{count}"
    places = ", ".join(f"%{k + 1}" for k in range(words))
    inputs = ", ".join(f'"r"(w[{k}])' for k in range(words))
    suffix = _RED[dtype.name].format(words)
    if dtype.name == "float32":
        inputs = ", ".join(f'"f"(value[{k}])' for k in range(words))
        taken = ""
    else:
        taken = f"""
  u32 w[{words}];
  memcpy(w, value, sizeof(w));"""
    text = f"""
{INLINE} void {name}({kind}* p, const {kind}* value) {{{taken}
  asm volatile("red.global.add.{suffix} [%0], {{{places}}};" ::"l"(__cvta_generic_to_global(p)),
               {inputs} : "memory");
}}"""
    made = _run_record(name, count, count, dtype, text)
    return replace(made, needs=Feature.VECTOR_RED, otherwise=atomic_add_run(count, dtype))


def _run_record(name: str, count: int, together: int, dtype: DType, text: str) -> Intrinsic:
    """`together`: elements that one instruction adds to, aligned to their size."""

    def meaning(m: Machine, place: Any, value: Any) -> None:
        m.atomic(place, m.load(value, count), np.add, together)

    return Intrinsic(
        f"{name}_{dtype.name}", (Param("place", "updates"), Param("value", "reads")),
        f"tl::{name}({{place}}, {{value}})", text, meaning, cost="atomic",
        source=_SOURCE, includes=(dtype.header,) if dtype.header else (),
    )  # fmt: skip


@recorded
def atomic_load(dtype: DType, order: str = "seq_cst") -> Intrinsic:
    """Read one element that other threads update atomically."""
    kind, word = dtype.cuda, _WORDS[dtype.bits]
    before = "  __threadfence();\n" if order == "seq_cst" else ""
    after = "  __threadfence();\n" if order in _FENCE_AFTER else ""
    text = f"""
{INLINE} {kind} atomic_load_{order}(const {kind}* p) {{
{before}  {word} bits = *reinterpret_cast<const volatile {word}*>(p);
{after}  {kind} value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}}"""

    def meaning(m: Machine, place: Any) -> Array:
        if order == "seq_cst":
            m.fence("memory")
        value = m.atomic(place, None, _exchanged)[0]
        if order in _FENCE_AFTER:
            m.fence("memory")
        return value

    return Intrinsic(
        f"atomic_load_{dtype.name}_{order}", (Param("place", "reads"),),
        f"tl::atomic_load_{order}({{place}})", text, meaning, cost="atomic", source=_SOURCE,
        includes=(dtype.header,) if dtype.header else (), fences=order in _FENCES,
    )  # fmt: skip


def _fence(m: Machine) -> None:
    m.fence("memory")


THREADFENCE = Intrinsic(
    "threadfence", (), "__threadfence()", "", _fence, cost="sync",
    source="CUDA C++ Programming Guide, Memory Fence Functions", fences=True,
)  # fmt: skip
"""What the thread wrote before it, others see before what it writes after it."""


def _rest(m: Machine, ns: Array) -> None:
    del m, ns  # time is not modelled


NANOSLEEP = Intrinsic(
    "nanosleep", (Param("ns", "value"),), "__nanosleep({ns})", "", _rest, cost="sync",
    source="CUDA C++ Programming Guide, Nanosleep Function",
)  # fmt: skip
"""Wait some nanoseconds, to poll less often."""
