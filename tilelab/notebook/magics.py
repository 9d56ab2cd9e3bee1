"""The magics: `%%tilelang` compiles a cell and shows it, `%tilelab` looks at what is there.

Hides how a cell becomes a namespace's newest kernel. The body of a cell is plain Python.
"""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Callable
from typing import Any

from tilelab.commands.arguments import (
    HelpShown,
    Parser,
    add_kernel_options,
    name_argument,
    split_line,
    usage_error,
)
from tilelab.commands.kernels import (
    inputs_for,
    last_kernel,
    look_up,
    look_up_input,
    to_kernel,
    wish_of,
)
from tilelab.commands.progress import NotebookLine, progress
from tilelab.commands.run import DEVICES, device
from tilelab.kernel import JITKernel
from tilelab.notebook import display
from tilelab.notebook.errors import CellSyntaxError
from tilelab.notebook.registry import Magic, not_first
from tilelab.runtime import doctor

CELL, LINE = "tilelang", "tilelab"


def cell_parser() -> Parser:
    """The options of `%%tilelang`."""
    parser = Parser(
        prog="%%tilelang",
        description="Run the cell as Python, compile the kernel it defines last, and show it.",
    )
    add_kernel_options(parser)
    parser.add_argument(
        "--device", choices=DEVICES, default="auto", help="where the cell and --run work: auto "
        "(each call where its tensors lie), sim (the simulator), cuda (the GPU)",
    )  # fmt: skip
    parser.add_argument("--run", action="store_true", help="run it on inputs of the namespace")
    parser.add_argument("--inputs", metavar="A,B", default="", help="names of those inputs "
                        "(default: the kernel's parameter names); implies --run")  # fmt: skip
    parser.add_argument(
        "--name", type=name_argument, help="variable for the kernel (default: <function>_kernel)"
    )
    return parser


