"""The page of the report: its numbers are those of the CSVs, it needs nothing else, and foreign text stays text."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from typer.testing import CliRunner

import geonode
from geonode.cli import app
from geonode.data import SpectralDataset
from geonode.report.calibration_report import CalibrationReport
from geonode.report.page import html_report
from geonode.report.shell import document, table
from geonode.report.slider import MOST_WAVELENGTHS, slider_data
from geonode.report.tables import number
from geonode.report.training_sheet import training_sheet
from tests.report.conftest import HOSTILE, dataset

SHEETS = ("spectra", "predicted", "residuals", "resolution", "ambiguity", "metric", "single_wavelength", "training")


class Elements(HTMLParser):
    """Every element with its attributes, the text of scripts and of table cells."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[str] = []
        self.scripts: list[str] = []
        self._inside: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("td", "th"):
            self.cells.append("")
        if tag == "script":
            self.scripts.append("")
        self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "script" in self._inside:
            self.scripts[-1] += data
        elif self.cells and {"td", "th"} & set(self._inside):
            self.cells[-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def found(reported) -> Elements:
    return Elements(reported.page)


def rows_of(path) -> tuple[list[str], np.ndarray]:
    with open(path, encoding="utf-8") as file:
        rows = list(csv.reader(file))
    return rows[0], np.array(rows[1:], dtype=float)


@pytest.mark.smoke
def test_every_sheet_is_in_the_page_with_the_bytes_of_its_csv(reported, found):
    links = {a["download"]: a["href"] for a in found.all("a") if "download" in a}
    assert set(links) == {f"{name}.csv" for name in (*SHEETS, "results")} | {"results.xlsx"}
    for name, href in links.items():
        if name.endswith(".xlsx"):
            continue  # a workbook has the time it was made in it
        head, _, content = (href or "").partition(",")
        assert head == "data:text/csv;base64"
        assert base64.b64decode(content) == (reported.folder / name).read_bytes()


def test_spectra_under_the_slider_are_those_of_the_csv(reported, found):
    data = json.loads(found.scripts[0])
    heads, table = rows_of(reported.folder / "spectra.csv")
    column = dict(zip(heads, table.T, strict=True))
    np.testing.assert_allclose(data["wavelengths"], column["wavelength"], rtol=1e-9)
    at = {c: k for k, c in enumerate(data["concentrations"])}
    # the flow computes in float32, whose last bit depends on how many concentrations are asked for at once
    half = 0.5 * 10.0 ** -data["places"] + np.finfo(np.float32).eps
    predicted = [head for head in heads if re.fullmatch(r"mean_[\d.]+", head)]
    measured = [head for head in heads if re.fullmatch(r"measured_[\d.]+", head)]
    assert len(predicted) == 5 and len(measured) == 6, heads
    for head in predicted:
        assert np.abs(data["mean"][at[float(head.split("_")[1])]] - column[head]).max() <= half
    for k, head in enumerate(measured):
        assert np.abs(data["standards"][k] - column[head]).max() <= half


def test_bands_are_the_intervals_whose_coverage_is_measured():
    model = geonode.fit(dataset(), geonode.GeodesicConfig(predictor="gp"), device="cpu")
    data = slider_data(model)
    c = np.array(data["concentrations"])
    low, high = model.gp.predict(c).interval(0.8)
    places = 0.5000001 * 10.0 ** -(data["places"] - 1)
    assert np.abs(np.array(data["half"]) - 0.5 * (high - low)).max() <= places
    assert (np.diff(c) > 0.0).all() and set(model.gp.levels) <= set(c)
    assert data["extrapolated"] == ((c < 0.0) | (c > 60.0)).tolist() and any(data["extrapolated"])


def test_tables_have_the_numbers_of_the_json(reported, found):
    data = json.loads((reported.folder / "report.json").read_text(encoding="utf-8"))
    for kind in ("fitted", "cross_validated", "cross_validated_interior"):
        for key in ("rmse", "bias", "sep", "r2", "rpd", "rpiq"):
            assert number(data[kind][key]) in found.cells, (kind, key)
    for budget in data["budgets"]:
        for part in budget["contributions"]:
            assert f"{part['standard_uncertainty']:.3g}" in found.cells
    _, held = rows_of(reported.folder / "predicted.csv")
    for estimate in held[:, 1]:
        assert number(estimate) in found.cells


def test_verdicts_of_every_standard(reported, found):
    own = reported.model.calibration.quantify_many(reported.model.calibration.measured.spectra)
    for result in own:
        assert found.cells.count(result.verdict) == sum(r.verdict == result.verdict for r in own)
    for i in range(len(own)):
        assert f"{HOSTILE} {i}" in found.cells


def test_foreign_text_stays_text(reported, found):
    names = {name for name, _ in found.elements}
    assert "img" not in names and "iframe" not in names and "object" not in names
    assert len(found.scripts) == 3  # two of data, and the one that runs
    for _, attributes in found.elements:
        assert not [key for key in attributes if key.startswith("on")], attributes
    assert any(HOSTILE in cell for cell in found.cells)


def test_the_browser_is_told_to_run_nothing_else(found):
    (policy,) = [m["content"] for m in found.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    digest = base64.b64encode(hashlib.sha256(found.scripts[-1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in (policy or "") and "default-src 'none'" in (policy or "")


def test_nothing_is_fetched(found):
    for _, attributes in found.elements:
        for key in ("src", "href", "xlink:href", "action", "srcset"):
            value = attributes.get(key)
            assert value is None or value.startswith(("#", "data:")), (key, value)


@pytest.mark.smoke
def test_every_figure_has_words(found):
    figures = [a for a in found.all("svg") if a.get("aria-hidden") != "true"]
    assert len(figures) == 1 + len(SHEETS)
    for attributes in figures:
        assert attributes["role"] == "img" and len(attributes["aria-label"] or "") > 60
    assert len({attributes["aria-label"] for attributes in figures}) == len(figures)


def test_ids_are_unique_and_references_lead_somewhere(found):
    ids = [attributes["id"] for _, attributes in found.elements if attributes.get("id")]
    assert len(ids) == len(set(ids)), sorted({i for i in ids if ids.count(i) > 1})
    for _, attributes in found.elements:
        for key in ("href", "xlink:href"):
            value = attributes.get(key) or ""
            assert not value.startswith("#") or value[1:] in ids, value


def test_provenance(reported, found):
    text = "\n".join(found.cells)
    bundle = (reported.folder.parent / "assay.bundle").read_bytes()
    made = reported.model.made
    for word in (
        hashlib.sha256(bundle).hexdigest(),
        made["bundle"]["checksum"],
        f"torch {made['environment']['torch']}",
    ):
        assert word in text
    assert "no file was at hand" in text and "seed" in text


def page_of(model, bundle=None) -> str:
    """The page alone, without the files that `write_report` writes besides."""
    report = CalibrationReport(model.calibration)
    return html_report(model, report, report.sheets(), bundle)


def test_the_data_files_checksum_is_that_of_the_file_that_was_fitted(tmp_path):
    wave, data = dataset().wavelengths, dataset()
    file = tmp_path / "a, b & c.csv"
    heads = ["wavelength", *(f"{c:g}" for c in data.levels)]
    rows = [heads, *([f"{v:.6f}" for v in row] for row in np.column_stack([wave, data.level_means().T]))]
    file.write_text("\n".join(",".join(row) for row in rows) + "\n")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    run = CliRunner()
    arguments = ["fit", str(file), "--predictor", "gp", "--out", str(tmp_path / "m"), "-q"]
    assert run.invoke(app, arguments).exit_code == 0
    file.write_text("changed since")
    page = page_of(geonode.load(tmp_path / "m"), tmp_path / "m")
    assert digest in page and "No training curves: this model is the Gaussian process alone" in page
    assert "<h1>Calibration report: " in page and "b &amp; c.csv</h1>" in page


def test_training_curves(reported):
    heads, table = rows_of(reported.folder / "training.csv")
    assert table[:, 0].tolist() == [1.0, 2.0, 3.0]
    history = reported.model.history
    assert table[:, heads.index("total")] == pytest.approx([row["total"] for row in history])
    assert training_sheet([]) is None


def test_page_of_a_usual_assay_is_small():
    """601 wavelengths; the bytes do not depend on the flow, so the process alone will do. A third are the slider's
    spectra, a fifth what answers an unknown and finds its cause."""
    model = geonode.fit(dataset(601), geonode.GeodesicConfig(predictor="gp"), device="cpu")
    assert len(page_of(model).encode()) < 3_300_000


def test_very_many_wavelengths_are_thinned_and_that_is_said():
    model = geonode.fit(dataset(2 * MOST_WAVELENGTHS + 1), geonode.GeodesicConfig(predictor="gp"), device="cpu")
    data = slider_data(model)
    assert data["every"] == 3 and len(data["wavelengths"]) == len(data["mean"][0]) <= MOST_WAVELENGTHS


def test_gaps_are_not_crossed():
    whole = dataset()
    keep = (whole.wavelengths < 520.0) | (whole.wavelengths > 580.0)
    model = geonode.fit(
        SpectralDataset(whole.spectra[:, keep], whole.concentrations, whole.wavelengths[keep]),
        geonode.GeodesicConfig(predictor="gp"),
        device="cpu",
    )
    data = slider_data(model)
    (first, last), (second, end) = data["pieces"]
    assert data["wavelengths"][last] < 520.0 and data["wavelengths"][second] > 580.0
    assert (first, second, end) == (0, last + 1, len(data["wavelengths"]) - 1)


def test_the_shell_escapes_its_own_text():
    page = document("<b>", "<p>body</p>")
    assert "<title>&lt;b&gt;</title>" in page and "http" not in page
    assert '<th scope="col">&lt;i&gt;</th>' in table(("<i>",), [("x",)])
