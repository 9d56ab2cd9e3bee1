"""`tilelab bench`: the figures of docs/benchmarks.md, each with its peers in the same run.

Rank 7. Hides how a peer that cannot share the process is run. A peer that is not importable has
no column; nothing is filled in from memory.
"""

from tilelab.bench.command import add_options, follow, main
from tilelab.bench.run import run
from tilelab.bench.suites import SUITES
from tilelab.bench.table import Row, Table

__all__ = ["SUITES", "Row", "Table", "add_options", "follow", "main", "run"]