def line_parser() -> Parser:
    """The commands of `%tilelab`."""
    parser = Parser(prog="%tilelab", description="Look at this machine, or at a kernel.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="doctor|show")
    commands.add_parser("doctor", help="what works here, and what to do about the rest")
    shown = commands.add_parser("show", help="the pictures of a kernel")
    shown.add_argument("kernel", help="its name in the notebook")
    add_kernel_options(shown)
    return parser


class Magics:
    """The magics of one shell, as functions that IPython calls with text."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def cell(self, line: str, cell: str) -> None:
        """Run and compile a cell; see `%%tilelang --help`."""
        __tracebackhide__ = True  # IPython leaves such frames out
        try:
            options = cell_parser().parse_intermixed_args(split_line(line))
        except HelpShown as shown:
            print_text(shown.text)
            return
        with contextlib.nullcontext() if options.device == "auto" else on(options):
            self._follow(line, cell, options)

    def _follow(self, line: str, cell: str, options: Any) -> None:
        __tracebackhide__ = True
        names = self._shell.user_ns
        try:
            tree = self._execute(line, cell)
        except NameError as error:
            _name_constant(error, options)
            raise
        found = last_kernel(tree, names)
        kernel = self._compile(found, options)
        variable = options.name or f"{found.removesuffix('_kernel')}_kernel"
        names[variable] = kernel
        if options.show:
            display.show_report(display.pictures(kernel, options.show))
        print_text(f"{variable} = {kernel!r}")
        if options.run or options.inputs:
            self._run(kernel, variable, options)

    def alone(self, line: str) -> None:
        """`%tilelang`: the help of `%%tilelang`, which IPython does not run without a body."""
        words = split_line(line)
        if not {"-h", "--help"} & {*words}:
            raise usage_error(
                "%tilelang has no cell to compile",
                "write %%tilelang above a kernel; %tilelang --help lists its options",
            )
        print_text(cell_parser().format_help())

    def line(self, line: str) -> Any:
        """Follow a command; see `%tilelab --help`."""
        try:
            options = line_parser().parse_args(split_line(line))
        except HelpShown as shown:
            print_text(shown.text)
            return None
        if options.command == "doctor":
            print_text(doctor.to_text(doctor.diagnose()))
            return None
        kernel = self._compile(options.kernel, options)
        if not options.show:
            print_text(repr(kernel))
            return None
        return display.pictures(kernel, options.show)

    def _compile(self, name: str, options: Any) -> JITKernel:
        names = self._shell.user_ns
        value = look_up(name, names)
        with progress(f"compiling {name}", NotebookLine()):
            tensors = [look_up_input(word, names) for word in _words(options)]
            kernel = to_kernel(value, wish_of(options, names, tensors), name)
            _ = kernel.program  # lowered now, so that errors and time belong to this step
        return kernel

    def _execute(self, line: str, cell: str) -> ast.Module:
        """Run a cell's text in the namespace of the notebook. The magic's own line stays as a
        comment, so that line numbers are those of the cell; a last expression is displayed."""
        __tracebackhide__ = True
        shell = self._shell
        text = f"# %%{CELL} {line}\n{cell}"
        file = shell.compile.cache(text, shell.execution_count, raw_code=text)
        try:
            tree: ast.Module = shell.compile.ast_parse(text, file)
        except SyntaxError as error:
            raise CellSyntaxError(*error.args) from None
        final = tree.body[-1] if tree.body else None
        body = tree.body[:-1] if isinstance(final, ast.Expr) else tree.body
        # The shell's compiler: a plain compile() would pass on this module's future imports.
        exec(shell.compile(ast.Module(body, []), file, "exec"), shell.user_ns)
        if isinstance(final, ast.Expr):
            last = shell.compile(ast.Expression(final.value), file, "eval")
            shell.displayhook(eval(last, shell.user_ns))
        return tree

    def _run(self, kernel: JITKernel, variable: str, options: Any) -> None:
        names, given = self._shell.user_ns, _words(options)
        inputs = [moved(value, options.device) for value in inputs_for(kernel, names, given)]
        with progress(f"running {kernel.name}", NotebookLine()):
            result = kernel(*inputs)
        outputs = [kernel.params[i].name for i in kernel.out_idx]
        results = [result] if len(outputs) == 1 else list(result or ())
        names.update(zip(outputs, results, strict=True))
        words = given or [p.name for i, p in enumerate(kernel.params) if i not in _set(kernel)]
        made = f"{', '.join(outputs)} = " if outputs else ""
        print_text(f"{made}{variable}({', '.join(words)})")
        if outputs:
            self._shell.displayhook(result)


def on(options: Any) -> contextlib.AbstractContextManager[None]:
    """The device of `--device`; TileRuntimeError (TL1707) for a GPU that is not there."""
    return device(options.device, options.target)


def moved(value: Any, name: str) -> Any:
    """An input where `--device` wants it: a tensor on the CPU for the simulator, on the GPU for
    CUDA; everything else, and all of it for "auto", as it is."""
    if not hasattr(value, "is_cuda") or name == "auto":
        return value
    return value.cpu() if name == "sim" else value.cuda()


def _name_constant(error: NameError, options: Any) -> None:
    """A cell is plain Python, so a constant of the magic's line is no variable in it: say so where
    one is taken for that."""
    given = {word.partition("=")[0].strip(): word for word in options.constants}
    if error.name in given:
        error.add_note(
            f"{given[error.name]} above the cell is an argument of a function that makes the "
            f"kernel: write `def make({', '.join(given)}):` around it, which returns it; or write "
            f"{given[error.name]} as a line of the cell"
        )


def _words(options: Any) -> list[str]:
    """The names given to --inputs."""
    return [w.strip() for w in getattr(options, "inputs", "").split(",") if w.strip()]


def _set(kernel: JITKernel) -> set[int]:
    return {i % len(kernel.params) for i in kernel.out_idx}


def print_text(text: str) -> None:
    """Write to the cell's output."""
    sys.stdout.write(text + "\n")


def magics(shell: Any) -> dict[Magic, Callable[..., Any]]:
    """`%%tilelang` and `%tilelab` of one shell."""
    made = Magics(shell)
    return {
        ("cell", CELL): made.cell, ("line", CELL): made.alone, ("line", LINE): made.line,
        ("line", f"%{CELL}"): not_first(CELL),
    }  # fmt: skip
