"""The documents keep up with the code: a page for every error code, links that lead somewhere."""

from __future__ import annotations

import ast
import contextlib
import os
import re
import runpy
import tomllib
from pathlib import Path

import pytest
import torch

from tests.sim.detection.test_matrix import ENTRIES
from tilelab.cli import main
from tilelab.errors import TileError
from tilelab.passes.pipeline import PASSES
from tilelab.sim.findings import KINDS

ROOT = Path(__file__).resolve().parent.parent
ERRORS = ROOT / "docs" / "errors"
CODE = re.compile(r"\bTL\d{4}\b")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
SECTIONS = ("Cause", "Remedy", "Example")


def _codes_in(path: Path) -> set[str]:
    """The codes in string constants of one file, docstrings aside."""
    tree = ast.parse(path.read_text("utf-8"), str(path))
    prose = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in prose:
            found.update(CODE.findall(node.value))
    return found


def _uses() -> dict[str, list[str]]:
    """Where each code is used."""
    uses: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tilelab").rglob("*.py")):
        for code in _codes_in(path):
            uses.setdefault(code, []).append(path.relative_to(ROOT).as_posix())
    return uses


def _page_problems(code: str, text: str) -> list[str]:
    """What a page lacks: its title, the three parts, an example in a code block."""
    problems = [] if text.startswith(f"# {code}: ") else [f"no title '# {code}: ...'"]
    parts = re.split(r"^## (\w+)\n", text, flags=re.MULTILINE)
    bodies = dict(zip(parts[1::2], parts[2::2], strict=True))
    problems += [f"no section {name}" for name in SECTIONS if not bodies.get(name, "").strip()]
    if "```python\n" not in bodies.get("Example", ""):
        problems.append("the example is no python block")
    if len(text.splitlines()) > 60:
        problems.append("longer than a page of 60 lines")
    return problems


def test_every_code_has_a_page() -> None:
    """A code that the library raises is explained."""
    missing = {code: files for code, files in _uses().items() if not _page(code).exists()}
    lines = [f"{code} (used in {', '.join(files)})" for code, files in sorted(missing.items())]
    assert not missing, "docs/errors lacks a page for " + "; ".join(lines)


def test_every_page_has_a_code() -> None:
    """A page whose code is gone goes too."""
    stale = sorted({page.stem for page in ERRORS.glob("TL*.md")} - set(_uses()))
    assert not stale, f"no code in tilelab/ for the pages {stale}"


@pytest.mark.parametrize("page", sorted(ERRORS.glob("TL*.md")), ids=lambda p: p.stem)
def test_page(page: Path) -> None:
    """Title, cause, remedy, and an example that is Python."""
    text = page.read_text("utf-8")
    assert not _page_problems(page.stem, text)
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        ast.parse(block, str(page))


@pytest.mark.parametrize("page", sorted(ERRORS.glob("TL*.md")), ids=lambda p: p.stem)
def test_example_raises_its_error(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example does what its page says. Findings of the simulator stand in TL1641's notes."""
    if page.stem == "TL1632" and os.path.exists("/dev/nvidiactl"):
        pytest.skip("this machine has a GPU, so nothing complains that there is none")
    script = tmp_path / f"example_{page.stem}.py"
    script.write_text(re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(TileError) as raised:
        runpy.run_path(str(script))
    shown = {raised.value.code, *CODE.findall("\n".join(raised.value.notes))}
    assert page.stem in shown, str(raised.value)


def test_index_lists_every_page() -> None:
    """docs/errors/README.md names each page once."""
    index = (ERRORS / "README.md").read_text("utf-8")
    listed = re.findall(r"\[(TL\d{4})\]", index)
    assert listed == sorted(page.stem for page in ERRORS.glob("TL*.md"))


@pytest.mark.parametrize(
    "page", sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]), ids=lambda p: p.name
)
def test_links_lead_somewhere(page: Path) -> None:
    """Links and pictures inside the repository exist."""
    for target in LINK.findall(page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


def test_the_readmes_program(tmp_path: Path) -> None:
    """The block that a reader pastes first is a GEMM."""
    script = tmp_path / "readme.py"
    (block,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL
    )
    script.write_text(block)
    kernel = runpy.run_path(str(script))["kernel"]
    a, b = torch.randn(2, 1024, 1024, generator=torch.Generator().manual_seed(0)).half()
    torch.testing.assert_close(kernel(a, b).float(), a.float() @ b.float(), rtol=1e-2, atol=0.1)


@pytest.mark.parametrize(
    "page", sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")]), ids=lambda p: p.name
)
def test_command_lines_can_be_followed(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each `tilelab COMMAND --option` of the text is one that the command line has."""
    for line in re.findall(
        r"(?:`|^ {4})tilelab ([a-z]\w* .*?)(?:`|$)", page.read_text("utf-8"), re.M
    ):
        command, *words = line.split()
        with contextlib.suppress(SystemExit):  # bench's own parser leaves
            assert main([command, "--help"]) == 0, line
        known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
        assert {w.split("=")[0] for w in words if w.startswith("--")} <= {*known, "--"}, line


def test_conda_installs_what_pip_does() -> None:
    """environment.yml asks for pyproject.toml's Pythons, the test extra and the pins."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    said = (ROOT / "environment.yml").read_text("utf-8")
    assert f"- python{wanted['requires-python']}\n" in said
    assert "- -c constraints.txt\n" in said and "- -e .[test]\n" in said
    pins = re.findall(r"^([\w-]+)==", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    needs = [*wanted["dependencies"], *wanted["optional-dependencies"]["test"]]
    assert {re.split(r"[^\w-]", need)[0] for need in needs} <= set(pins)


def test_architecture_lists_the_passes_in_order() -> None:
    """The sentence "In order: ..." is pipeline.py's list."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    listed = re.search(r"^In order: (.*?)\.\n", text, re.MULTILINE | re.DOTALL)
    assert listed and re.findall(r"`([\w-]+)`", listed[1]) == [p.name for p in PASSES]


def test_simulator_lists_every_check_with_its_codes() -> None:
    """The table of checks is findings.py's, the number of programs the detection matrix's."""
    text = (ROOT / "docs" / "simulator.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (TL20.*) \|$", text, re.MULTILINE)
    for check, said in rows:
        own = said.split("(")[0]  # a parenthesis may name the code of another check
        assert set(CODE.findall(own)) == {code for code, kind in KINDS.items() if kind == check}
    assert {check for check, _ in rows} == set(KINDS.values())
    assert f"holds {len(ENTRIES)} programs" in text


def _page(code: str) -> Path:
    return ERRORS / f"{code}.md"
