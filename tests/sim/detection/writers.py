"""Several threads that write one value to one place: each may read its own write back."""

from __future__ import annotations

import tilelab.language as T
from tests.sim.detection.matrix import BY_HAND, Entry, collect

GLOBAL: list[Entry] = []
SHARED: list[Entry] = []
writers, within = collect(GLOBAL), collect(SHARED)


def _recurrence(shared, ok):
    """Of everybody, each for itself; and of threads that need what others compute."""

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((65,), "int32"), C: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=128):
            P = T.alloc_shared((65,), "int32") if shared else B
            for i in T.serial(65):
                P[i] = 0
            T.sync_threads()
            if ok:
                for i in T.serial(64):
                    P[i + 1] = P[i] + A[i]
            else:
                for i in T.Parallel(64):
                    P[i + 1] = P[i] + A[i]  # SERIES
            for i in T.Parallel(64):
                C[i] = P[i + 1]  # SERIES

    return main


def _reader(shared, writing):
    """All threads read, after `writing` of them have written."""

    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32"), C: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128):
            P = T.alloc_shared((8,), "int32") if shared else B
            tx = T.get_thread_binding()
            if tx < writing:
                P[0] = A[5]
            C[tx] = P[0]  # READER

    return main


def _overwritten(shared, apart, barrier=False):
    """One of the writers writes once more, a value that differs by `apart`."""

    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32"), C: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128):
            P = T.alloc_shared((8,), "int32") if shared else B
            tx = T.get_thread_binding()
            P[0] = A[5]
            if barrier:
                T.sync_threads()
            if tx == 127:
                P[0] = A[5] + apart  # AGAIN
            if barrier:
                C[tx] = P[0]  # AGAIN

    return main


def _updated(shared, ok):
    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32"), C: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=128):
            P = T.alloc_shared((8,), "int32") if shared else B
            tx = T.get_thread_binding()
            P[0] = A[5]
            if ok:
                T.sync_threads()
            if tx == 127:
                T.atomic_add(P[0], 1)  # UPDATE
                C[0] = P[0]

    return main


def _each_time(shared, late, early):
    """Values that differ between threads (by `late`) or iterations (by `early`)."""

    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32"), C: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128):
            P = T.alloc_shared((8,), "int32") if shared else B
            tx = T.get_thread_binding()
            total = T.alloc_var("int32", init=0)
            for i in T.serial(6):
                P[0] = A[5] + i // 4 * tx * late + i * early  # TIMES
                total += P[0]
            C[tx] = total

    return main


def _read_before(shared, ok):
    """A thread reads what was there before it writes what another one writes, too."""

    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32"), C: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=64):
            P = T.alloc_shared((8,), "int32") if shared else B
            tx = T.get_thread_binding()
            if tx == 0:
                P[0] = 3
            T.sync_threads()
            if tx == 0:
                C[0] = P[0]
                P[0] = A[5]
            if ok:
                T.sync_threads()
            if tx == 32:
                P[0] = A[5]  # BEFORE

    return main


def _of_roles(shared, apart):
    """Two warps that never meet."""

    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32"), C: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            P = T.alloc_shared((8,), "int32") if shared else B
            tx = T.get_thread_binding()
            if tx < 32:
                P[0] = A[5]
                T.sync_warp()
                C[tx] = P[0]
                P[0] = A[5]
            else:
                P[0] = A[5] + apart  # ROLES
                T.sync_warp()
                C[tx] = P[0]  # ROLES

    return main


@writers("TL2007", configs=BY_HAND, source=_recurrence, mark="# SERIES")
def recurrence_of_every_thread(ok):
    return _recurrence(False, ok)


@within("TL2007", configs=BY_HAND, source=_recurrence, mark="# SERIES")
def recurrence_of_every_thread_in_a_tile(ok):
    return _recurrence(True, ok)


@writers("TL2007", configs=BY_HAND, source=_reader, mark="# READER")
def reader_that_has_not_written(ok):
    return _reader(False, 128 if ok else 100)


