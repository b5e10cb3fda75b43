"""The page's answers, by its own scripts under node, are the library's; `test_browser_answers.py`: in a browser."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import geonode
from geonode.calibration.unknown_files import read_unknowns
from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset
from geonode.errors import GeonodeError
from geonode.report.browser.data import answer_data
from geonode.report.browser.section import ANSWERING, script
from tests.calibration.assays import LEVELS, WAVE, band, folding, monotone, noisy, straight
from tests.calibration.posterior.test_twins import retracing
from tests.data import samples

pytest.importorskip("h5netcdf")  # the files below are made when this is collected, and one is NetCDF
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed: the page's scripts cannot run here")

UNTICK = "untick that they are replicates for an answer to each"

ASK = """
const { data, unknowns } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const model = GeonodeAnswers.open(data), plain = (list) => Array.from(list, (v) => (Number.isFinite(v) ? v : null));
const answers = unknowns.map((one) => {
  try {
    if (one.file === undefined) {
      const replicates = one.values.map((values) => ({ values, masked: values.map((v) => v === null) }));
      const found = GeonodeAnswers.quantify(model, one.wavelengths, replicates, one.name, one.options);
      const { mean, usable, ...answer } = found;
      return { ...answer, predicted: plain(GeonodeAnswers.predicted(model, answer.nearest[0])) };
    }
    const file = GeonodeText.read(Uint8Array.from(Buffer.from(one.bytes, "base64")), one.file, model);
    return { wavelengths: plain(file.wavelengths), notes: file.notes,
      spectra: file.spectra.map((s) => ({ name: s.name, values: plain(s.values), masked: s.masked })) };
  } catch (error) {
    if (!(error instanceof GeonodeNumbers.Refusal)) throw error;
    return { refused: error.message };
  }
});
process.stdout.write(JSON.stringify(answers));
"""


def asked(data: dict[str, Any], unknowns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the page's scripts answer to each of the unknowns."""
    assert NODE is not None
    question = json.dumps({"data": data, "unknowns": unknowns}, allow_nan=False)
    with tempfile.TemporaryDirectory() as folder:  # the scripts are longer than an argument may be
        program = Path(folder) / "page.js"
        program.write_text("".join(map(script, ANSWERING)) + ASK, encoding="utf-8")
        run = subprocess.run(
            [NODE, str(program)], input=question, capture_output=True, text=True, encoding="utf-8", check=False
        )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def fitted(
    truth: Callable, levels=LEVELS, noise: float = 0.002, wavelengths: np.ndarray = WAVE, **words: Any
) -> geonode.model.GeodesicModel:
    spectra = noisy(truth, levels, 1, noise)
    data = SpectralDataset(spectra, levels, wavelengths, concentration_unit="ppb", signal="absorbance")
    return geonode.fit(data, GeodesicConfig(predictor="gp"), **words)


def drifting(c) -> np.ndarray:
    """A straight line beside an interferent that goes its own way: no curve."""
    amount = 0.6 * np.sin(4.0 * np.atleast_1d(c)) ** 2
    return straight(c) + amount[:, None] * band(560.0, 45.0)


def unsteady(c) -> np.ndarray:
    """A straight line beside a little of an interferent, of which five standards show too little."""
    amount = 0.05 * np.random.default_rng(3).random(np.size(c))
    return straight(c) + amount[:, None] * band(560.0, 45.0)


def mislabelled(c) -> np.ndarray:
    """A bottle of 10 that holds 18, which blanks cannot be told from."""
    return straight(np.where(np.asarray(c) == 10.0, 18.0, c))


def relabelled(c) -> np.ndarray:
    """A bottle of 40 that holds 20."""
    return monotone(np.where(np.asarray(c) == 40.0, 20.0, c))


