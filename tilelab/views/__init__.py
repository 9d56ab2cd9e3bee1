"""Views: what the compiler decided, as plain data with JSON, a text twin and an SVG picture.

Each view is a frozen data class made by a function from a trace or a program; drawing is kept in
the `*_svg` modules beside it. `show(kernel)` puts the usual ones together.
"""

from tilelab.calls import answer_all
from tilelab.thread.occupancy import Occupancy, occupancy
from tilelab.views.access import AccessView, access_view
from tilelab.views.base import View, from_json
from tilelab.views.fragment import FragmentView, decision_view, fragment_view
from tilelab.views.ladder import LadderStep, LadderView
from tilelab.views.memory import MemoryView, memory_view
from tilelab.views.passes import PassesView, passes_view
from tilelab.views.pipeline import PipelineView, pipeline_view
from tilelab.views.report import ALL_KINDS, DEFAULT_KINDS, MAKERS, Report, show
from tilelab.views.roofline import RooflineView, roofline_view
from tilelab.views.schedule import ScheduleView, TimedUse, schedule_views
from tilelab.views.shared import PATTERNS, SharedView, access_of, shared_view
from tilelab.views.simulation import SimulationReport
from tilelab.views.source import SourceView, source_view
from tilelab.views.timeline import TimelineView, timeline_views

__all__ = [
    "ALL_KINDS",
    "DEFAULT_KINDS",
    "MAKERS",
    "PATTERNS",
    "AccessView",
    "FragmentView",
    "LadderStep",
    "LadderView",
    "MemoryView",
    "Occupancy",
    "PassesView",
    "PipelineView",
    "Report",
    "RooflineView",
    "ScheduleView",
    "SharedView",
    "SimulationReport",
    "SourceView",
    "TimedUse",
    "TimelineView",
    "View",
    "access_of",
    "access_view",
    "decision_view",
    "fragment_view",
    "from_json",
    "memory_view",
    "occupancy",
    "passes_view",
    "pipeline_view",
    "roofline_view",
    "schedule_views",
    "shared_view",
    "show",
    "source_view",
    "timeline_views",
]
answer_all(globals(), [name for name in __all__ if name.islower()], "views")
