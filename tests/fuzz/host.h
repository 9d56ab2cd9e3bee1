// Runs the CUDA text of drawn programs on a CPU: each CUDA thread is a fiber, a barrier or a
// shuffle is where fibers change. Needs no GPU; text with assembly is not for it.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <type_traits>
#include <ucontext.h>
#include <vector>
#include <cuda_runtime_api.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#undef __global__
#undef __device__
#undef __forceinline__
#undef __launch_bounds__
#undef __shared__
#undef __grid_constant__
#undef __restrict__
#undef __align__
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__
#define __grid_constant__
#define __restrict__
#define __align__(n) alignas(n)

static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;
alignas(1024) unsigned char buf_dyn_shmem[1 << 18];

struct Fiber {
  ucontext_t context;
  std::vector<char> stack;
  uint3 index;
  bool done;
};
static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static int running;
static std::function<void()> body;

static void leave() { swapcontext(&fibers[running].context, &scheduler); threadIdx = fibers[running].index; }
static void enter() { body(); fibers[running].done = true; leave(); }

// ---- meeting points: a counter that everyone waits for --------------------------------------

struct Meeting { long arrived = 0; };
static Meeting meetings[64];
static Meeting warps[64];

static void meet(Meeting& m, long count) {
  long goal = (m.arrived / count + 1) * count;
  ++m.arrived;
  while (m.arrived < goal) leave();
}
inline void __syncthreads() { meet(meetings[0], blockDim.x * blockDim.y * blockDim.z); }
inline int flat_thread() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
static unsigned char slots[64][32][16];

template <typename T> T exchanged(T value, int source) {
  const int me = flat_thread(), warp = me / 32, lane = me % 32;
  const int lanes = std::min(32, int(blockDim.x * blockDim.y * blockDim.z) - warp * 32);
  memcpy(slots[warp][lane], &value, sizeof(T));
  meet(warps[warp], lanes);
  T got;
  memcpy(&got, slots[warp][source & 31], sizeof(T));
  meet(warps[warp], lanes);
  return got;
}
inline int lane_now() { return flat_thread() % 32; }
template <typename T> T __shfl_xor_sync(unsigned, T v, int mask, int = 32) { return exchanged(v, lane_now() ^ mask); }
template <typename T> T __shfl_sync(unsigned, T v, int from, int = 32) { return exchanged(v, from); }
template <typename T> T __shfl_up_sync(unsigned, T v, int by, int = 32) {
  T got = exchanged(v, lane_now() - by < 0 ? lane_now() : lane_now() - by);
  return got;
}
template <typename T> T __shfl_down_sync(unsigned, T v, int by, int = 32) {
  T got = exchanged(v, lane_now() + by > 31 ? lane_now() : lane_now() + by);
  return got;
}
inline void __syncwarp(unsigned = 0) { exchanged(0, 0); }

// ---- what the device has and a CPU has not ----------------------------------------------------

using std::isfinite; using std::isinf; using std::isnan;
template <typename A, typename B> auto min(A a, B b) -> std::common_type_t<A, B> {
  using C = std::common_type_t<A, B>; return C(b) < C(a) ? C(b) : C(a);
}
template <typename A, typename B> auto max(A a, B b) -> std::common_type_t<A, B> {
  using C = std::common_type_t<A, B>; return C(a) < C(b) ? C(b) : C(a);
}
inline float __int_as_float(int v) { float f; memcpy(&f, &v, 4); return f; }
inline int __float_as_int(float v) { int f; memcpy(&f, &v, 4); return f; }
inline double __longlong_as_double(long long v) { double f; memcpy(&f, &v, 8); return f; }
template <typename T> T atomicAdd(T* p, T v) { T old = *p; *p = T(old + v); return old; }
template <typename T> T atomicMax(T* p, T v) { T old = *p; if (v > old) *p = v; return old; }
template <typename T> T atomicMin(T* p, T v) { T old = *p; if (v < old) *p = v; return old; }

static void launch(dim3 grid, dim3 block, std::function<void()> kernel) {
  blockDim = block; gridDim = grid; body = kernel;
  const int count = block.x * block.y * block.z;
  for (unsigned z = 0; z < grid.z; ++z) for (unsigned y = 0; y < grid.y; ++y) for (unsigned x = 0; x < grid.x; ++x) {
    blockIdx = make_uint3(x, y, z);
    memset(buf_dyn_shmem, 0xA5, sizeof(buf_dyn_shmem));
    fibers.clear(); fibers.resize(count);
    for (auto& m : meetings) m = Meeting();
    for (auto& m : warps) m = Meeting();
    for (int i = 0; i < count; ++i) {
      Fiber& f = fibers[i];
      f.stack.resize(1 << 16); f.done = false;
      f.index = make_uint3(i % block.x, i / block.x % block.y, i / (block.x * block.y));
      getcontext(&f.context);
      f.context.uc_stack.ss_sp = f.stack.data(); f.context.uc_stack.ss_size = f.stack.size();
      f.context.uc_link = &scheduler;
      makecontext(&f.context, enter, 0);
    }
    int left = count; long rounds = 0;
    while (left > 0) {
      if (++rounds > 2000000) { fprintf(stderr, "deadlock\n"); exit(3); }
      left = 0;
      for (int i = 0; i < count; ++i) {
        if (fibers[i].done) continue;
        ++left; running = i; threadIdx = fibers[i].index;
        swapcontext(&scheduler, &fibers[i].context);
      }
    }
  }
}