TWICE = np.repeat(LEVELS, 2)
CALIBRATIONS = {
    "saturating": lambda: fitted(monotone),
    "folding": lambda: fitted(folding),
    "retracing": lambda: fitted(retracing, np.array([0.0, 5.0, 12.0, 20.0, 30.0, 45.0, 60.0])),
    "straight, measured twice": lambda: fitted(straight, TWICE),
    "no blank": lambda: fitted(monotone, LEVELS[1:]),
    "uncertain standards": lambda: fitted(folding, concentration_std=0.5),
    "three standards": lambda: fitted(monotone, LEVELS[[0, 2, 5]]),
    "preprocessed": lambda: fitted(monotone, preprocessing=["range:320-680", "savgol:9,2,1", "snv"]),
    "several analytes": lambda: fitted(drifting, np.linspace(0.0, 60.0, 13), 0.0005),
    "smoothed": lambda: fitted(folding, preprocessing="savgol:7,2"),
    "PLS a little better": lambda: fitted(unsteady, np.linspace(0.0, 60.0, 5), 0.005),
    "mislabelled": lambda: fitted(mislabelled, LEVELS, 0.0005),
    "relabelled": lambda: fitted(relabelled, np.append(LEVELS, 50.0)),
}
TRUTHS = {
    "several analytes": drifting,
    "PLS a little better": straight,
    "folding": folding,
    "retracing": retracing,
    "uncertain standards": folding,
    "smoothed": folding,
    "straight, measured twice": straight,
    "mislabelled": straight,
}


@pytest.fixture(scope="module")
def models() -> Callable[[str], geonode.model.GeodesicModel]:
    made: dict[str, geonode.model.GeodesicModel] = {}
    return lambda name: made.setdefault(name, CALIBRATIONS[name]())


def unknowns_of(truth: Callable, seed: int) -> list[dict[str, Any]]:
    """Twenty-five unknowns: over and beyond the range, foreign, replicated, masked, saturated, on other wavelengths."""
    draw = np.random.default_rng(seed)
    made: list[dict[str, Any]] = []

    def add(values: np.ndarray, wavelengths: np.ndarray = WAVE, mask: np.ndarray | None = None, **options: Any) -> None:
        made.append(
            {"name": f"u{len(made)}", "wavelengths": wavelengths, "values": values, "mask": mask, "options": options}
        )

    for c in (*draw.uniform(0.0, 75.0, 5), 0.0, 30.0, 60.0, 70.0):
        add(noisy(truth, [c], int(draw.integers(1 << 30))))
    add(noisy(truth, [25.0] * 3, 5))
    add(noisy(truth, [25.0] * 3, 6, noise=0.02))
    add(noisy(truth, [5.0, 50.0], 6))  # two samples
    add(noisy(truth, [20.0], 7) + 0.2 * band(520.0, 30.0))
    add(noisy(truth, [20.0], 8) + 0.01)
    masked = np.zeros(len(WAVE), dtype=bool)
    masked[[3, 40, 41, 80]] = True
    add(noisy(truth, [35.0], 9), mask=masked)
    add(noisy(truth, [45.0], 10)[:, ::-1], WAVE[::-1])
    finer = np.arange(298.0, 704.0, 1.5)
    add(np.array([np.interp(finer, WAVE, row) for row in noisy(truth, [15.0], 11)]), finer)
    add(noisy(truth, [15.0], 12)[:, ::2], WAVE[::2])
    add(noisy(truth, [15.0], 12)[:, ::4], WAVE[::4])
    coarse = np.arange(299.0, 705.0, 13.0)
    add(np.array([np.interp(coarse, WAVE, row) for row in noisy(truth, [35.0], 17)]), coarse)
    add(noisy(truth, [25.0], 13), level=0.5, dilution=10.0, dilutionStd=0.2)
    add(noisy(truth, [25.0], 14), level=0.95, dilution=2.0)
    add(np.minimum(3.0 * noisy(truth, [55.0], 15), 1.6))
    add(noisy(truth, LEVELS, 1)[[2]])  # a standard itself
    add(100.0 * noisy(truth, [25.0], 16) + 10.0)
    return made


def of_library(model: geonode.model.GeodesicModel, one: dict[str, Any]) -> Any:
    options = {{"dilutionStd": "dilution_std"}.get(name, name): value for name, value in one["options"].items()}
    try:
        return model.quantify(
            one["values"], one["wavelengths"], mask=one["mask"], name=one["name"], replicates=True, **options
        )
    except GeonodeError as error:
        return str(error)


def as_json(one: dict[str, Any]) -> dict[str, Any]:
    mask = np.zeros(len(one["wavelengths"]), dtype=bool) if one["mask"] is None else one["mask"]
    rows = [[None if gone else v for v, gone in zip(row, mask, strict=True)] for row in one["values"].tolist()]
    return {**one, "wavelengths": one["wavelengths"].tolist(), "values": rows, "mask": None}


