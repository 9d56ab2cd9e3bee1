"""Names of the peer's language, by group: what tilelab knows of without supporting it (yet).

A data table. Names that tilelab has are found as attributes first and never looked up here.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from tilelab.errors import TileNameError

_TEXT = {
    "launching and clusters": """
        Kernel use_swizzle get_thread_binding ClusterKernel block_rank_in_cluster
        PersistentTileScheduler import_source thread_binding get_block_binding launch_thread
        get_warp_idx_sync annotate_min_blocks_per_sm CUDASourceCodeKernel get_lane_idx
        get_warp_group_idx get_warp_idx BaseTileScheduler KernelLaunchFrame env_thread
        get_block_bindings get_block_extent get_block_extents get_thread_bindings
        get_thread_extent get_thread_extents
    """,
    "memory and tensor types": """
        Tensor alloc_fragment alloc_shared empty alloc_var alloc_barrier alloc_local alloc_tmem
        alloc_cluster_barrier reshape alloc_global Buffer SharedBuffer alloc_buffer make_tensor
        ptr view alloc_reducer FragmentBuffer StridedTensor decl_buffer match_buffer
        deallocate_tmem alloc_tcgen05_smem_desc alloc_wgmma_desc sblock_alloc_buffer LocalBuffer
        Ptr alloc_descriptor alloc_tcgen05_instr_desc alloc_tcgen05_instruction_desc allocate
        buffer buffer_decl make_tensor_from_addr
    """,
    "data movement": """
        copy clear fill tma_copy access_ptr ptx_cp_async cp_async_barrier_noinc
        ptx_wait_group ptx_commit_group index_to_coordinates async_copy tvm_access_ptr address_of
        tma_load tma_store_wait copy_cluster create_tma_descriptor ldg128 ldg256 ldg64 transpose
        __ldg ldg32 lds128 lds32 lds64 stg128 stg256 stg32 stg64 sts128 sts32 sts64
        tma_gather4 tma_gather4_bytes tma_scatter4 tma_store_arrive ptx_cp_async_barrier
        ptx_cp_async_bulk tma_load_2sm
    """,
    "matrix products": """
        gemm GemmWarpPolicy dp4a gemm_sp mma_gemm_blockscaled
        initialize_wgmma_descriptor ptx_wgmma_ss warpgroup_arrive warpgroup_commit_batch
        warpgroup_fence_operand increase_descriptor_offset mma_fill mma_store
        ptx_ldmatrix ptx_mma ptx_mma_block_scale ptx_mma_sm70 ptx_mma_sp ptx_wgmma_rs
        ptx_wgmma_sp_rs ptx_wgmma_sp_ss tcgen05_gemm_sp wgmma_gemm_sp
    """,
    "reductions and scans": """
        reduce_sum reduce_max reduce_absmax comm_reducer tvm_thread_allreduce cumsum
        finalize_reducer reduce_min reduce_abssum reduce_bitand cummax reduce_bitor reduce_bitxor
        reducer_init reducer_update all_of any_of warp_reduce_bitand warp_reduce_bitor
        warp_reduce_max warp_reduce_min warp_reduce_sum reduce
    """,
    "scalar functions": """
        ceildiv if_then_else exp2 max infinity min log2 floordiv cast exp reinterpret clamp
        floormod rsqrt shift_left log Cast ceil rng_init rng_rand sigmoid Select __cos __exp
        __exp10 __log __log10 __log2 __sin __tan cos round sin abs atan bitwise_xor cosh erf exp10
        floor fmod isfinite log10 nearbyint pow sinh sqrt tan tanh trunc __ffs __fns abs2 add2
        align_up extract_lane fast_rcp fma2 ieee_add ieee_fdiv ieee_fmaf ieee_frcp ieee_frsqrt
        ieee_fsqrt ieee_mul ieee_sub max2 min2 mul2 rng_rand_float shift_right sub2 acos acosh
        asin asinh atan2 atanh bitwise_and bitwise_not bitwise_or cdiv clz copysign fabs hypot
        isinf isnan isnullptr ldexp likely log1p max_value min_value nextafter popcount
        q_multiply_shift q_multiply_shift_per_axis truncdiv truncmod
    """,
    "loops": """
        Pipelined Parallel serial unroll vectorized Persistent Serial parallel grid While Unroll
        Vectorized break_loop continue_loop loop_break
    """,
    "layouts and annotations": """
        annotate_layout Layout disable_warp_group_reg_alloc attr Fragment WSID WSPipeline WSRole
        WSSchedule WSScope WSSync annotate_ws_schedule ws_op annotate_consumer_reg_alloc
        annotate_producer_reg_dealloc no_set_max_nreg annotate_l2_hit_ratio sblock_attr
        annotate_safe_value WSSyncKind annotate_compile_flags annotate_pass_configs
        annotate_restrict_buffers WSInstr WSOpRef make_blockscaled_gemm_layout
    """,
    "synchronisation and warp roles": """
        mbarrier_wait_parity mbarrier_arrive barrier_arrive barrier_wait sync_threads set_max_nreg
        ws fence_proxy_async sync_grid any_sync clc_get_first_ctaid_x clc_is_canceled
        clc_try_cancel_multicast mbarrier_arrive_expect_tx tvm_warp_shuffle pdl_sync cluster_sync
        pdl_trigger ptx_arrive_barrier shuffle_elect tvm_storage_sync mbarrier_expect_tx sync_warp
        activemask all_sync ballot ballot_sync cluster_arrive cluster_wait match_all_sync
        match_any_sync named_barrier_arrive ptx_fence_barrier_init ptx_init_barrier_thread_count
        shfl_sync syncthreads_and syncthreads_count syncthreads_or WarpSpecialize
        WarpSpecializeFrame clc_get_first_ctaid_y clc_get_first_ctaid_z clc_try_cancel
        cluster_arrive_relaxed create_barriers dec_max_nreg inc_max_nreg
        ptx_arrive_barrier_expect_tx ptx_arrive_cluster_barrier ptx_wait_barrier shfl_down shfl_up
        shfl_xor sync_global tvm_warp_activemask tvm_warp_shuffle_down tvm_warp_shuffle_up
    """,
    "atomics": """
        atomic_add atomic_addx4 atomic_load atomic_store atomic_addx2 atomic_max atomic_min
        atomic_or
    """,
    "control and debugging": """
        call_extern assume evaluate device_assert type_annotation call_intrin print If Then let
        thread_return Assert Else Let bind call_pure_extern ret undef
    """,
    "functions": """
        prim_func const dtype dynamic macro symbolic Var func_attr Ref JITFunc PrimFunc SizeVar
        arg func_name func_ret get_let_value has_let_value inline meta_class
    """,
    "element types": """
        float32 float16 int32 bfloat16 uint32 float float8_e4m3fn int8 uint8 uint16 bool
        float4_e2m1fn uint64 int4 int16 int tfloat32 uint int64 float8_e5m2 float8_e4m3
        float4_e2m1_unpacked float64 float8_e8m0fnu float4_e2m1fnx2 float8_e4m3fnuz float32x2
        float8_e4m3fnx8 float8_e5m2fnuz float16x2 float32x4 float32x8 bfloat16x2 short long half
        float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3b11fnuz boolean
    """,
    "tcgen05 (Blackwell)": """
        tcgen05_gemm tcgen05_mma_arrive tcgen05_cp_warpx4 tcgen05_gemm_blockscaled
        tcgen05_sf_warp_transpose tcgen05_after_thread_sync tcgen05_before_thread_sync
        TCGEN05DescriptorParams TCGEN05TensorCoreIntrinEmitter compute_umma_descriptor
        initialize_tcgen05_descriptor ptx_tcgen05_mma_blockscaled_ss ptx_tcgen05_mma_ss
        ptx_tcgen05_mma_ts tcgen05_mma tcgen05_mma_blockscaled
    """,
    "the peer's low-level IR": """
        sblock reads writes handle target CallEffectKind Range TVMBackendAllocWorkspace
        TVMBackendFreeWorkspace anylist_getitem anylist_resetitem anylist_setitem_call_cpacked
        anylist_setitem_call_packed axis block_name_suffix_context buffer_store buffer_var
        call_cpacked call_cpacked_lowered call_kernel call_llvm_intrin call_llvm_pure_intrin
        call_packed call_packed_lowered end_profile_intrinsic get_active_lane_mask
        handle_add_byte_offset ignore_loop_partition index_map init iter_var
        llvm_lookup_intrinsic_id lookup_param meta_var start_profile_intrinsic tvm_bmma_sync
        tvm_call_cpacked tvm_call_cpacked_lowered tvm_call_packed tvm_call_packed_lowered
        tvm_fill_fragment tvm_load_matrix_sync tvm_mma_sync tvm_stack_alloca tvm_stack_make_array
        tvm_stack_make_shape tvm_store_matrix_sync tvm_struct_get tvm_struct_set
        tvm_thread_invariant tvm_throw_last_error tvm_tuple var vectorcombine vectorhigh vectorlow
        void vscale where Broadcast Ramp Shuffle PrimExpr Add And BufferLoad Call CommReducer Div
        EQ FloatImm FloorDiv FloorMod GE GT IntImm IterVar LE LT Max Min Mod Mul NE Not Or
        ProducerLoad Reduce StringImm Sub broadcast ramp
    """,
    "instruction emitters": """
        SparseTensorCoreIntrinEmitter TensorCoreIntrinEmitter TensorCoreIntrinEmitterSM120
        TensorCoreIntrinEmitterWithLadderTransform WGMMADescriptorParams
        WGMMATensorCoreIntrinEmitter WGSparseTensorCoreIntrinEmitter compute_gmma_descriptor
        get_ldmatrix_offset get_mma_micro_size get_swizzle_layout make_mma_swizzle_layout
        mma_store_index_map bfloat16x4 bfloat16x8 bfloat16x16 bfloat16x32 bfloat16x64 AnyDType
        get_tvm_dtype is_float4_e2m1fn is_float4_e2m1_unpacked is_float4 is_f8f6f4_family
        validate_gemm_ab_dtypes Any
    """,
    "names of a later version": """
        PartialFragment annotate_ws_pipeline_depth fma fmul gemm_blockscaled get_cluster_dims
        get_cluster_extent get_cluster_extents get_cluster_id get_cluster_ids get_cluster_size
    """,
}
GROUP_OF: dict[str, str] = {name: group for group, text in _TEXT.items() for name in text.split()}
_VECTOR = re.compile(r"(b?float|int|uint|tfloat)\d+[a-z0-9_]*x\d+")


_INSTEAD = {
    "launching and clusters": "a kernel is `with T.Kernel(...)`, its indices T.get_thread_binding",
    "memory and tensor types": "parameters are T.Tensor, T.StridedTensor and T.ptr; memory on the "
    "chip is T.alloc_shared, alloc_fragment, alloc_local and alloc_var",
    "data movement": "T.copy moves tiles between any two memories; T.tma_copy and T.async_copy go "
    "on at once",
    "matrix products": "T.gemm takes the chip's matrix instruction; T.wgmma_gemm goes on at once",
    "scalar functions": "operators and functions work on single elements, in T.Parallel loops; the "
    "compiler pairs them",
    "layouts and annotations": "roles are written with T.ws and barriers, or found by the compiler "
    "in T.Pipelined loops",
    "control and debugging": "write the Python statement: if, while, for, assert",
    "functions": "write a function under @T.prim_func, @T.macro or @tilelang.jit",
    "element types": "cast to a type that dir(T) lists, or keep the bits as T.uint8 and decode",
    "vector types": "use a slice A[i:i + n], or a T.vectorized loop over elements",
    "tcgen05 (Blackwell)": "these chips have no tensor memory; use T.gemm",
    "the peer's low-level IR": "write the Python expression or statement",
    "instruction emitters": "T.gemm takes the chip's matrix instruction",
}
"""What does the work of a group's missing names."""