@within("TL2007", configs=BY_HAND, source=_reader, mark="# READER")
def reader_of_a_tile_that_has_not_written(ok):
    return _reader(True, 128 if ok else 100)


@within("TL2007", configs=BY_HAND, source=_reader, mark="# READER")
def lane_that_has_not_written(ok):
    return _reader(True, 128 if ok else 127)


@writers("TL2007", configs=BY_HAND, source=_overwritten, mark="# AGAIN")
def other_value_of_the_last_writer(ok):
    return _overwritten(False, 0 if ok else 1)


@within("TL2007", configs=BY_HAND, source=_overwritten, mark="# AGAIN")
def other_value_of_the_last_writer_in_a_tile(ok):
    return _overwritten(True, 0 if ok else 1)


@writers("TL2007", configs=BY_HAND, source=_overwritten, mark="# AGAIN")
def other_value_behind_the_barrier(ok):
    return _overwritten(False, 0 if ok else 1, barrier=True)


@within("TL2007", configs=BY_HAND, source=_overwritten, mark="# AGAIN")
def other_value_behind_the_barrier_in_a_tile(ok):
    return _overwritten(True, 0 if ok else 1, barrier=True)


@writers("TL2007", configs=BY_HAND, source=_updated, mark="# UPDATE")
def atomic_beside_equal_writes(ok):
    return _updated(False, ok)


@within("TL2007", configs=BY_HAND, source=_updated, mark="# UPDATE")
def atomic_beside_equal_writes_in_a_tile(ok):
    return _updated(True, ok)


@writers("TL2007", configs=BY_HAND, source=_each_time, mark="# TIMES")
def equal_in_the_first_iterations_only(ok):
    return _each_time(False, 0 if ok else 1, 0)


@within("TL2007", configs=BY_HAND, source=_each_time, mark="# TIMES")
def value_of_the_next_iteration(ok):
    return _each_time(True, 0, 0 if ok else 1)


@writers("TL2007", configs=BY_HAND, source=_each_time, mark="# TIMES")
def value_of_the_next_iteration_in_a_tensor(ok):
    return _each_time(False, 0, 0 if ok else 1)


@writers("TL2007", configs=BY_HAND, source=_of_roles, mark="# ROLES")
def warps_that_never_meet(ok):
    return _of_roles(False, 0 if ok else 1)


@within("TL2007", configs=BY_HAND, source=_of_roles, mark="# ROLES")
def warps_that_never_meet_in_a_tile(ok):
    return _of_roles(True, 0 if ok else 1)


@within("TL2007", configs=BY_HAND, source=_read_before, mark="# BEFORE")
def reader_of_the_value_before(ok):
    return _read_before(True, ok)


@writers("TL2007", configs=BY_HAND, source=_read_before, mark="# BEFORE")
def reader_of_the_value_before_in_a_tensor(ok):
    return _read_before(False, ok)


@writers("TL2007")
def recurrence_of_every_block(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((65,), "int32"), C: T.Tensor((4,), "int32")):
        with T.Kernel(4, threads=64) as bx:
            if ok or bx != 2:
                B[0] = 0
                for i in T.serial(64):
                    B[i + 1] = B[i] + A[i]
            C[bx] = B[64]  # BUG

    return main


@writers("TL2007", inputs={"N": 0})
def tensor_overwritten_behind_a_barrier_of_the_grid(ok):
    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), N: T.Tensor((1,), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(4, threads=64) as bx:
            tx = T.get_thread_binding()
            B[0] = A[5]
            if ok or tx < 32:  # who does not wait may write later
                T.sync_threads(1, 64 if ok else 32)
            if tx == 0:
                T.atomic_add(N[0], 1, memory_order="release")
                while T.atomic_load(N[0], memory_order="acquire") < 4:
                    T.evaluate(0)
            T.sync_threads()
            if bx == 3 and tx == 63:
                B[0] = A[6]  # BUG

    return main
