"""Rich display in a notebook: a kernel as its three pictures, a fragment as its map."""

from __future__ import annotations

from typing import Any

from tilelab.kernel import JITKernel
from tilelab.layout import Fragment, TableFragment
from tilelab.views import fragment_view, show


def _show_kernel(kernel: JITKernel) -> None:
    show(kernel)._ipython_display_()  # pyright: ignore[reportPrivateUsage]


def _fragment_bundle(fragment: Any, *_: Any, **__: Any) -> dict[str, str]:
    bundle = fragment_view(fragment)._repr_mimebundle_()  # pyright: ignore[reportPrivateUsage]
    return {**bundle, "text/plain": str(fragment)}


def install(shell: Any) -> None:
    """Register the formatters."""
    formatter = shell.display_formatter
    formatter.ipython_display_formatter.for_type(JITKernel, _show_kernel)
    for kind in (Fragment, TableFragment):
        formatter.mimebundle_formatter.for_type(kind, _fragment_bundle)


def remove(shell: Any) -> None:
    """Take the formatters back."""
    formatter = shell.display_formatter
    formatter.ipython_display_formatter.pop(JITKernel, None)
    for kind in (Fragment, TableFragment):
        formatter.mimebundle_formatter.pop(kind, None)
