"""One wrong replicate is named before any level is accused, and genuine replicates are left in peace."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import geonode
from geonode.calibration import Calibration, check_standards, suggest_standard
from geonode.calibration.assessment.replicates_check import check_replicates
from geonode.calibration.assessment.warnings import dataset_warnings
from geonode.cli import app
from geonode.corpus import draw
from geonode.data import SpectralDataset, simulate_assay
from geonode.report.calibration_report import CalibrationReport
from geonode.report.conclusion import Conclusion
from tests.calibration import assays
from tests.calibration.assays import noisy, straight

WAVE = np.linspace(400.0, 700.0, 76)
LEVELS = (0.0, 10.0, 20.0, 50.0, 100.0, 200.0)


def clean(c: float, bound: float = 100.0) -> np.ndarray:
    first, second = (np.exp(-0.5 * ((WAVE - at) / width) ** 2) for at, width in ((500.0, 35.0), (600.0, 40.0)))
    return c / (1.0 + c / bound) * 0.01 * first + 0.003 * c * second + 0.05


def standards(replicates: int, seed: int = 0) -> dict[tuple[float, int], np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        (c, k): clean(c) * rng.normal(1.0, 0.004) + rng.normal(0.0, 0.003, len(WAVE))
        for c in LEVELS
        for k in range(replicates)
    }


def swapped(of: dict) -> dict:
    return of | {(20.0, 1): of[100.0, 1], (100.0, 1): of[20.0, 1]}


def water(of: dict) -> dict:
    return of | {(50.0, 0): np.random.default_rng(7).normal(0.0, 0.003, len(WAVE))}


def another_dye(of: dict) -> dict:
    return of | {(50.0, 0): of[50.0, 0] + 0.8 * np.exp(-0.5 * ((WAVE - 440.0) / 15.0) ** 2)}


SPOILT = {"swapped": swapped, "water": water, "another dye": another_dye}


def dataset(of: dict) -> SpectralDataset:
    names = [f"{c:g}-{k + 1}" for c, k in of]
    return SpectralDataset(list(of.values()), [c for c, _ in of], WAVE, concentration_unit="µM", names=names)


@pytest.mark.parametrize("replicates", [3, 4])
@pytest.mark.parametrize(
    ("kind", "named", "said"),
    [
        ("swapped", {"20-2", "100-2"}, "looks like 100 µM"),
        ("water", {"50-1"}, "looks like 0 µM (a blank, or an empty cuvette or well)"),
        ("another dye", {"50-1"}, "looks like no other level"),
    ],
)
def test_the_wrong_replicate_is_named_and_no_level_is_accused(kind, named, said, replicates) -> None:
    for seed in range(3):
        calibration = Calibration.from_dataset(dataset(SPOILT[kind](standards(replicates, seed))))
        found = calibration.standing.replicates
        assert {name for one in found for name in one.names} == named and all(one.known for one in found)
        assert said in calibration.standing.contradictions[0] and min(one.times for one in found) > 6.0
        assert not any(check.flagged for check in check_standards(calibration))
        assert calibration.standing.warnings[0] == found[0].sentence("µM")


@pytest.mark.parametrize("kind", SPOILT)
def test_what_follows_from_a_wrong_replicate_is_not_said(kind) -> None:
    calibration = Calibration.from_dataset(dataset(SPOILT[kind](standards(3))))
    conclusion = Conclusion(calibration)
    told = " ".join([conclusion.headline(), *conclusion.lines(), CalibrationReport(calibration).to_markdown()])
    assert "hardly tell" not in told and "contradicts the others" not in told and "use PLS" not in told
    honest = Calibration.from_dataset(dataset(standards(3)))
    advice, expected = suggest_standard(calibration), suggest_standard(honest)
    assert advice.before == pytest.approx(expected.before, rel=0.5)
    assert not conclusion.usable or conclusion.headline().startswith("Usable")
    if not conclusion.usable:
        assert conclusion.headline().startswith("Not usable as it stands: the replicate")


@pytest.mark.parametrize("bad", [0, 1])
def test_of_two_replicates_the_one_that_the_others_do_not_want_is_named(bad: int) -> None:
    of = standards(2) | {(50.0, bad): clean(0.0) + np.random.default_rng(3).normal(0.0, 0.003, len(WAVE))}
    calibration = Calibration.from_dataset(dataset(of))
    (found,) = calibration.standing.replicates
    assert found.known and found.names == (f"50-{bad + 1}",) and found.looks_like == 0.0
    assert not any(check.flagged for check in check_standards(calibration))


def test_of_two_replicates_that_are_both_off_nobody_can_tell() -> None:
    of, rng = standards(2), np.random.default_rng(4)
    of |= {(50.0, k): clean(50.0 * f) + rng.normal(0.0, 0.003, len(WAVE)) for k, f in ((0, 0.5), (1, 1.6))}
    calibration = Calibration.from_dataset(dataset(of))
    (found,) = calibration.standing.replicates
    assert not found.known and found.names == ("50-1", "50-2")
    assert "do not tell which" in found.sentence("µM") and 50.0 not in calibration.standing.sound.levels


def test_a_whole_level_is_still_the_level_that_is_accused() -> None:
    levels = np.repeat(np.arange(0.0, 61.0, 10.0), 3)
    true = np.where(levels == 30.0, 38.0, levels)  # sold as 30
    calibration = Calibration(levels, noisy(straight, true, 0), assays.WAVE)
    assert not calibration.standing.replicates
    assert [check.level for check in check_standards(calibration) if check.flagged] == [30.0]


@pytest.mark.parametrize("replicates", [2, 3, 4])
def test_genuine_replicates_are_accused_in_less_than_one_assay_of_a_hundred(replicates: int) -> None:
    drawn = draw(200, 6, 64, 0, 0, seed=31, replicates=replicates, dtype=torch.float64)
    accused = 0
    for c, spectra, count in zip(drawn.concentration, drawn.replicates, drawn.count, strict=True):
        kept = [own[:k] for own, k in zip(spectra.numpy(), count.tolist(), strict=True)]
        accused += bool(check_replicates(np.repeat(c.numpy(), count.numpy()), np.concatenate(kept)))
    assert accused <= 2
    for seed in range(5):
        simulated = simulate_assay(replicates=replicates, seed=seed)
        assert not check_replicates(np.asarray(simulated.concentrations), np.asarray(simulated.spectra))


def test_an_empty_well_needs_no_blank_and_no_names_to_be_seen() -> None:
    of = {key: value for key, value in water(standards(3)).items() if key[0] > 0.0}
    (unnamed,) = check_replicates(np.array([c for c, _ in of]), np.stack(list(of.values())))
    assert "next to nothing is in it" in unnamed.sentence("µM") and unnamed.looks_like is None
    assert unnamed.names == ("1 of 3",)


def test_there_is_nothing_to_say_without_replicates_or_levels() -> None:
    of = standards(1)
    assert check_replicates(np.array([c for c, _ in of]), np.stack(list(of.values()))) == []
    two = {key: value for key, value in standards(3).items() if key[0] in (0.0, 10.0)}
    assert check_replicates(np.array([c for c, _ in two]), np.stack(list(two.values()))) == []


def test_fit_inspect_quantify_and_the_report_name_it(tmp_path) -> None:
    of = swapped(standards(3))
    table = np.column_stack([WAVE, *of.values()])
    path = tmp_path / "standards.csv"
    header = "wavelength," + ",".join(f"{c:g} µM" for c, _ in of)
    np.savetxt(path, table, delimiter=",", header=header, comments="", fmt="%.6g")
    data = geonode.load_standards(path)
    wrong = "replicate '20 µM"
    assert any(one.startswith("the " + wrong) for one in dataset_warnings(data))
    run, bundle, answer = CliRunner(), tmp_path / "a.bundle", tmp_path / "a.json"
    told = run.invoke(app, ["fit", str(path), "--out", str(bundle)], catch_exceptions=False).output
    assert wrong in told and "hardly tell" not in told
    assert wrong in run.invoke(app, ["inspect", str(path)], catch_exceptions=False).output
    np.savetxt(
        tmp_path / "u.csv", np.column_stack([WAVE, clean(35.0)]), delimiter=",", header="wavelength,u", comments=""
    )
    said = run.invoke(
        app, ["quantify", str(bundle), str(tmp_path / "u.csv"), "--json", str(answer)], catch_exceptions=False
    )
    assert wrong in said.output and wrong in " ".join(json.loads(answer.read_text())["standards"]["notes"])


@pytest.mark.parametrize("rows", [(0, 2), (1, 2), (1, 3)])
def test_where_the_blank_looks_like_a_level_beyond_the_fold_no_good_standard_is_blamed(rows) -> None:
    """Of two replicates nobody can tell which is swapped, so two levels go; four are left, with a gap at the fold."""
    levels = np.repeat([0.0, 10.0, 20.0, 30.0, 40.0, 60.0], 2)
    spectra = noisy(assays.folding, levels, 0, 0.003)
    spectra[list(rows)] = spectra[list(rows)[::-1]]
    standing = Calibration(levels, spectra, assays.WAVE).standing
    assert {check.level for check in standing.replicates} == {0.0, 10.0} and len(standing.sound.levels) == 4
    assert not any(check.flagged for check in standing.checks) and standing.slips == []
