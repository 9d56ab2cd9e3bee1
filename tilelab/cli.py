"""The command line: `tilelab demo | run | show | simulate | doctor | bench`.

Exit codes: 0 fine; 1 the program failed (an error, or findings of the simulator); 2 the command
line cannot be followed; 130 interrupted; 141 nobody reads the output any more. A script's own
exit code is passed on.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tilelab.commands.arguments import (
    USAGE,
    HelpShown,
    Parser,
    add_kernel_options,
    counted,
    target_argument,
)
from tilelab.commands.failures import message
from tilelab.commands.files import script_path, writable_file, writable_folder
from tilelab.commands.kernels import last_kernel_of_file, look_up, to_kernel, wish_of
from tilelab.commands.pipes import CLOSED, ReaderLeft, reader_may_leave
from tilelab.commands.progress import progress
from tilelab.commands.run import DEVICES, device, run_script
from tilelab.commands.simulate import (
    add_options,
    findings,
    own_options,
    policy,
    reports_of,
    split_at_dashes,
    summary,
    write_files,
)
from tilelab.demo.run import demo
from tilelab.runtime import doctor
from tilelab.runtime.reports import collect_reports
from tilelab.runtime.simulated import simulating
from tilelab.target import TARGETS
from tilelab.views import show

FINE, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130
EPILOG = "exit codes: 0 fine, 1 the program failed, 2 wrong command line, 130 interrupted"


def parser() -> Parser:
    """The options of every command."""
    top = Parser(prog="tilelab", description="A tile compiler made to be looked into.",
                 epilog=EPILOG)  # fmt: skip
    version = f"tilelab {importlib.import_module('tilelab').__version__}"
    top.add_argument("--version", action="version", version=version)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    made = commands.add_parser("demo", help="compile a GEMM, draw it, run it, check it")
    made.add_argument("--output", default="demo.html", metavar="FILE",
                      help="where to write the page (default: demo.html)")  # fmt: skip
    made.add_argument("--size", type=counted("size"), metavar="N", help="size of the check's "
                      "matrices (default: 4096 on a GPU, 256 on the simulator)")  # fmt: skip
    made.set_defaults(follow=_demo)
    _script(commands.add_parser("run", help="run a script; its `import tilelang` is tilelab"), _run)
    _script(commands.add_parser("simulate", help="run a script on the simulator and sum up what "
                                "it found"), _simulate)  # fmt: skip
    _show_options(commands.add_parser("show", help="the pictures of a script's kernel"))
    made = commands.add_parser("doctor", help="what works here, and what to do about the rest")
    made.set_defaults(follow=_doctor)
    made = commands.add_parser("bench", help="measure, beside peers (see: tilelab bench --help)",
                               add_help=False)  # fmt: skip
    made.add_argument("args", nargs=argparse.REMAINDER)
    made.set_defaults(follow=_bench)
    return top


def _script(made: Parser, follow: Callable[[argparse.Namespace], int]) -> None:
    if follow is _run:
        made.add_argument("--device", choices=DEVICES, default="auto", help="auto: CUDA tensors "
                          "on the GPU, CPU tensors on the simulator; sim: everything on the "
                          "simulator, with no GPU needed; cuda or gpu: an error where there is "
                          "no GPU (default: auto)")  # fmt: skip
    made.add_argument("--target", type=target_argument, metavar="|".join(TARGETS),
                      help="the chip to compile for where the script leaves it open")  # fmt: skip
    if follow is _simulate:
        add_options(made)
    made.add_argument("script", help="a Python file")
    rest = made.add_argument("args", nargs=argparse.REMAINDER, help="arguments of the script")
    rest.required = False  # argparse would name it beside a missing script
    made.set_defaults(follow=follow)


def _show_options(made: Parser) -> None:
    made.add_argument("kernel", metavar="SCRIPT[:NAME]", help="a file, and the kernel or factory "
                      "in it (default: the last one)")  # fmt: skip
    add_kernel_options(made)
    made.add_argument("--svg", metavar="FOLDER", help="write the pictures there, too")
    made.set_defaults(follow=_show)


def _demo(options: argparse.Namespace) -> int:
    outcome = demo(writable_file(options.output), options.size)
    print(outcome.text)
    return FINE if outcome.right else FAILED


def _run(options: argparse.Namespace) -> int:
    with device(options.device, options.target):
        run_script(script_path(options.script), options.args)
    return FINE


def _simulate(options: argparse.Namespace) -> int:
    failed: BaseException | None = None
    path, words = script_path(options.script), own_options(options)
    for file in filter(None, (options.json, options.trace)):
        writable_file(file)
    with collect_reports() as heard, device("sim", options.target), simulating(policy(options)):
        try:
            run_script(path, words)
        # A script whose calls found something may well fail after it: its reports are shown first.
        except Exception as error:
            failed = error
        except SystemExit as stop:
            failed = stop if stop.code else None
    reports = reports_of(heard)
    print(summary(reports))
    write_files(options, reports)
    if failed is not None:
        raise failed
    return FAILED if findings(reports) else FINE


def _show(options: argparse.Namespace) -> int:
    file, _, name = options.kernel.rpartition(":") if _names_kernel(options.kernel) else (
        options.kernel, "", ""
    )  # fmt: skip
    path = script_path(file)
    folder = writable_folder(options.svg) if options.svg else None
    names = run_script(path, main=False)
    name = name or last_kernel_of_file(path, names)
    with progress(f"compiling {name}"):
        kernel = to_kernel(look_up(name, names), wish_of(options, names), name)
        report = show(kernel, *options.show) if options.show else None
    print(repr(kernel) if report is None else report.to_text())
    if folder is not None and report is not None:
        for number, view in enumerate(report.views, 1):
            (folder / f"{number}-{view.kind}.svg").write_text(view.to_svg(), encoding="utf-8")
    return FINE


def _names_kernel(text: str) -> bool:
    return text.rpartition(":")[2].isidentifier() and ":" in text


def _doctor(options: argparse.Namespace) -> int:
    checks = doctor.diagnose()
    print(doctor.to_text(checks))
    return FINE


def _bench(options: argparse.Namespace) -> int:
    # The benchmarks load torch and peers: no other command pays for them.
    bench = importlib.import_module("tilelab.bench")
    asked = bench.add_options(Parser(prog="tilelab bench")).parse_args(options.args)
    for file in filter(None, (asked.out, None if asked.json == "-" else asked.json)):
        writable_file(str(file), merged=file == asked.out and asked.out.suffix != ".json")
    bench.follow(asked)
    return FINE


def main(argv: Sequence[str] | None = None) -> int:
    """Follow a command line and return its exit code."""
    out: Any = sys.stdout
    if hasattr(out, "reconfigure"):  # arrows and signs, where a locale has ASCII alone
        out.reconfigure(errors="replace")
    try:
        with reader_may_leave():
            return _main(argv)
    except ReaderLeft:
        return CLOSED


def _main(argv: Sequence[str] | None) -> int:
    options = argparse.Namespace(script="", kernel="")
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if words[:1] == ["bench"]:  # its options are its own: argparse would take --help first
            return _bench(argparse.Namespace(args=words[1:]))
        if words[:1] == ["simulate"]:
            words, options.rest = split_at_dashes(words)
        parser().parse_args(words, options)
        return int(options.follow(options))
    except HelpShown as shown:
        print(shown.text.rstrip())
        return FINE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:  # whatever a user's script raises
        print(message(error, _file(options)), file=sys.stderr)
        return WRONG_USE if getattr(error, "code", "") == USAGE else FAILED


def _file(options: argparse.Namespace) -> str:
    text = options.script or options.kernel
    path = text if Path(text).is_file() else text.rpartition(":")[0]
    return str(Path(path).absolute()) if path else ""
