"""Code blocks of a page: found by a CommonMark parser, run in order in one folder and one namespace, or only checked.

A fence's info string is a language, and may carry a title: ``bash title="not run: needs a GPU"`` is checked instead of
run, and the reader sees why; ``yaml title="sweep.yaml"`` writes that file for the blocks after it.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from tests.forks import python

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = ("python", "bash", "yaml", "json", "csv", "text")
_TITLE = re.compile(r'\s+title="([^"]*)"')
_FILE = re.compile(r"[\w-]+\.(py|yaml|json|csv)")
_COMMAND = re.compile(r"\s*(geonode|geonode-runtime|python3?|pip|make|torchrun|sbatch|ssh|rsync|docker|kubectl) ")
_SHELL = re.compile(r"[|<>;&$`*()]")


@dataclass(frozen=True)
class Block:
    """One fenced or indented code block; ``language`` is empty for an indented one."""

    page: Path
    line: int
    language: str
    title: str
    code: str

    @property
    def reason(self) -> str:
        """Why the block is not run; empty where it is."""
        return self.title.removeprefix("not run:").strip() if self.title.startswith("not run:") else ""

    @property
    def runs(self) -> bool:
        """True for python and bash that are no file and have no reason not to."""
        return self.language in ("python", "bash") and not self.reason and not _FILE.fullmatch(self.title)

    @property
    def place(self) -> str:
        """Page and line, for messages."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """README.md and every page of docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> Iterator[Block]:
    """All code blocks of a page, those inside lists and quotations included."""
    for token in MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8")):
        if token.type not in ("fence", "code_block") or token.map is None:
            continue
        title = _TITLE.search(token.info)
        language = _TITLE.sub("", token.info).strip()
        yield Block(page, token.map[0] + 1, language, title[1] if title else "", token.content)


def fitted(page: Path) -> set[str]:
    """The bundles that a page's own `geonode fit` writes."""
    lines = [line for block in blocks(page) if block.runs and block.language == "bash" for line in commands(block.code)]
    return {found[1] for line in lines if line.startswith("geonode fit") and (found := re.search(r"--out (\S+)", line))}


def complaint(block: Block) -> str:
    """What is wrong with how the block is marked; empty where nothing is."""
    if not block.language:
        unmarked = next((line for line in block.code.splitlines() if _COMMAND.match(line)), None)
        return f"an indented block holds the command {unmarked.strip()!r}; fence it as bash" if unmarked else ""
    if block.language not in LANGUAGES:
        return f"the language {block.language!r} is none of {', '.join(LANGUAGES)}"
    if block.title.startswith("not run") and not block.reason:
        return "the reason for not running is missing"
    return ""


def run(block: Block, namespace: dict[str, Any]) -> None:
    """Run the block in the present folder; raises what it raises."""
    if block.language == "python":
        source = "\n" * block.line + block.code  # so that a traceback names the line of the page
        exec(compile(source, str(block.page), "exec"), namespace)
    elif all(_stands_alone(command) for command in commands(block.code)):
        for command in commands(block.code):
            if command.startswith("geonode "):  # in this process, which has torch loaded already
                _run_program(shlex.split(command)[1:])
            elif re.fullmatch(r"python \w+\.py", command):  # in one that begins with torch loaded
                _run_script(command.split()[1])
            else:
                _run_bash(command)
    else:
        _run_bash(block.code)


def write_file(block: Block) -> None:
    """Write the file that the block's title names, if it names one."""
    if _FILE.fullmatch(block.title):
        Path(block.title).write_text(block.code, encoding="utf-8")


def check(block: Block) -> None:
    """What can be said of a block without running it: its syntax, its imports, the options of its commands."""
    if block.language == "python":
        _check_imports(ast.parse(block.code))
        return
    subprocess.run(["bash", "-n", "-c", block.code], check=True)
    for command in commands(block.code):
        words = re.sub(r"[\"']", " ", command).split()  # a command for another machine stands in quotes
        if "geonode" in words:
            check_options(words[words.index("geonode") + 1 :])
        if words[0] == "make":
            subprocess.run(["make", "-n", words[1]], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


def commands(code: str) -> list[str]:
    """The block's lines without comments, continued lines joined."""
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in code.replace("\\\n", " ").splitlines())
    return [line for line in lines if line]


def check_options(words: list[str]) -> None:
    """Raise unless the geonode program knows the command and every option among ``words``."""
    from typer.main import get_command

    from geonode.cli import app

    command: Any = get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        if words[0] not in command.commands:
            raise ValueError(f"geonode has no command {words[0]!r}")
        command, words = command.commands[words[0]], words[1:]
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    for word in words:
        if re.match(r"--?[a-z]", word) and word.split("=")[0] not in known:
            raise ValueError(f"geonode {command.name} has no option {word!r}")


def _check_imports(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("geonode"):
            module = importlib.import_module(node.module)
            for name in node.names:
                getattr(module, name.name)


def _stands_alone(command: str) -> bool:
    """A call of a program that needs no shell and leaves nothing in it."""
    return bool(_COMMAND.match(command)) and not _SHELL.search(command)


def _run_bash(code: str) -> None:
    subprocess.run(["bash", "-euo", "pipefail", "-c", code], check=True, timeout=240)


def _run_script(name: str) -> None:
    done = python(name, env={**os.environ, "PYTHONPATH": str(ROOT)})
    if done.returncode:
        raise RuntimeError(f"python {name} ended with code {done.returncode}: {done.stderr}")


def _run_program(arguments: list[str]) -> None:
    """What the console script does with these arguments, its exit code included."""
    from geonode.cli import main

    before = sys.argv
    sys.argv = ["geonode", *arguments]
    try:
        main()
    except SystemExit as stop:
        if stop.code:
            raise RuntimeError(f"geonode {shlex.join(arguments)} ended with code {stop.code}") from None
    finally:
        sys.argv = before
