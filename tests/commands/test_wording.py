"""Messages name what their reader can give: options on a command line, arguments in Python, settings in their file."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import geonode
import geonode_runtime
from geonode.cli import app
from geonode.data.readers import read_file
from geonode.errors import GeonodeError, ReaderError
from geonode_runtime.wording import CommandLine, argument, either, on_command_line, setting, stated
from tests.data.small_tables import table, write

LINE = CommandLine({"select": "--select", "log_dir": "--log-dir"}, {"predictor": "--predictor", "select": "--select"})
LIBRARIES = [Path(package.__file__).parent for package in (geonode, geonode_runtime)]


@pytest.mark.parametrize(
    ("name", "value", "python", "command"),
    [
        ("select", "DMSA", "select='DMSA'", "--select DMSA"),
        ("select", "pH=7.4 & a", "select='pH=7.4 & a'", "--select 'pH=7.4 & a'"),
        ("training.log_dir", "a b", "training.log_dir='a b'", "--log-dir 'a b'"),
        ("loss.ramp", None, "loss.ramp=None", '"loss.ramp": null'),
        ("predictor", "gp", "predictor='gp'", "geonode fit --predictor gp"),
        ("solver", "rk4", "solver='rk4'", '"solver": "rk4"'),
        ("folds", True, "folds=True", '"folds": true'),
    ],
)
def test_an_argument_is_an_option_where_a_command_runs(name, value, python, command):
    assert argument(name, value) == python and either("--each", "each=True") == "each=True"
    with on_command_line(LINE):
        assert argument(name, value) == command and either("--each", "each=True") == "--each"
        assert stated("a.select", "B") == "--select B" and stated("loss.ramp", 1) == "loss.ramp=1"
        assert setting("training.log_dir") == "--log-dir" and setting("loss.ramp") == "loss.ramp"
    assert argument(name, value) == python  # and again in Python behind it


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wording")
    write(folder / "good.csv", table(["0", "10", "20", "40"], (0, 10, 20, 40), first="wavelength"))
    write(folder / "series.csv", table([f"{s} {c} mM" for s in "AB" for c in (1, 2, 4)], (1, 2, 4, 6, 7, 9)))
    write(folder / "doubt.csv", table(["1.000", "500", "250"], (9, 5, 2), first="wavelength"))
    write(folder / "settings.json", '{"solver": "euler"}')
    return folder


@pytest.mark.parametrize(
    ("words", "said", "python"),
    [
        (("inspect", "series.csv"), "such as --select B", "select='B'"),
        (("fit", "doubt.csv"), "(--decimal . or --decimal ,)", "(decimal='.' or decimal=',')"),
        (("fit", "good.csv", "--sheet", "a"), "leave --sheet out", ""),
        (("fit", "good.csv", "--predictor", "oracle"), "--predictor oracle is not known", ""),
        (("fit", "good.csv", "--flow", "river"), "--flow river is not known", ""),
        (("fit", "good.csv", "--settings", "settings.json"), "solver='euler' is not known", ""),
        (("fit", "good.csv", "--folds", "--predictor", "gp"), "--folds is for the neural flow; use --predictor", ""),
        (("fit", "good.csv", "--epochs", "3"), "--epochs would have no effect", ""),
        (("fit", "good.csv", "--resume", "--flow", "velocity"), "--resume needs --checkpoint", ""),
        (("fit", "good.csv", "--device", "tpu"), "--device tpu is not known", ""),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_commands_name_their_options(files, tmp_path, monkeypatch, words, said, python):
    monkeypatch.chdir(files)
    out = ["--out", str(tmp_path / "m")] if words[0] == "fit" else []
    ran = CliRunner().invoke(app, [*words, *out])
    assert said in " ".join(ran.output.split()), ran.output
    if python:
        with pytest.raises(ReaderError, match=re.escape(python)):
            geonode.load_standards(files / words[1])


def test_python_is_told_of_arguments_after_a_command_failed(files):
    CliRunner().invoke(app, ["inspect", str(files / "doubt.csv")])
    with pytest.raises(GeonodeError, match=r"decimal='\.'"):
        read_file(files / "doubt.csv")


# What people start by its own command alone, or that names commands on purpose.
_COMMANDS = (
    "commands/",
    "bench/",
    "cli.py",
    "prior/__main__.py",
    "prior/training.py",
    "prior/stopping.py",
    "amounts.py",
    "__main__.py",
)
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
_ARGUMENT = re.compile(r"\b[a-z_]+=('|\"|True\b|False\b)")


def test_messages_of_the_library_leave_the_words_to_the_way_they_are_read():
    """No text of an error says ``--option`` or ``argument='value'`` itself, but through `argument` or `either`."""
    odd = []
    for library, path in [(one, path) for one in LIBRARIES for path in sorted(one.rglob("*.py"))]:
        where = path.relative_to(library).as_posix()
        if where.startswith(_COMMANDS):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and node.exc is not None:
                odd += [f"{where}:{node.lineno}: {text}" for text in _texts(node.exc) if _names_one_way(text)]
    assert not odd, "\n".join(odd)


def _texts(node: ast.AST) -> list[str]:
    """The text of an expression, but for what stands within calls of `argument` and `either`."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in (
        "argument",
        "either",
    ):
        return []
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    return [text for child in ast.iter_child_nodes(node) for text in _texts(child)]


def _names_one_way(text: str) -> bool:
    named = "geonode fit" in text or "geonode export" in text or "geonode evaluate" in text  # another command
    return bool((_OPTION.search(text) and not named) or _ARGUMENT.search(text))
