"""The drop zone in a browser: the answers of `geonode quantify` to 40 files, nothing asked of the network, a phone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from geonode.cli import app
from geonode.report.write_report import write_report
from tests.calibration.assays import WAVE, band, folding, monotone, noisy
from tests.report.browsing import DESKTOP, PHONE, browser, page_of  # noqa: F401 - the fixture is used by its name
from tests.report.test_answers import fitted

COUNT = 40
KINDS = {
    "quantified",
    "ambiguous",
    "below detection limit",
    "outside calibrated range",
    "does not match",
}


def write(path: Path, spectra: np.ndarray, wavelengths: np.ndarray = WAVE) -> Path:
    rows = (",".join(f"{v:.9g}" for v in row) for row in zip(wavelengths, *spectra, strict=True))
    path.write_text("wavelength / nm,absorbance\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def made(root: Path, truth, concentrations) -> SimpleNamespace:
    """A report, its bundle, and files of unknowns, an eighth of them disturbed, with what the command says of each."""
    model = fitted(truth)
    model.save(root / "assay.bundle")
    write_report(model, root / "out", root / "assay.bundle")
    (root / "unknowns").mkdir()
    draw = np.random.default_rng(11)
    files = []
    for k, c in enumerate(concentrations):
        extra = 0.05 * draw.uniform() * band(draw.uniform(400.0, 650.0), 25.0) if k % 8 == 1 else 0.0
        files.append(write(root / "unknowns" / f"u{k:03}.csv", noisy(truth, [c], k) + extra))
    said = CliRunner().invoke(
        app, ["quantify", str(root / "assay.bundle"), *map(str, files), "--each", "--json", str(root / "answers.json")]
    )
    assert said.exit_code == 0, said.output
    answers = json.loads((root / "answers.json").read_text(encoding="utf-8"))["unknowns"]
    return SimpleNamespace(
        page=root / "out" / "report.html", files=files, answers=answers, printed=said.output, root=root
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> SimpleNamespace:
    """40 files of an assay that folds: at none at all it looks as it does far above the range."""
    root = tmp_path_factory.mktemp("answers")
    return made(root, folding, np.linspace(0.0, 74.0, COUNT))


@pytest.fixture(scope="module")
def rising(tmp_path_factory) -> SimpleNamespace:
    """Of an assay that does not: blanks, samples, and what is to be diluted."""
    return made(tmp_path_factory.mktemp("rising"), monotone, [0.0, 0.0, 0.0, 12.0, 34.0, 55.0, 90.0, 120.0])


@pytest.fixture
def opened(browser, folder) -> Iterator:  # noqa: F811
    """Opens the page; afterwards nothing may be on the console and nothing may have been asked of the network."""
    yield from page_of(browser, folder.page)


def agree(page, folder: SimpleNamespace) -> set[str]:
    """Verdict and sentence, number for number, of every file; gives the verdicts back."""
    page.set_input_files("#unknown-file", folder.files)
    page.locator("#answers .answer").nth(len(folder.files) - 1).wait_for(timeout=200_000)
    names = page.locator("#answers h3").all_inner_texts()
    verdicts = page.locator("#answers .verdict").evaluate_all("(all) => all.map((p) => p.dataset.verdict)")
    sentences = page.locator("#answers .verdict").all_inner_texts()
    assert names == [answer["name"] for answer in folder.answers]
    assert verdicts == [answer["verdict"] for answer in folder.answers]
    for name, sentence in zip(names, sentences, strict=True):
        assert f"{name}: {sentence}\n" in folder.printed
    assert {*verdicts} <= KINDS
    assert page.locator("#answers svg[role=img]").count() == len(folder.files)
    return {*verdicts}


def test_forty_files_get_the_commands_answers(opened, folder):
    assert {"quantified", "ambiguous", "does not match"} <= agree(opened(DESKTOP), folder)


def test_blanks_and_what_is_above_get_the_commands_answers(browser, rising):  # noqa: F811
    for open_page in page_of(browser, rising.page):
        assert {"quantified", "below detection limit", "outside calibrated range"} <= agree(open_page(DESKTOP), rising)


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_dropped_file_is_answered_and_nothing_scrolls_sideways(opened, folder, viewport):
    page = opened(viewport)
    text = folder.files[3].read_text(encoding="utf-8")
    page.evaluate(
        """(text) => {
          const data = new DataTransfer();
          data.items.add(new File([text], "u003.csv"));
          document.getElementById("drop").dispatchEvent(
            new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
        }""",
        text,
    )
    page.wait_for_selector("#answers .verdict")
    assert page.inner_text("#answers .verdict") in folder.printed
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    smallest = page.evaluate("""() => Math.min(...[...document.querySelectorAll("#answers svg text")].map(
      (t) => t.getBoundingClientRect().height))""")
    assert smallest >= 8.0
    page.select_option("#unknown-level", "0.5")
    page.fill("#unknown-dilution", "10")
    page.dispatch_event("#unknown-dilution", "change")
    page.locator("#answers .verdict", has_text="50 %").wait_for()


def test_replicates_are_said_and_a_copy_is_refused(opened, folder, tmp_path):
    page = opened(DESKTOP)
    files = [write(tmp_path / f"r{k}.csv", noisy(folding, [15.0], 70 + k)) for k in range(3)]
    page.check("#unknown-replicates")
    page.set_input_files("#unknown-file", files)
    page.wait_for_selector("#answers .verdict")
    said = CliRunner().invoke(app, ["quantify", str(folder.root / "assay.bundle"), *map(str, files)]).output
    assert page.inner_text("#answers .verdict") in said
    assert "3 spectra taken as replicates" in page.inner_text("#answers")
    page.set_input_files("#unknown-file", [files[0], write(tmp_path / "copy.csv", noisy(folding, [15.0], 70))])
    page.wait_for_selector("#answers > .refused")
    assert "is identical to r0.csv" in page.inner_text("#answers")


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("letter.txt", b"dear colleague,\nno spectrum here\n", "has no table of wavelength and signal"),
        ("book.xlsx", b"PK\x03\x04....", "is a workbook or an archive"),
        ("<img src=x onerror=alert(1)>.csv", b"1,2\n3,4\n", "has no table"),
        ("short.csv", b"500,0.1\n504,0.2\n508,0.3\n", "misses 300 to 500 and 508 to 700"),
        ("µm.csv", b"0.3,0.1\n0.5,0.2\n0.7,0.3\n", "a factor of 1000 lies between the two, as if one were in µm"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(opened, name, data, words):
    page = opened(DESKTOP)
    page.set_input_files("#unknown-file", [{"name": name, "mimeType": "text/plain", "buffer": data}])
    page.wait_for_selector("#answers .refused")
    text = page.inner_text("#answers .refused")
    assert text.startswith("Refused: ") and words in text and text.endswith(".")
    assert page.locator("#answers img").count() == 0


def test_the_form_is_named_and_reached_by_keyboard(opened):
    page = opened(DESKTOP)
    for label in ("Dilution factor", "its standard uncertainty", "Interval"):
        assert page.get_by_label(label, exact=False).count() == 1
    assert page.get_by_label("Drop the file of an unknown").count() == 1
    assert page.get_by_role("status", name="Answers").count() == 1
