"""The house rules as functions from parsed source to violations. Hides how each is decided.

`test_architecture.py` runs them over the repository and over small samples of each offence.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# A module imports lower ranks only. Names of one set in STRANGERS do not import each other.
RANKS = {
    "errors": 0, "calls": 0, "kinds": 0, "tracebacks": 0,
    "dtypes": 0, "target": 0, "absent": 0, "logs": 0, "math": 0,
    "layout": 1,
    "ir": 2,
    "thread": 3,
    "tile": 4,
    "frontend": 5, "passes": 5, "codegen": 5, "sim": 5,
    "views": 6, "runtime": 6,
    "artifact": 7, "language": 7, "compiler": 7, "jit": 7, "kernel": 7, "bench": 7, "autotuner": 7,
    "call_forms": 7, "jit_errors": 7, "pass_config": 7, "suggest": 7, "profiler": 7, "shim": 7,
    # The host side of TileLang's surface, one module for each of its names.
    "carver": 7, "contrib": 7, "engine": 7, "env": 7, "intrinsics": 7, "testing": 7, "tileop": 7,
    "tools": 7, "transform": 7, "tvm": 7, "utils": 7,
    "plot": 8, "widgets": 8,
    "notebook": 8, "cli": 8, "demo": 8, "doctor": 8, "commands": 8,
    "": 9,  # tilelab/__init__.py itself
    "__main__": 9,
}  # fmt: skip
STRANGERS = ({"frontend", "passes", "codegen", "sim"}, {"views", "runtime"})
# The two readers of thread IR see nothing of tile IR's operations.
HIGHEST_SEEN = {"codegen": 3, "sim": 3}

LAZY = {
    "ml_dtypes",
    "torch",
    "IPython",
    "matplotlib",
    "ipywidgets",
    "anywidget",
    "playwright",
    "traitlets",
    "cuda",
}
PUBLIC_MODULES = {
    "tilelab", "tilelab.artifact", "tilelab.language", "tilelab.shim", "tilelang",
    "tilelang.language",
}  # fmt: skip
PRINTING = re.compile(r"^(cli|demo|commands|bench\.command)(\.|$)")

MAX_FILE, MAX_FUNCTION, MAX_CLASS, MAX_ISINSTANCE = 400, 50, 200, 2
ASM = re.compile(r"\basm\s*(?:volatile\b|goto\b|\()")
ARCHITECTURE = re.compile(r"\b(?:sm|compute)_\d{2,3}[a-z]?\b|__CUDA_ARCH__")
CAPABILITY_NAME = re.compile(r"(?:^|_)(?:major|minor|capability|arch|cc|sm_version)$")

FunctionNode = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Violation:
    """One broken rule at one line."""

    rule: str
    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: [{self.rule}] {self.text}"


@dataclass(frozen=True)
class Source:
    """A parsed file: `path` relative to the repository, `module` as Python names it."""

    path: str
    module: str
    text: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.endswith("__init__.py")

    @property
    def inner(self) -> str:
        """The module's name inside tilelab: "passes.base" for tilelab.passes.base."""
        return self.module.partition(".")[2]


