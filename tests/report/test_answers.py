"""The page's answers, by its own scripts under node, are the library's; `test_browser_answers.py`: in a browser."""

from __future__ import annotations

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
from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset
from geonode.errors import GeonodeError
from geonode.report.browser.data import answer_data
from geonode.report.browser.section import ANSWERING, script
from tests.calibration.assays import LEVELS, WAVE, band, folding, monotone, noisy, straight
from tests.calibration.posterior.test_twins import retracing

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
