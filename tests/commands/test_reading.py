"""Options that say how files are read: declared once, the same in every command, and each reaches the reader."""

from __future__ import annotations

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from geonode.cli import app
from geonode.commands.reading import Reading, reads_standards

COMMANDS = get_command(app).commands
OWN = {"fit": set(), "evaluate": set(), "plan": set(), "adapt": {"select"}, "inspect": {"unit"}}
NAMES = set(Reading.__dataclass_fields__)


@pytest.mark.parametrize("command", OWN)
def test_commands_that_read_standards_offer_the_same_options(command):
    offered = {p.name: (p.opts, p.help, p.default) for p in COMMANDS[command].params if p.name in NAMES - OWN[command]}
    assert offered.keys() == NAMES - OWN[command]
    assert offered == {p.name: (p.opts, p.help, p.default) for p in COMMANDS["fit"].params if p.name in offered}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], Reading()),
        (["--select", "pH 7", "--unit", "mM"], Reading(select="pH 7", unit="mM")),
        (["--column", "Cl", "--column", "pH"], Reading(column=["Cl", "pH"])),
        (["--decimal", ",", "--sheet", "2"], Reading(decimal=",", sheet="2")),
    ],
)
def test_what_is_said_arrives(arguments, expected):
    seen = []
    program = typer.Typer()

    @program.command()
    @reads_standards()
    def read(file: str, reading: Reading, times: int = 1) -> None:
        seen.append((file, reading, times))

    result = CliRunner().invoke(program, ["a.csv", *arguments, "--times", "3"])
    assert result.exit_code == 0, result.output
    ((file, reading, times),) = seen
    assert (file, times) == ("a.csv", 3) and reading.standards
    assert {**vars(reading), "column": reading.column or None} == vars(expected)


@pytest.mark.parametrize("option", sorted(NAMES))
def test_every_option_reaches_the_reader(option, monkeypatch):
    """Under the name that `load_standards` gives it."""
    seen = {}
    monkeypatch.setattr("geonode.data.load_standards", lambda files, **how: seen.update(how))
    value = ["x"] if option == "column" else "x"
    Reading(**{option: value}).standards([])
    assert {name for name, said in seen.items() if said is not None} == {
        "concentration_unit" if option == "unit" else option
    }


@pytest.mark.parametrize("last", [5.0, 2.0], ids=["ready", "no standards"])
def test_inspect_reads_a_file_once(last, monkeypatch, tmp_path):
    from geonode.data.readers import loading

    rows = (f"{400 + 5 * k},{0.1 + 0.01 * k},{0.2 + 0.02 * k},{0.3 + 0.03 * k * k}" for k in range(20))
    path = tmp_path / "s.csv"
    path.write_text(f"wavelength,1.0,2.0,{last:g}.0{'.1' if last == 2.0 else ''}\n" + "\n".join(rows) + "\n")
    seen, read = [], loading.read_file
    monkeypatch.setattr(loading, "read_file", lambda path, options: seen.append(path) or read(path, options))
    result = CliRunner().invoke(app, ["inspect", str(path)])
    assert result.exit_code == 0 and seen == [path], result.output
    assert ("as standards: ready" in result.output) == (last == 5.0)