_BY_NAME = {
    **{name: f"write `a {op} b`" for name, op in (
        ("Add", "+"), ("Sub", "-"), ("Mul", "*"), ("Div", "/"), ("FloorDiv", "//"), ("Mod", "%"),
        ("FloorMod", "%"), ("EQ", "=="), ("NE", "!="), ("LT", "<"), ("LE", "<="), ("GT", ">"),
        ("GE", ">="),
    )},
    "Max": "write T.max(a, b)", "Min": "write T.min(a, b)",
    "fma": "write a * b + c: the chip's compiler fuses them", "If": "write `if condition:`",
    "While": "write `while condition:`", "Assert": "write `assert condition`",
    "let": "write `name = value`", "bind": "write `name = value`",
}  # fmt: skip
"""What to write in place of single names."""
_ELSEWHERE = {
    "sum": "T.reduce_sum(tile, result, dim=1)",
    "mean": "T.reduce_sum(tile, result, dim=1)",
    "amax": "T.reduce_max(tile, result, dim=1)",
    "softmax": "T.reduce_max, T.exp2 and T.reduce_sum",
    "maximum": "T.max(a, b)",
    "minimum": "T.min(a, b)",
    "where": "T.if_then_else(condition, a, b)",
    "relu": "T.max(x, 0)",
    "matmul": "T.gemm(A, B, C)",
    "dot": "T.gemm(A, B, C)",
    "mma": "T.gemm(A, B, C)",
    "zeros": "T.alloc_fragment(shape, dtype) and T.clear(tile)",
    "full": "T.alloc_fragment(shape, dtype) and T.fill(tile, value)",
    "load": "T.copy(A[i, j], tile), or A[i, j] for one element",
    "store": "T.copy(tile, A[i, j]), or A[i, j] = x for one element",
    "program_id": "`with T.Kernel(grid) as bx`",
    "blockIdx": "`with T.Kernel(grid) as bx`",
    "threadIdx": "T.get_thread_binding(0)",
    "thread_id": "T.get_thread_binding(0)",
    "arange": "`for i in T.Parallel(n)`",
    "range": "T.serial(n), or Python's range(n)",
    "For": "T.serial(n)",
    "syncthreads": "T.sync_threads()",
    "barrier": "T.sync_threads()",
    "shared": "T.alloc_shared(shape, dtype)",
    "shared_memory": "T.alloc_shared(shape, dtype)",
    "fragment": "T.alloc_fragment(shape, dtype)",
    "zeros_like": "T.clear(tile)",
    "to": "T.cast(x, dtype)",
    "astype": "T.cast(x, dtype)",
    "tensor": "T.Tensor(shape, dtype)",
    "square": "x * x",
    "len": "the extent, such as A.shape[0]",
    "jit": "@tilelang.jit",
}
"""What other tile languages, numpy and torch call it."""


def name_error(name: str, existing: Iterable[str]) -> TileNameError:
    """The error for `T.name`: known and unsupported (TL1005), or unknown with the near names."""
    group = GROUP_OF.get(name) or ("vector types" if _VECTOR.fullmatch(name) else None)
    hint = f"write {_ELSEWHERE[name]}" if name in _ELSEWHERE else _BY_NAME.get(name, "")
    if group is not None:
        return TileNameError(
            f"T.{name} is part of the language ({group}) and not supported by tilelab yet",
            code="TL1005",
            hint=hint or _INSTEAD.get(group, "docs/differences.md lists what is supported"),
        )
    near = difflib.get_close_matches(name, {*existing, *GROUP_OF}, n=3, cutoff=0.6)
    if near and not hint:
        hint = "did you mean " + " or ".join(f"T.{n}" for n in near) + "?"
    return TileNameError(
        f"T has no name {name!r}", code="TL1007", hint=hint or "dir(T) lists the names"
    )