def same(a: Any, b: Any, scale: float = 1.0) -> bool:
    """To rounding, of what is as large as ``scale``: a concentration near zero is the difference of larger ones."""
    return a == pytest.approx(b, rel=1e-7, abs=1e-9 * scale)


def compare(model: geonode.model.GeodesicModel, mine: dict[str, Any], theirs: Any) -> None:
    if isinstance(theirs, str):
        # How to ask for an answer to each of several samples is another thing on a page.
        theirs = theirs.replace("; ask for an answer to each (without replicates=True).", f"; {UNTICK}.")
        # A step of a preprocessing names itself in the library; as plain numbers it has no name of its own.
        assert mine == {"refused": theirs} if model.preprocessing is None else theirs[-60:] in mine["refused"]
        return
    assert mine.get("verdict") == theirs.verdict, mine
    assert mine["sentence"] == theirs.sentence(model.calibration.unit)
    assert mine["notes"] == list(theirs.notes) and mine["why"] == list(theirs.why)
    assert same(mine["q"], theirs.q) and same(mine["t2"], theirs.t2)
    assert (mine["replicates"], mine["masked"]) == (theirs.replicates, theirs.masked)
    span = float(np.ptp(model.calibration.levels))
    for name, components in (("components", theirs.components), ("components95", theirs.verdict_components)):
        assert len(mine[name]) == len(components)
        for a, b in zip(mine[name], components, strict=True):
            assert (a["openLow"], a["openHigh"]) == (b.open_low, b.open_high)
            for part in ("low", "high", "estimate", "probability", "mean", "std"):
                assert same(a[part], getattr(b, part), 1.0 if part == "probability" else span), (name, part)


# ---------------------------------------------------------------------- law


@needs_node
@pytest.mark.parametrize("name", CALIBRATIONS)
def test_two_hundred_unknowns_get_the_librarys_answer(models, name):
    """Twenty-five for each calibration: verdict, sentence, notes, every end of every set, refusals."""
    model = models(name)
    unknowns = unknowns_of(TRUTHS.get(name, monotone), seed=len(name))
    answers = asked(answer_data(model), [as_json(one) for one in unknowns])
    assert len(answers) == 25
    theirs = [of_library(model, one) for one in unknowns]
    for mine, one in zip(answers, theirs, strict=True):
        compare(model, mine, one)
    said = " ".join(why for one in theirs if not isinstance(one, str) for why in one.why)
    fault = model.calibration.standing.fault
    assert fault in said and ("fault" in said) == (fault != "")


@needs_node
def test_an_end_standard_measured_again_gets_the_librarys_answer():
    """Its sets are closed where the search ended, at every level; a little further on they are not."""

    def falling(c):
        return monotone(120.0 - np.asarray(c))

    model = fitted(falling, LEVELS[1:])
    unknowns = [
        {
            "name": f"u{c:g}",
            "wavelengths": WAVE,
            "values": noisy(falling, [c], 18),
            "mask": None,
            "options": {"level": p},
        }
        for c in (60.0, 61.0, 68.0, 10.0)
        for p in (0.5, 0.8, 0.95)
    ]
    theirs = [of_library(model, one) for one in unknowns]
    for mine, one in zip(asked(answer_data(model), [as_json(one) for one in unknowns]), theirs, strict=True):
        compare(model, mine, one)
    ended = [any("sets end where the search did" in note for note in one.notes) for one in theirs]
    assert any(ended) and not all(ended)


SPOILT = {
    "offset": lambda s: s + 0.05,
    "tilt": lambda s: s + np.linspace(0.08, -0.02, len(WAVE)),
    "shift": lambda s: np.interp(WAVE - 6.0, WAVE, s),
    "interferent": lambda s: s + 0.08 * band(600.0, 12.0),
    "scatter": lambda s: s + 0.1 * (WAVE / 300.0) ** -4,
    "scale": lambda s: 0.8 * s,
    "other path length": lambda s: 0.5 * s,
    "resolution": lambda s: np.convolve(np.pad(s, 12, mode="edge"), np.ones(25) / 25.0, mode="valid"),
    "transmittance": lambda s: 10.0**-s,
    "absorptance": lambda s: 1.0 - 10.0**-s,
    "negated": lambda s: -s,
    "two bands": lambda s: s + 0.2 * band(350.0, 8.0) + 0.1 * band(650.0, 8.0),
}


