"""Options that take one value are given once, in every command and in the runtime's."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from geonode.cli import app
from geonode.commands.once import OnceCommand
from geonode_runtime.__main__ import main as runtime

PROGRAM: Any = get_command(app)


def parsed(command: str, *arguments: str) -> dict[str, Any]:
    return PROGRAM.commands[command].make_context(command, list(arguments)).params


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("quantify", "m", "u", "--dilution", "2", "--dilution", "2"), "--dilution is given twice"),
        (("fit", "a", "--out", "b", "-o", "c"), "--out is given twice"),
        (("fit", "a", "--out", "b", "--folds", "--no-folds"), "--folds/--no-folds is given twice"),
        (("inspect", "a", *["--decimal", "."] * 3), "--decimal is given 3 times"),
    ],
)
def test_a_second_value_is_refused_by_name(arguments, said):
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 2 and said in " ".join(result.output.split())


def test_what_collects_values_or_only_repeats_is_taken():
    found = parsed("fit", "a", "--out", "b", "--preprocess", "snv", "--preprocess", "range:400-700", "-q", "-q")
    assert found["preprocess"] == ["snv", "range:400-700"] and found["quiet"]


def test_every_command_is_such_a_command():
    commands = list(PROGRAM.commands.values())
    commands += [one for group in commands for one in getattr(group, "commands", {}).values()]
    alone = [one for one in commands if not hasattr(one, "commands")]
    assert len(alone) > 16 and all(isinstance(one, OnceCommand) for one in alone)


def test_the_runtime_takes_one_value_too(tmp_path, capsys):
    assert runtime(["quantify", "m.onnx", "u.csv", "--level", "0.8", "--level", "0.9"]) == 2
    assert "--level is given twice" in capsys.readouterr().err
    assert runtime(["predict", str(tmp_path / "m.onnx"), "--at", "1", "--at", "2"]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_a_runtime_without_onnxruntime_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    (tmp_path / "m.onnx").write_bytes(b"model")
    assert runtime(["inspect", str(tmp_path / "m.onnx")]) == 2
    said = capsys.readouterr().err
    assert "geodesic-node[export]" in said and "Traceback" not in said and len(said.splitlines()) == 1