def parse(text: str, path: str) -> Source:
    """The Source of a text that lies at `path` (relative to the repository)."""
    parts = list(Path(path).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return Source(path, ".".join(parts), text, ast.parse(text, path))


@functools.cache
def read_tree(root: Path, folder: str) -> list[Source]:
    """All Python files under a folder of the repository."""
    files = sorted((root / folder).rglob("*.py"))
    return [parse(f.read_text("utf-8"), f.relative_to(root).as_posix()) for f in files]


# -- imports ----------------------------------------------------------------------------------


def imported_modules(source: Source, node: ast.AST) -> Iterator[str]:
    """The modules that an import statement may load, by absolute name."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            drop = node.level - source.is_package
            package = source.module.split(".")
            package = package[: len(package) - drop]
            base = ".".join([*package, *([base] if base else [])])
        if base == "tilelab":
            yield from (f"tilelab.{alias.name}" for alias in node.names)
        else:
            yield base


def import_direction(source: Source) -> Iterator[Violation]:
    """A module imports lower ranks, its own package, and no stranger."""
    own = source.inner.partition(".")[0]
    if own not in RANKS:
        yield Violation("rank", source.path, 1, f"package {own!r} has no rank in house_rules.RANKS")
        return
    for node in ast.walk(source.tree):
        for module in imported_modules(source, node):
            head, _, rest = module.partition(".")
            other = rest.partition(".")[0]
            if head != "tilelab" or other == own or (other not in RANKS and own == ""):
                continue
            problem = _direction_problem(own, other)
            if problem:
                line = getattr(node, "lineno", 1)
                yield Violation("rank", source.path, line, f"imports {module}: {problem}")


def _direction_problem(own: str, other: str) -> str:
    if other not in RANKS:
        return "no package of that name has a rank in house_rules.RANKS"
    if any(own in group and other in group for group in STRANGERS):
        return f"{own} and {other} are strangers"
    if RANKS[other] > RANKS[own]:
        return f"{other} (rank {RANKS[other]}) lies above {own} (rank {RANKS[own]})"
    if RANKS[other] > HIGHEST_SEEN.get(own, 9):
        return f"{own} sees rank {HIGHEST_SEEN[own]} and below only"
    return ""


def public_imports(source: Source) -> Iterator[Violation]:
    """The judge and the exercises use tilelab's public names only."""
    for node in ast.walk(source.tree):
        modules = {node.module or ""} if isinstance(node, ast.ImportFrom) else set[str]()
        if isinstance(node, ast.Import):
            modules = {alias.name for alias in node.names}
        for module in modules:
            if module.split(".")[0] in ("tilelab", "tilelang") and module not in PUBLIC_MODULES:
                yield _at(source, node, "public", f"imports {module}, which is not public")
        if isinstance(node, ast.ImportFrom) and (node.module or "") in PUBLIC_MODULES:
            for alias in node.names:
                if alias.name.startswith("_"):
                    yield _at(source, node, "public", f"imports the private name {alias.name}")


def local_imports(source: Source) -> Iterator[Violation]:
    """No import inside a function, except of optional third parties that load late."""
    for function in ast.walk(source.tree):
        if not isinstance(function, FunctionNode):
            continue
        for node in ast.walk(function):
            for module in imported_modules(source, node):
                if module.split(".")[0] not in LAZY:
                    text = f"imports {module} inside {function.name}()"
                    yield _at(source, node, "local-import", text)


# -- sizes and documentation ------------------------------------------------------------------


def sizes(source: Source) -> Iterator[Violation]:
    """Files, functions and classes stay readable at one sitting."""
    lines = source.text.count("\n")
    if lines > MAX_FILE:
        yield Violation("size", source.path, MAX_FILE, f"{lines} lines, limit {MAX_FILE}")
    for node in ast.walk(source.tree):
        limit = MAX_FUNCTION if isinstance(node, FunctionNode) else MAX_CLASS
        if isinstance(node, (*FunctionNode, ast.ClassDef)):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > limit:
                yield _at(source, node, "size", f"{node.name} has {length} lines, limit {limit}")


def docstrings(source: Source) -> Iterator[Violation]:
    """Modules, classes and public functions say what they are for."""
    if not ast.get_docstring(source.tree):
        yield Violation("docstring", source.path, 1, "module has no docstring")
    for node in source.tree.body:
        public = isinstance(node, (*FunctionNode, ast.ClassDef)) and not node.name.startswith("_")
        if public and not ast.get_docstring(node):
            yield _at(source, node, "docstring", f"{node.name} has no docstring")


# -- text that has one place ------------------------------------------------------------------


def strings(tree: ast.AST) -> Iterator[ast.Constant]:
    """String constants that are not docstrings, parts of f-strings among them."""
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, *FunctionNode))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in documentation:
            yield node


def asm_text(source: Source) -> Iterator[Violation]:
    """Assembly stands in thread/intrinsics, one record an instruction."""
    if source.inner.startswith("thread.intrinsics"):
        return
    for node in strings(source.tree):
        if ASM.search(str(node.value)):
            yield _at(source, node, "asm", "asm text outside thread/intrinsics")