@needs_node
@pytest.mark.parametrize("name", ["saturating", "folding", "preprocessed", "smoothed"])
def test_spoilt_spectra_get_the_librarys_cause(models, name):
    """Law: where, how large and why, word for word, behind a preprocessing too; and causes are named."""
    model, truth = models(name), TRUTHS.get(name, monotone)
    spectra = [change(noisy(truth, [(12.0, 45.0)[k % 2]], 40)[0]) for k, change in enumerate(SPOILT.values())]
    asking = {"mask": None, "options": {}, "wavelengths": WAVE}
    unknowns = [asking | {"name": f"u{k}", "values": one[None]} for k, one in enumerate(spectra)]
    theirs = [of_library(model, one) for one in unknowns]
    for mine, one in zip(asked(answer_data(model), [as_json(one) for one in unknowns]), theirs, strict=True):
        compare(model, mine, one)
    named = {one.explanation.cause for one in theirs if not isinstance(one, str) and one.explanation is not None}
    assert len(named - {None}) >= 3


@needs_node
def test_the_verdicts_are_of_every_kind(models):
    """Without this the law might hold for one verdict alone."""
    found = set()
    for name in ("saturating", "folding", "straight, measured twice", "several analytes"):
        found |= {
            getattr(of_library(models(name), one), "verdict", "refused")
            for one in unknowns_of(TRUTHS.get(name, monotone), 3)
        }
    assert found == {*geonode.calibration.VERDICTS, "refused"}


@needs_node
def test_the_overlay_is_the_predicted_spectrum(models):
    model = models("folding")
    (mine,) = asked(answer_data(model), [as_json(unknowns_of(folding, 4)[0])])
    mean, _ = model.predict_spectra(mine["nearest"][0])
    assert np.abs(np.array(mine["predicted"]) - mean.values[0]).max() < 1e-4 * np.ptp(mean.values)


# ---------------------------------------------------------------------- files


def rows_of(delimiter: str, decimal: str, c: float = 25.0, digits: int = 5) -> str:
    (values,) = noisy(monotone, [c], 3)
    rows = (f"{x:g}{delimiter}{y:.{digits}f}" for x, y in zip(WAVE, values, strict=True))
    return "\n".join(rows).replace(".", decimal) + "\n"


def quoted(delimiter: str) -> str:
    """Every cell in quotes, with a decimal comma; wavelengths too."""
    rows = (line.split(";") for line in rows_of(";", ",").splitlines())
    return "".join(f'"{x},0"{delimiter}"{y}"\n' for x, y in rows)


def with_cells(**cells: str) -> str:
    lines = rows_of(",", ".").splitlines()
    for place, cell in cells.items():
        lines[int(place[1:])] = lines[int(place[1:])].split(",")[0] + "," + cell
    return "\n".join(lines)


