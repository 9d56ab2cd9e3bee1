"""`import tilelang` answered by tilelab, for programs written for TileLang.

A meta-path finder; no package of that name is shipped. Hides that one module object then has two
names.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

PEER = "tilelang"
OURS = __name__.partition(".")[0]
# TileLang brings its own `tvm`; its programs import a few names from there.
_ANSWERED = {PEER: OURS, "tvm": f"{OURS}.tvm"}
# Modules of the peer (of several versions) that are one here.
_INTRINSICS = f"{OURS}.intrinsics"
_MOVED = {
    **{
        f"{PEER}.cuda{rest}": _INTRINSICS
        for rest in (
            "", ".intrinsics", ".intrinsics.layout", ".intrinsics.layout.mma_layout",
            ".intrinsics.layout.utils", ".intrinsics.macro",
            ".intrinsics.macro.mma_macro_generator",
        )
    },
    f"{PEER}.intrinsics.mma_layout": _INTRINSICS,
    f"{PEER}.transform.simplify": f"{OURS}.transform",
    f"{PEER}.intrinsics.mma_macro_generator": _INTRINSICS,
    f"{PEER}.intrinsics.utils": _INTRINSICS,
}  # fmt: skip


class _SameModule(Loader):
    """Gives an existing module under another name, and leaves its own spec as it was."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec


class PeerFinder(MetaPathFinder):
    """Finds `tilelang`, `tilelang.x` and `tvm` as tilelab's modules."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a name of the peer; ModuleNotFoundError for a submodule tilelab lacks."""
        root, _, rest = fullname.partition(".")
        if root not in _ANSWERED:
            return None
        ours = _MOVED.get(fullname) or _ANSWERED[root] + ("." + rest if rest else "")
        try:
            module = importlib.import_module(ours)
        except ModuleNotFoundError as error:
            if error.name is None or not ours.startswith(error.name):
                raise
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: tilelab answers for {root}, and has no {ours}",
                name=fullname,
            ) from None
        return ModuleSpec(fullname, _SameModule(module), is_package=hasattr(module, "__path__"))


_FINDER = PeerFinder()


def install() -> None:
    """Let `import tilelang` give tilelab, in this process; a real TileLang is passed over."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def uninstall() -> None:
    """Undo `install`, and forget the modules it gave."""
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _ANSWERED and module.__name__.partition(".")[0] == OURS:
            del sys.modules[name]
