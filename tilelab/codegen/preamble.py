"""The head of a CUDA file: only the headers, types and helpers that its kernels use."""

from __future__ import annotations

import re

from tilelab.codegen.imported import declarations, headers_for
from tilelab.codegen.values import TYPEDEFS
from tilelab.dtypes import DType
from tilelab.thread.intrinsic import Intrinsic
from tilelab.thread.intrinsics import TENSOR_MAP, helper_texts
from tilelab.thread.intrinsics.codes import TYPE_HELPERS

# Python's // and %, which floor; C's truncate.
_FLOOR_HELPERS = {
    "floordiv": """\
template <typename T> __device__ __forceinline__ T floordiv(T a, T b) {
  return a / b - T(a % b != 0 && (a < 0) != (b < 0));
}""",
    "floormod": """\
template <typename T> __device__ __forceinline__ T floormod(T a, T b) {
  T rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}""",
    "floormod_float": """\
template <typename T> __device__ __forceinline__ T floormod_float(T a, T b) {
  T rest = fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}""",
    "floordiv_float": """\
template <typename T> __device__ __forceinline__ T floordiv_float(T a, T b) {
  return rint((a - floormod_float(a, b)) / b);
}""",
}


class Preamble:
    """Collects what the kernels of one file need, each thing once, in the order of first use."""

    def __init__(self) -> None:
        self._headers: set[str] = set()
        self._intrinsics: dict[str, Intrinsic] = {}
        self._helpers: dict[str, None] = {}
        self._floor: dict[str, None] = {}
        self._imported: dict[str, None] = {}

    def use_type(self, dtype: DType) -> None:
        """A value of `dtype` is named in the text."""
        if dtype.header:
            self._headers.add(dtype.header)
        for name in TYPE_HELPERS.get(dtype.name, ()):
            self.use_helper(name)

    def use_intrinsic(self, record: Intrinsic) -> None:
        """An instruction is called: its helper, what that requires, and headers."""
        self._headers.update(record.includes)
        self._intrinsics.setdefault(record.name, record)

    def use_helper(self, name: str) -> None:
        """A helper of `thread.intrinsics` is called by name."""
        self._helpers.setdefault(name)

    def use_floor(self, name: str) -> str:
        """One of our own helpers for Python's // and %; returns the name to call."""
        if name == "floordiv_float":
            self.use_floor("floormod_float")
        self._floor.setdefault(name)
        return f"tl::{name}"

    def use_imported(self, text: str) -> None:
        """CUDA text of the program's own stands before the kernels."""
        self._headers.update(headers_for(text))
        self._imported.update(dict.fromkeys(declarations(text)))

    def lines(self, body: str) -> list[str]:
        """The head for kernels whose text is `body`, ending in an empty line."""
        texts = list(helper_texts(self._intrinsics.values(), self._helpers))
        helpers = "\n".join([*texts, *(_FLOOR_HELPERS[name] for name in self._floor)])
        everything = f"{helpers}\n{body}"
        head = [f"#include <{header}>" for header in sorted(self._headers)]
        head += [
            f"typedef {spelling} {short};"
            for short, spelling in TYPEDEFS.items()
            if re.search(rf"\b{short}\b", everything)
        ]
        head += [line for text in self._imported for line in text.split("\n")]
        if re.search(r"\bTensorMap\b", everything):
            head += TENSOR_MAP.split("\n")
        if helpers:
            head += ["", "namespace tl {", *helpers.split("\n"), "}  // namespace tl"]
        return [*head, ""] if head else []
