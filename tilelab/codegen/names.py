"""Names in the CUDA text: the user's own, made into valid identifiers and kept apart.

Two variables may share a name where their scopes do not overlap, so both roles of a kernel may
call their loop variable `ko`, as the user did.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager

from tilelab.ir import Node

_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
char32_t class compl concept const consteval constexpr constinit const_cast continue co_await
co_return co_yield decltype default delete do double dynamic_cast else enum explicit export extern
false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr
operator or or_eq private protected public register reinterpret_cast requires return short signed
sizeof static static_assert static_cast struct switch template this thread_local throw true try
typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
main std tl half half2 float2 float3 float4 double2 int2 int3 int4 uint2 uint3 uint4 uchar4 dim3
char2 char4 short2 short4 ushort2 ushort4 longlong2 ulonglong2 size_t
threadIdx blockIdx blockDim gridDim warpSize TensorMap buf_dyn_shmem i8 u8 u16 u32 i64 u64
min max abs fabs fabsf sqrt sqrtf rsqrt rsqrtf exp expf exp2 exp2f exp10f log logf log2 log2f
log10f log1pf sin sinf cos cosf tan tanf tanh tanhf sinhf coshf asinf acosf atanf atan2f erf erff
pow powf floor floorf ceil ceilf round roundf rint rintf trunc truncf fma fmaf fmin fminf fmax
fmaxf fmod fmodf isnan isinf isfinite signbit copysign clock clock64 printf assert memcpy memset
atomicAdd atomicMin atomicMax atomicExch atomicCAS atomicAnd atomicOr atomicXor atomicSub
"""
RESERVED = frozenset(_WORDS.split())
"""Words that a generated identifier must not be: C++, CUDA's built-ins and our own types."""


def identifier(name: str) -> str:
    """`name` with every character that CUDA does not take replaced."""
    text = re.sub(r"[^A-Za-z0-9_]", lambda m: f"_u{ord(m[0]):x}" if ord(m[0]) > 127 else "_", name)
    text = re.sub(r"^(?=[0-9]|$)", "v", text)
    return "v" + text if text.startswith("__") else text


class Names:
    """Names of variables and buffers by identity, in nested scopes."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._scopes: list[set[str]] = [set(taken)]
        self._given: dict[int, str] = {}
        self._kept: list[Node] = []  # ids stay valid only while the nodes live

    def declare(self, node: Node, wish: str) -> str:
        """Give `node` the name `wish`, or wish_1, wish_2, ... when it is taken here."""
        name = self.reserve(wish)
        self._given[id(node)] = name
        self._kept.append(node)
        return name

    def reserve(self, wish: str) -> str:
        """A name that nothing else uses in this scope, near `wish`."""
        base = name = identifier(wish)
        count = 0
        while name in RESERVED or any(name in scope for scope in self._scopes):
            count += 1
            name = f"{base}_{count}"
        self._scopes[-1].add(name)
        return name

    def of(self, node: Node) -> str | None:
        """The name given to `node`, or None."""
        return self._given.get(id(node))

    @contextmanager
    def scope(self) -> Generator[None, None, None]:
        """Names declared inside are free again afterwards."""
        self._scopes.append(set())
        try:
            yield
        finally:
            self._scopes.pop()
