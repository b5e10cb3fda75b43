"""Versions of JSON outputs: each carries its own, docs/formats.md lists them all, later ones are refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from geonode import bench, bundle
from geonode.cli import app
from geonode.errors import InputError
from geonode.report.calibration_report import CalibrationReport
from geonode.schema import SCHEMAS, require_readable, versioned
from geonode.sweep.results import Results, read_rows
from tests.report.conftest import dataset

PAGE = Path(__file__).resolve().parents[2] / "docs" / "formats.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """standards.csv, its bundle, and every JSON that a command writes of them."""
    folder = tmp_path_factory.mktemp("schemas")
    data = dataset(31)
    lines = [["wavelength", *(f"{c:g}" for c in data.levels)]]
    means = data.level_means()
    lines += [[f"{w:g}", *(f"{v:.6f}" for v in means[:, k])] for k, w in enumerate(data.wavelengths)]
    (folder / "standards.csv").write_text("\n".join(",".join(line) for line in lines) + "\n")
    unknown = ["wavelength,u", *(f"{w:g},{v:.6f}" for w, v in zip(data.wavelengths, means[2], strict=True))]
    (folder / "u.csv").write_text("\n".join(unknown) + "\n")
    names = {name: str(folder / name) for name in ("standards.csv", "u.csv", "m")}
    commands = (
        ["fit", names["standards.csv"], "--predictor", "gp", "--out", names["m"]],
        ["evaluate", names["standards.csv"], "--method", "linear", "--json", str(folder / "evaluate.json")],
        ["quantify", names["m"], names["u.csv"], "--json", str(folder / "quantify.json")],
        ["suggest", names["m"], "--json", str(folder / "suggest.json")],
    )
    for command in commands:
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
    found = CliRunner().invoke(app, ["inspect", names["standards.csv"], "--json"])
    (folder / "inspect.json").write_text(found.output)
    return folder


@pytest.mark.smoke
@pytest.mark.parametrize("output", ["evaluate", "quantify", "suggest", "inspect"])
def test_commands_write_their_version_first(folder, output):
    data = json.loads((folder / f"{output}.json").read_text(encoding="utf-8"))
    assert next(iter(data)) == "schema_version" and data["schema_version"] == SCHEMAS[output]


def test_report_and_benchmark():
    from geonode.calibration import Calibration

    data = json.loads(CalibrationReport(Calibration.from_dataset(dataset(31))).to_json())
    assert data["schema_version"] == SCHEMAS["report"]
    assert SCHEMAS["bench"] == bench.SCHEMA_VERSION


def test_sweep_rows_carry_it_and_are_read_with_and_without(tmp_path):
    row = {"job": "a", "fold": 0.0, "seed": 0, "rmse": 0.1, "nrmse": 0.2}
    Results(tmp_path, "w").add(row)
    written = json.loads((tmp_path / "results-w.json").read_text())
    assert written == {"schema_version": SCHEMAS["sweep"], "rows": [row]}
    assert read_rows(tmp_path / "results-w.json") == [row]
    (tmp_path / "old.json").write_text(json.dumps([row]))
    assert read_rows(tmp_path / "old.json") == [row]
    (tmp_path / "later.json").write_text(json.dumps({"schema_version": 99, "rows": {"another": "form"}}))
    with pytest.raises(InputError, match=r"later\.json has schema_version 99 of sweep, .* reads up to 1; upgrade"):
        read_rows(tmp_path / "later.json")


@pytest.mark.parametrize("version", [0, 2, True, "1", None, 1.0])
def test_versions_that_are_none_are_refused(version):
    with pytest.raises(InputError, match="of evaluate"):
        require_readable("evaluate", version, "file")
    require_readable("evaluate", 1, "file")


def test_the_version_cannot_be_overlooked():
    assert list(versioned("evaluate", {"a": 1})) == ["schema_version", "a"]


@pytest.mark.skipif(not PAGE.exists(), reason="docs are not beside an installed package")
def test_the_page_lists_every_version():
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\| (\d+) \|", text, re.M)
    assert {name: int(version) for name, version in rows} == SCHEMAS
    bundles = re.findall(r"^\| (\d+) \| [\d.]+ \|", text, re.M)
    assert [int(v) for v in bundles] == list(range(1, bundle.VERSION + 1))
