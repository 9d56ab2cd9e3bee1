"""Looking at programs from outside: pictures of layouts, counts of work (`tilelang.tools`)."""

from tilelab.calls import answer_all
from tilelab.tools.analyzer import Analyzer
from tilelab.tools.plot_layout import plot_layout

__all__ = ["Analyzer", "plot_layout"]
answer_all(globals(), __all__, "tools")