SEVERAL = "wavelength,u1,u2\n" + "\n".join(
    f"{x:g},{a:.5f},{b:.5f}" for x, a, b in zip(WAVE, *noisy(monotone, [5.0, 45.0], 8), strict=True)
)
FILES = {
    "plain": rows_of(",", ".").encode(),
    "heading": ("wavelength / nm,absorbance\n" + rows_of(",", ".")).encode(),
    "semicolons, decimal comma": ("nm;Abs\n" + rows_of(";", ",")).encode("utf-8-sig"),
    "tabs, UTF-16": ("λ\tA\n" + rows_of("\t", ".")).encode("utf-16"),
    "Latin-1": ("Wellenlänge;Probe µ\r\n" + rows_of(";", ",").replace("\n", "\r\n")).encode("latin-1"),
    "blanks": rows_of("   ", ".").encode(),
    "comments": ("# made by hand\n\n" + rows_of(",", ".")).encode(),
    "descending": "\n".join(reversed(rows_of(",", ".").splitlines())).encode(),
    "several": SEVERAL.encode(),
    "capped": with_cells(r10="3.00000", r11="3.00000", r12="3.00000").encode(),
    "over range": with_cells(r10="OVRFLW", r20="-0").encode(),
    "an empty cell": with_cells(r20="").encode(),
    "words between": with_cells(r50="see below").encode(),
    "thousands": "\n".join(f"{x:g};{c}" for x, c in zip(WAVE, ["773", "2.752", "1.204"] * 34, strict=False)).encode(),
    "commas within": ("nm,A\n" + rows_of(",", ",")).encode(),
    "commas within two": ("nm,A,B\n" + rows_of(",", ",").replace("\n", ",0,01\n")).encode(),
    "quoted thousands": "\n".join(f'{x:g},"{c}"' for x, c in zip(WAVE, ["1,773", "2,752"] * 51, strict=False)).encode(),
    "quoted, semicolons": quoted(";").encode(),
    "quoted, tabs": quoted("\t").encode(),
    "quoted, commas": quoted(",").encode(),
    "quoted, commas, heading": ('"nm","Abs"\n' + quoted(",")).encode(),
    "quoted, commas, several": "\n".join(
        f'{row},"0,1{k % 7}"' for k, row in enumerate(quoted(",").splitlines())
    ).encode(),
    "quoted, commas, exponents": quoted(",").replace('"\n', 'E-1"\n').encode(),
    "quoted, wavelengths plain": "\n".join(f'{x:g},"{0.5 + x / 1e4:.5f}"'.replace(".", ",") for x in WAVE).encode(),
    "quoted, a comma bare": quoted(",").replace('"', "", 4).encode(),
    "quoted, one part only": quoted(",").replace('"', "", 2).encode(),
    "three digits": "\n".join(f"{x:g};{c}" for x, c in zip(WAVE, ["1,773", "2,752"] * 51, strict=False)).encode(),
    "electronvolts": ("energy / eV,absorbance\n" + rows_of(",", ".")).encode(),
    "wavenumbers": ("wavenumber / cm-1,absorbance\n" + rows_of(",", ".")).encode(),
    "percent": ("nm,%T\n" + rows_of(",", ".")).encode(),
    "counted": "\n".join(f"{k},{0.1 + 0.01 * k:.3f}" for k in range(40)).encode(),
    "scan forth and back": (rows_of(",", ".") + "\n".join(reversed(rows_of(",", ".").splitlines()))).encode(),
    "one number": b"0.345\n",
    "nothing": b"",
    "a picture": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "a workbook": b"PK\x03\x04" + b"\0" * 40,
    "prose": b"dear colleague,\nthe spectrum is attached\nto the next letter\n",
} | {maker.__name__: maker() for maker in samples.MAKERS}
MUST_READ = ("plain", "heading", "semicolons, decimal comma", "tabs, UTF-16", "Latin-1", "blanks", "comments")
MUST_READ += ("descending", "several", "capped", "over range", "pairs", "delimited")
MUST_READ += tuple(name for name in FILES if name.startswith("quoted, ") and not name.endswith(("bare", "only")))
MUST_REFUSE = (
    "words between",
    "thousands",
    "electronvolts",
    "wavenumbers",
    "percent",
    "counted",
    "scan forth and back",
)
MUST_REFUSE += ("commas within", "commas within two", "quoted thousands", "three digits")
MUST_REFUSE += ("one number", "nothing", "a picture", "a workbook", "prose", "jcamp", "spc", "xlsx", "netcdf")


@pytest.fixture(scope="module")
def read(models) -> dict[str, dict[str, Any]]:
    unknowns = [{"file": f"{name}.txt", "bytes": base64.b64encode(data).decode()} for name, data in FILES.items()]
    return dict(zip(FILES, asked(answer_data(models("saturating")), unknowns), strict=True))


@needs_node
@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_as_geonode_reads_it_or_refused(name, read, models, tmp_path):
    """Never another number than the readers': where the page reads at all, wavelengths, values and masks are theirs."""
    mine, standards = read[name], models("saturating").standards
    if "refused" in mine:
        assert name not in MUST_READ, mine
        assert mine["refused"].startswith(f"{name}.txt") and mine["refused"].endswith(".")
        return
    assert name not in MUST_REFUSE
    path = tmp_path / f"{name}.txt"
    path.write_bytes(FILES[name])
    theirs = read_unknowns([path], standards, each=True)
    assert len(mine["spectra"]) == len(theirs)
    order = np.argsort(mine["wavelengths"])
    for one, other in zip(mine["spectra"], theirs, strict=True):
        assert np.array(mine["wavelengths"])[order] == pytest.approx(other.wavelengths)
        masked = np.array(one["masked"])[order]
        assert (masked == other.mask[0]).all()
        values = np.array([np.nan if v is None else v for v in one["values"]])[order]
        assert values[~masked] == pytest.approx(other.spectra[0][~masked])
