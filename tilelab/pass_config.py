"""Keys of `pass_configs`: every name of the peer, and which of them change anything here.

Hides the check of keys and the once-per-process notice about keys without effect.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Mapping
from typing import Any

from tilelab.errors import TileValueError, warn
from tilelab.tile.structure import SWITCHES

_TL_KEYS = """
    ast_print_enable config_index_bitwidth debug_merge_shared_memory_allocations
    device_compile_flags disable_buffer_init_check disable_data_race_check disable_loop_unswitching
    disable_out_of_bound_warning disable_prelower_semantic_check disable_safe_memory_legalize
    disable_shared_memory_reuse disable_shuffle_elect disable_thread_storage_sync disable_tma_lower
    disable_vectorize_256 disable_warp_specialized disable_wgmma dump_ir_dir emit_line_directives
    enable_aggressive_shared_memory_merge enable_async_copy enable_dump_ir enable_fast_math
    enable_lower_ldgstg enable_lower_ldgstg_predicated enable_reducer_plan_verbose
    enable_vectorize_planner_verbose force_let_inline if_stmt_binding_inline_replayable_binds
    layout_cost_model layout_visualization_enable layout_visualization_formats
    loop_unswitching_allow_non_trivial_else pass_profile pass_profile_threshold_ms plain_pipeline
    stamp_schedule
    disable_setmaxnreg ptxas_register_usage_level reducer_force_baseline simplify
    storage_rewrite_detect_inplace
"""
_TIR_KEYS = """
    add_lower_pass disable_cse disable_storage_rewrite disable_vectorize enable_debug
    enable_equiv_terms_in_cse merge_static_smem noalias simplify use_async_copy
"""
_RENAMED = {"disable_safe_memory_legalize": "DISABLE_SAFE_MEMORY_ACCESS"}


def _members() -> dict[str, str]:
    keys = [*_TL_KEYS.split(), *(switch.key.removeprefix("tl.") for switch in SWITCHES)]
    found = {f"TL_{_RENAMED.get(k, k.upper())}": f"tl.{k}" for k in keys}
    found.update({f"TIR_{k.upper()}": f"tirx.{k}" for k in _TIR_KEYS.split()})
    found["CUDA_KERNELS_OUTPUT_DIR"] = "cuda.kernels_output_dir"
    return found


PassConfigKey = enum.Enum("PassConfigKey", _members(), type=str, module=__name__)  # type: ignore[misc]
PassConfigKey.__doc__ = "Keys of pass_configs; the plain string of a key is accepted as well."

ACTIVE = frozenset(
    f"tl.{key}"
    for key in (
        "device_compile_flags", "disable_safe_memory_legalize", "disable_setmaxnreg",
        "disable_shared_memory_reuse", "disable_thread_storage_sync", "disable_tma_lower",
        "disable_warp_specialized", "disable_wgmma", "enable_aggressive_shared_memory_merge",
        "enable_fast_math", "plain_pipeline", "ptxas_register_usage_level", "stamp_schedule",
    )
) | {switch.key for switch in SWITCHES}  # fmt: skip
_KEYS = frozenset(_members().values())
_told: set[str] = set()


def normalise(pass_configs: Mapping[Any, Any] | None) -> dict[str, Any]:
    """pass_configs with plain string keys. TileValueError (TL1202) for a key that no version
    knows; a warning, once for each key, for one that changes nothing here."""
    result: dict[str, Any] = {}
    for key, value in (pass_configs or {}).items():
        name = str(getattr(key, "value", key))
        if name not in _KEYS and not name.startswith(("tl.simplify.", "tir.", "tirx.")):
            near = difflib.get_close_matches(name, _KEYS, n=2)
            raise TileValueError(
                f"pass_configs has the unknown key {name!r}",
                code="TL1202",
                hint=f"did you mean {' or '.join(near)}?" if near else "see tilelab.PassConfigKey",
            )
        if name not in ACTIVE and name not in _told:
            _told.add(name)
            warn(f"pass_configs: {name} has no effect in tilelab")
        result[name] = value
    return result