def architecture_numbers(source: Source) -> Iterator[Violation]:
    """Architectures are named in target.py; everyone else asks for features."""
    if source.inner == "target":
        return
    for node in strings(source.tree):
        found = ARCHITECTURE.search(str(node.value))
        if found:
            yield _at(source, node, "architecture", f"names {found.group()}; ask for a Feature")
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Compare) and _compares_capability(node):
            text = f"compares a compute capability: {ast.unparse(node)}"
            yield _at(source, node, "architecture", text)


def _compares_capability(node: ast.Compare) -> bool:
    sides = [node.left, *node.comparators]
    names = [getattr(s, "id", None) or getattr(s, "attr", "") for s in sides]
    numbers = any(
        isinstance(leaf, ast.Constant) and type(leaf.value) is int
        for side in sides
        for leaf in ast.walk(side)
        if isinstance(side, ast.Constant | ast.Tuple)
    )
    return numbers and any(CAPABILITY_NAME.search(name) for name in names)


def prints(source: Source) -> Iterator[Violation]:
    """Only commands print; libraries return data."""
    if PRINTING.match(source.inner):
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
            yield _at(source, node, "print", "prints; return data instead")


# -- isinstance chains ------------------------------------------------------------------------


def isinstance_chains(source: Source) -> Iterator[Violation]:
    """Three tests of one value's type in a row want a table keyed by type."""
    for node in ast.walk(source.tree):
        for block in ("body", "orelse", "finalbody"):
            statements = getattr(node, block, None)
            # The else side of an `elif` is counted with the `if` that it belongs to.
            inside_chain = block == "orelse" and isinstance(node, ast.If) and _is_elif(node)
            if isinstance(statements, list) and not inside_chain:
                yield from _chains_of(source, statements)


def _is_elif(node: ast.If) -> bool:
    return len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If)


def _chains_of(source: Source, statements: list[ast.stmt]) -> Iterator[Violation]:
    run: list[tuple[str, ast.stmt]] = []
    for arm in _arms(statements):
        subject = _isinstance_subject(arm.test) if isinstance(arm, ast.If) else ""
        if run and run[-1][0] != subject:
            yield from _too_long(source, run)
            run = []
        if subject:
            run.append((subject, arm))
    yield from _too_long(source, run)


def _arms(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in statements:
        arm = statement
        while isinstance(arm, ast.If) and _is_elif(arm):
            yield arm
            arm = arm.orelse[0]
        yield arm


def _isinstance_subject(test: ast.expr) -> str:
    """The value whose type `test` asks first, as text; empty when it does not."""
    if isinstance(test, ast.BoolOp):
        test = test.values[0]
    if isinstance(test, ast.UnaryOp):
        test = test.operand
    is_call = isinstance(test, ast.Call) and getattr(test.func, "id", "") == "isinstance"
    return ast.unparse(test.args[0]) if is_call and isinstance(test, ast.Call) else ""


def _too_long(source: Source, run: list[tuple[str, ast.stmt]]) -> Iterator[Violation]:
    if len(run) > MAX_ISINSTANCE:
        subject, first = run[0]
        text = f"{len(run)} isinstance tests of {subject} in a row, limit {MAX_ISINSTANCE}"
        yield _at(source, first, "isinstance", text)


def _at(source: Source, node: ast.AST, rule: str, text: str) -> Violation:
    return Violation(rule, source.path, getattr(node, "lineno", 1), text)


def line_totals(root: Path) -> dict[str, int]:
    """Lines of tilelab/ by package."""
    totals: dict[str, int] = {}
    for source in read_tree(root, "tilelab"):
        package = source.inner.partition(".")[0] or "tilelab"
        totals[package] = totals.get(package, 0) + source.text.count("\n")
    return totals


def line_report(root: Path) -> str:
    """The totals on one line, for `make test`."""
    totals = line_totals(root)
    parts = ", ".join(f"{name} {lines}" for name, lines in sorted(totals.items()))
    return f"tilelab/: {sum(totals.values())} lines ({parts})"


if __name__ == "__main__":
    print(line_report(Path(__file__).resolve().parent.parent))
