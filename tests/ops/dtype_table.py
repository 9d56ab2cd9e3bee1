"""Which operation works on which element type, found out by running it: docs/dtypes.md.

`python -m tests.ops.dtype_table` writes the page anew; test_dtype_table.py runs every cell and
compares. Hides the page's layout.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.kernels import AMPERE, HOPPER
from tests.ops.dtype_maths import CHECKS
from tests.ops.dtype_programs import DTYPES
from tilelab.errors import TileError, TileInternalError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "dtypes.md"
TARGETS = {"hopper": HOPPER, "ampere": AMPERE}
YES = "yes"
_HEAD = """# Element types and operations

Every cell was found by running a small program of the operation over the type in the simulator,
for both feature sets, and comparing with torch: "yes" where the result is right, else the error
that the program gets. `python -m tests.ops.dtype_table` writes this page; tests/ops holds it.

"""


def cell(operation: str, dtype: str, target: Any, device: str = "cpu") -> str:
    """YES, or the code of the error that says why not. A wrong result raises."""
    try:
        CHECKS[operation](target, device, dtype)
    except TileInternalError:
        raise
    except TileError as error:
        return str(error.code)
    return YES


def row(operation: str, target: Any) -> list[str]:
    """The cells of an operation, in the order of DTYPES."""
    return [cell(operation, dtype, target) for dtype in DTYPES]


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _shown(found: str) -> str:
    return found if found == YES else f"[{found}](errors/{found}.md)"


def page() -> str:
    """The whole page."""
    lines = [_line(["operation", *DTYPES]), _line(["---"] * (len(DTYPES) + 1))]
    for operation in CHECKS:
        found = [row(operation, target) for target in TARGETS.values()]
        assert found[0] == found[1], f"{operation}: the targets differ"
        lines.append(_line([operation, *map(_shown, found[0])]))
    return _HEAD + "\n".join(lines) + "\n"


def written() -> dict[str, list[str]]:
    """The page as it is: the cells of each operation."""
    found: dict[str, list[str]] = {}
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("| ") and not line.startswith(("| operation", "| ---")):
            name, *cells = (part.strip() for part in line.strip("| ").split(" | "))
            found[name] = [c if c == YES else c[1 : c.index("]")] for c in cells]
    return found


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    sys.stdout.write(f"{PAGE} is written\n")
