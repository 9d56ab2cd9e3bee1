"""Programs written by hand, for tests of the launcher alone: CUDA text and the thread IR record
that describes its launch (the body is not read by the launcher)."""

from __future__ import annotations

from tilelab import dtypes
from tilelab.ir import Buffer, ScalarParam, Scope, Seq, TensorParam, Var, ceildiv
from tilelab.runtime import driver, nvrtc
from tilelab.runtime.arguments import Signature
from tilelab.runtime.launch import Launcher
from tilelab.runtime.module import Variant
from tilelab.thread.nodes import Alignment, Program, TensorMap, ThreadKernel


def tensor(name: str, shape: tuple, dtype: str = "float32", strides: tuple | None = None) -> Buffer:
    return Buffer(name, shape, dtypes.as_dtype(dtype), Scope.GLOBAL, strides)


def kernel(name: str, grid: tuple, threads: int, **fields) -> ThreadKernel:
    """A ThreadKernel with what the launcher reads."""
    facts = dict(
        maps=(), tensors=(), scalars=(), user_threads=(threads,), block_vars=(), thread_vars=(),
        locals=(), shared=(), dynamic_bytes=0, static_bytes=0, body=Seq(()),
    )  # fmt: skip
    facts.update(fields)
    return ThreadKernel(name=name, grid=grid, threads=(threads,), **facts)


class Handmade:
    """A program with a Launcher of its own; counts how often it is built."""

    def __init__(self, cuda: str, program: Program, general: Program | None = None) -> None:
        self.cuda = cuda
        self.programs = {True: program, False: general or program}
        self.signature = Signature(program.name, program.params, program.sizes, program.outputs)
        self.built: list[bool] = []
        self.launcher = Launcher(self.signature, self.build)

    def build(self, device: int, aligned: bool) -> Variant:
        self.built.append(aligned)
        program = self.programs[aligned]
        cubin = nvrtc.compile_cubin(self.cuda, driver.device_info(device).target.arch)
        return Variant(program, cubin, tuple(k.name for k in program.kernels))

    def __call__(self, *args):
        from tilelab.runtime.launch import MISS

        result = self.launcher.quick(args)
        if result is not MISS:
            return result
        binding = self.signature.bind(args)
        device = int((binding.device or "cuda:0").partition(":")[2] or 0)
        return self.launcher.run(binding, device)


SCALE = """
extern "C" __global__ void scale(const float* a, float* c, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] * factor;
}
"""


def scale() -> Handmade:
    """c = a * factor, for any n; c is allocated."""
    n, factor = Var("n", lo=0, role="size"), Var("factor", dtypes.FLOAT32, role="scalar")
    a, c = tensor("A", (n,)), tensor("C", (n,))
    part = kernel("scale", (ceildiv(n, 128),), 128, tensors=(a, c), scalars=(factor, n))
    params = (TensorParam(a), ScalarParam(factor), TensorParam(c))
    return Handmade(SCALE, Program("scale", params, (n,), (part,), (2,)))


ADD = """
extern "C" __global__ void add(const float* a, const float* b, float* c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  c[i] = a[i] + b[i];
}
"""


def add(count: int = 1024) -> Handmade:
    """c = a + b of a fixed size; c is allocated."""
    a, b, c = (tensor(name, (count,)) for name in "ABC")
    part = kernel("add", (count // 128,), 128, tensors=(a, b, c))
    params = tuple(TensorParam(t) for t in (a, b, c))
    return Handmade(ADD, Program("add", params, (), (part,), (2,)))


TWO = """
extern "C" __global__ void square(const float* a, float* w) {
  w[threadIdx.x] = a[threadIdx.x] * a[threadIdx.x];
}
extern "C" __global__ void total(const float* w, float* c) {
  float sum = 0;
  for (int i = 0; i < 64; ++i) sum += w[i];
  c[threadIdx.x] = sum;
}
"""


def two_kernels() -> Handmade:
    """Two launches with a workspace between them."""
    a, c, w = tensor("A", (64,)), tensor("C", (64,)), tensor("w", (64,))
    first = kernel("square", (1,), 64, tensors=(a, w))
    second = kernel("total", (1,), 64, tensors=(w, c))
    params = (TensorParam(a), TensorParam(c))
    program = Program("two", params, (), (first, second), (1,), workspaces=(w,))
    return Handmade(TWO, program)


# The TMA instructions of this test are written out here: it tests descriptors, not codegen.
TMA = """
#include <cuda_fp16.h>
struct alignas(64) TensorMap { char bytes[128]; };
extern "C" __global__ void tile(const __grid_constant__ TensorMap A_map, half* c, int x, int y) {
  extern __shared__ __align__(1024) unsigned char raw[];
  __shared__ alignas(8) unsigned long long bar;
  unsigned bar_at = (unsigned)__cvta_generic_to_shared(&bar);
  unsigned base = (unsigned)__cvta_generic_to_shared(raw);
  unsigned pad = (1024 - base % 1024) % 1024;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar_at));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 ::"r"(bar_at), "r"(64 * 64 * 2));
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4}], [%2];"
                 ::"r"(base + pad), "l"(&A_map), "r"(bar_at), "r"(x), "r"(y) : "memory");
  }
  __syncthreads();
  asm volatile("{\\n.reg .pred p;\\nW:\\n"
               "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\\n"
               "@p bra D;\\nbra W;\\nD:\\n}\\n" ::"r"(bar_at) : "memory");
  for (int i = threadIdx.x; i < 64 * 64; i += blockDim.x) {
    int row = i / 64, column = i % 64;
    int at = row * 128 + SWIZZLED(row, column);
    c[i] = *(half*)(raw + pad + at);
  }
}
"""


def tma_tile(swizzle: int, dynamic: bool = False, strides: bool = False) -> Handmade:
    """The 64 x 64 tile of A at (y, x), read by TMA; past A's end it is 0."""
    m, k = Var("M", lo=0, role="size"), Var("K", lo=0, role="size")
    shape = (m, k) if dynamic else (100, 120)
    pitch = Var("pitch", lo=0, role="size")
    a = tensor("A", shape, "float16", (pitch, 1) if strides else None)
    c = tensor("C", (64, 64), "float16")
    x, y = Var("x", role="scalar"), Var("y", role="scalar")
    spec = TensorMap("A_map", a, (1, 0), (64, 64), swizzle)
    part = kernel("tile", (1,), 128, maps=(spec,), tensors=(c,), scalars=(x, y),
                  dynamic_bytes=64 * 64 * 2 + 1024, static_bytes=8)  # fmt: skip
    params = (TensorParam(a), ScalarParam(x), ScalarParam(y), TensorParam(c))
    sizes = ((m, k) if dynamic else ()) + ((pitch,) if strides else ())
    formula = {
        0: "((column) * 2)",
        128: "(((((column) * 2 / 16) ^ ((row) % 8)) * 16) + (column) * 2 % 16)",
    }[swizzle]
    cuda = f"#define SWIZZLED(row, column) {formula}\n{TMA}"
    needs = (Alignment(a, 16),)
    return Handmade(cuda, Program("tile", params, sizes, (part,), (3,), aligned=needs))
