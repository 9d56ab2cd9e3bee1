"""The order of passes, with the reason on each line. Every target runs the same list."""

from __future__ import annotations

from tilelab.passes.base import Pass
from tilelab.passes.check_ops import check_ops
from tilelab.passes.choose_order import choose_order
from tilelab.passes.choose_policy import choose_policy
from tilelab.passes.double_buffer import double_buffer
from tilelab.passes.find_roles import find_roles
from tilelab.passes.fold_clear import fold_clear
from tilelab.passes.infer_layouts import infer_layouts
from tilelab.passes.insert_sync import insert_sync
from tilelab.passes.lower import lower_tile_ops
from tilelab.passes.overlap_gemms import overlap_gemms
from tilelab.passes.pack_elements import pack_elements
from tilelab.passes.persist import persist
from tilelab.passes.place_tensors import place_tensors
from tilelab.passes.plan_pipeline import plan_pipeline
from tilelab.passes.plan_shared_memory import plan_shared_memory
from tilelab.passes.recognise_copies import recognise_copies
from tilelab.passes.relax_math import relax_math
from tilelab.passes.settle_loops import settle_loops
from tilelab.passes.software_pipeline import software_pipeline
from tilelab.passes.split_loops import split_loops
from tilelab.passes.warp_specialize import warp_specialize

PASSES: tuple[Pass, ...] = (
    check_ops,  # mistakes are reported on the program as the user wrote it
    place_tensors,  # before anything reads indices: tensors with a layout become views
    pack_elements,  # after layouts of tensors, which count elements: later passes see bytes
    find_roles,  # before planning: whose threads run an op decides how it is lowered
    settle_loops,  # after roles, which say how many threads share a loop; later extents are fixed
    recognise_copies,  # before pipelines are planned: copies can run ahead
    choose_policy,  # before anything asks which instruction a gemm takes
    relax_math,  # on whole statements, whose uses are easily found; before plans refer to them
    fold_clear,  # needs each gemm's instruction; before plans, which refer to the gemms
    plan_pipeline,  # on whole ops: "this copy runs ahead" is one property of one op
    choose_order,  # plans say which operands neighbouring tiles share
    persist,  # before roles, so that each of them gets a loop over tiles of its own
    warp_specialize,  # realises TMA plans; before layouts, so they see the final buffers
    double_buffer,  # before overlap-gemms only by name: a loop has one product or two
    overlap_gemms,  # on the consumer's loop as it is: its waits say where each operand is needed
    software_pipeline,  # realises cp.async plans, and turns what is left into plain loops
    split_loops,  # on final loops: what a pipeline peeled off stays as it is
    infer_layouts,  # needs the final ops and the number of computing threads
    lower_tile_ops,  # tile IR -> thread IR
    plan_shared_memory,  # nothing allocates after it
    insert_sync,  # last: needs every access of every thread, and which buffers share bytes
)
