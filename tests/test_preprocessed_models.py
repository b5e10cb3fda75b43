"""`fit`, `quantify`, `predict` and `evaluate` with preprocessing: no fold sees what it leaves out, a bundle keeps the
steps, unknowns are treated as the standards were, and bad steps are one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import geonode
from geonode import GeodesicConfig, SpectralDataset
from geonode import bundle as bundle_module
from geonode.bundle import read_bundle, write_bundle
from geonode.calibration import Calibration, quality_check
from geonode.calibration.leave_out import nested_leave_one_level_out
from geonode.cli import app
from geonode.data import Preprocessing
from geonode.errors import BundleError, InputError
from geonode.validation.fold_spectra import preprocessed
from geonode.validation.inverse_comparison import evaluate_inverse

LEVELS = np.array([0.0, 10.0, 20.0, 30.0, 40.0, 60.0])
WAVE = np.arange(300.0, 701.0, 5.0)
CHAIN = ["range:350-650", "savgol:7,2,1", "snv"]
LEARNING = ["range:350-650", "msc", "center"]
GP = GeodesicConfig(predictor="gp")
QUICK = ["linear", "pchip", "gp"]


def truth(c) -> np.ndarray:
    x = np.atleast_1d(c)[:, None] / (np.atleast_1d(c)[:, None] + 25.0)
    one, two = (np.exp(-0.5 * ((WAVE - m) / 45.0) ** 2) for m in (600.0, 450.0))
    common = 1.5 * np.exp(-0.5 * ((WAVE - 520.0) / 60.0) ** 2)  # as MSC needs: no spectrum is unlike their mean
    return 0.2 + common + 0.9 * x * one + 0.3 * (1 - x) * two


def spectrum(c: float, seed: int = 1) -> np.ndarray:
    return truth(c)[0] + 0.002 * np.random.default_rng(seed).standard_normal(len(WAVE))


def standards(change=None) -> SpectralDataset:
    c = np.repeat(LEVELS, 2)
    spectra = truth(c) + 0.002 * np.random.default_rng(0).standard_normal((len(c), len(WAVE)))
    if change is not None:
        spectra = change(c, spectra)
    return SpectralDataset(spectra, c, WAVE, concentration_unit="ppb", signal_unit="AU")


def spoil(level: float):
    """Another shape, offset and size of the spectra of one level."""
    return lambda c, y: np.where((c == level)[:, None], 1.7 * y + 0.3 * np.sin(WAVE / 9.0) + 0.1, y)


@pytest.fixture(scope="module")
def model():
    return geonode.fit(standards(), GP, preprocessing=CHAIN)


# ---------------------------------------------------------------- folds


@pytest.mark.parametrize("steps", [LEARNING, ["airpls", "emsc"], CHAIN])
def test_a_held_out_level_never_changes_what_its_training_set_sees(steps):
    """Whatever the left-out spectra are, the spectra of every training set stay the same to the bit."""
    splits = nested_leave_one_level_out(6)
    chain = Preprocessing.of(steps)
    assert chain is not None
    clean, spoilt = (preprocessed(d, d.level_index, chain, splits) for d in (standards(), standards(spoil(20.0))))
    unseen = [k for k, training in enumerate(splits.training) if 2 not in training]
    assert len(unseen) == 6
    for k in unseen:
        training = splits.training[k]
        np.testing.assert_array_equal(clean.means[k][training], spoilt.means[k][training])
        # The held-out level goes through the very steps that the training set was fitted with.
        rows = np.isin(clean.index, training)
        own = chain.fresh()
        own.fit_arrays(standards().spectra[rows], WAVE)
        held_out, _ = own.transform_spectra(standards().spectra[~rows], WAVE)
        counts = [held_out[clean.index[~rows] == j].mean(axis=0) for j in splits.targets[k]]
        np.testing.assert_allclose(clean.means[k][splits.targets[k]], counts, atol=1e-12)
    if chain.learns:  # and the law can fail: a training set that has the level does see the change
        others = np.array([0, 1, 3, 4])
        assert np.abs(clean.means[5][others] - spoilt.means[5][others]).max() > 1e-3


def test_evaluate_predicts_a_level_from_steps_that_do_not_know_it():
    reports = [
        geonode.evaluate(d, methods=QUICK, preprocessing=LEARNING) for d in (standards(), standards(spoil(20.0)))
    ]
    for name in QUICK:
        clean, spoilt = (report.results[name] for report in reports)
        np.testing.assert_array_equal(clean.predictions[2], spoilt.predictions[2])
        assert np.abs(clean.predictions[3] - spoilt.predictions[3]).max() > 1e-3
        assert spoilt.rmse[2] > 3.0 * clean.rmse[2]
    assert any("fitted inside each fold" in note and "msc" in note for note in reports[0].notes)
    assert reports[0].fold_winners[2] == reports[1].fold_winners[2]


def test_steps_that_learn_nothing_may_be_applied_beforehand():
    by_hand = Preprocessing.parse(",".join(CHAIN)).fit_transform(standards())
    one = geonode.evaluate(standards(), methods=QUICK, preprocessing=CHAIN)
    other = geonode.evaluate(by_hand, methods=QUICK)
    assert one.winner == other.winner
    for name in QUICK:
        np.testing.assert_allclose(one.results[name].rmse, other.results[name].rmse, rtol=1e-9)


def test_the_neural_flow_is_given_the_spectra_of_its_fold():
    seen = []

    def trainer(gps, targets, wavelengths, config, seed=0, progress=None, device="cpu"):
        seen.extend(gps)
        return [gp.predict_mean(target) for gp, target in zip(gps, targets, strict=True)]

    geonode.evaluate(standards(), methods=["node"], inner=False, preprocessing=LEARNING, node_trainer=trainer)
    for i, gp in enumerate(seen):
        kept = standards().without_level(i)
        chain = Preprocessing.of(LEARNING)
        assert chain is not None
        np.testing.assert_allclose(gp.level_means, chain.fit_transform(kept).level_means(), atol=1e-12)


def test_inverse_folds_are_those_of_hand_made_folds():
    chain = Preprocessing.of(LEARNING)
    found = evaluate_inverse(standards(), methods=["geonode", "pls"], preprocessing=chain)
    kept = standards().without_level(2)
    own = chain.fresh()
    calibration = Calibration.from_dataset(own.fit_transform(kept))
    unknown, _ = own.transform_spectra(standards().only_level(2).spectra, WAVE)
    errors = [100.0 * (a.estimate - 20.0) / 60.0 for a in calibration.quantify_many(unknown)]
    np.testing.assert_allclose(found["geonode"]["per_level"][2]["errors"], errors, rtol=1e-6, atol=1e-9)
    spoilt = evaluate_inverse(standards(spoil(20.0)), methods=["pls"], preprocessing=chain)
    assert spoilt["pls"]["per_level"][2]["errors"] != found["pls"]["per_level"][2]["errors"]


def test_limits_of_a_calibration_come_from_folds_of_their_own():
    chain = Preprocessing.of(["msc"])
    assert chain is not None
    held = []
    for data in (standards(), standards(spoil(20.0))):
        own = chain.fresh()
        held.append(Calibration.from_dataset(own.fit_transform(data), preprocessing=own).held_out)
    fold = chain.fresh()
    kept = fold.fit_transform(standards().without_level(2))
    expected = Calibration.from_dataset(kept).gp.predict_mean([20.0])[0]
    seen = fold.transform(standards().only_level(2)).level_means()[0]
    np.testing.assert_allclose(held[0].residual[2], seen - expected, atol=1e-9)
    assert np.abs(held[1].residual[2]).max() > 3 * np.abs(held[0].residual[2]).max()


# ---------------------------------------------------------------- unknowns


@pytest.mark.parametrize("steps", [CHAIN, LEARNING, ["snv", "range:400-600"], ["range:400-600"]])
def test_quantify_equals_quantify_on_data_preprocessed_by_hand(steps):
    """For steps that learn, the limits differ (folds of their own), what is found does not depend on them."""
    chain = Preprocessing.parse(",".join(steps))
    by_hand = geonode.fit(chain.fit_transform(standards()), GP)
    inside = geonode.fit(standards(), GP, preprocessing=steps)
    unknowns = np.stack([spectrum(27.0, 1), spectrum(27.0, 2)])
    y, x = chain.transform_spectra(unknowns, WAVE)
    expected, found = by_hand.quantify(y, x, replicates=True), inside.quantify(unknowns, WAVE, replicates=True)
    assert found.verdict == "quantified" and found.estimate == pytest.approx(27.0, abs=2.0)
    np.testing.assert_allclose((found.q, found.masked), (expected.q, expected.masked), rtol=1e-9)
    assert found.estimate == pytest.approx(expected.estimate, rel=1e-3 if chain.learns else 1e-9)
    if not chain.learns:
        np.testing.assert_allclose((found.low, found.high, found.t2), (expected.low, expected.high, expected.t2))
        assert (found.q_limit, found.t2_limit) == pytest.approx((expected.q_limit, expected.t2_limit))
    assert any(note == f"preprocessed as the standards were: {chain}" for note in found.notes)
    assert inside.quantify(unknowns, replicates=True).estimate == found.estimate
    (many, _) = inside.calibration.quantify_many(unknowns)
    assert many.estimate == pytest.approx(by_hand.calibration.quantify_many(y)[0].estimate, rel=1e-3)


def test_an_unknown_needs_only_the_range_that_is_used(model):
    whole = model.quantify(spectrum(27.0), WAVE)
    part = (WAVE >= 340.0) & (WAVE <= 660.0)
    assert model.quantify(spectrum(27.0)[part], WAVE[part]).estimate == whole.estimate
    part = (WAVE >= 360.0) & (WAVE <= 660.0)
    with pytest.raises(InputError, match="misses 350 to 360 of the standards' range 350 to 650"):
        model.quantify(spectrum(27.0)[part], WAVE[part])


def test_another_grid_is_interpolated_before_windows_that_count_points(model):
    fine = np.arange(300.0, 700.5, 1.0)
    found = model.quantify(np.interp(fine, WAVE, spectrum(27.0)), fine)
    assert found.estimate == pytest.approx(model.quantify(spectrum(27.0)).estimate, rel=1e-6)


def test_masked_values_are_refused_where_a_step_needs_them(model):
    outside, inside = WAVE == 320.0, WAVE == 500.0
    assert model.quantify(spectrum(27.0), WAVE, mask=outside).masked == 0
    with pytest.raises(InputError, match=r"tube 7: 1 of 61 wavelengths are masked .*\(500 to 500\).*'derivative: "):
        model.quantify(spectrum(27.0), WAVE, mask=inside, name="tube 7")
    ranges = geonode.fit(standards(), GP, preprocessing="range:350-650")
    assert ranges.quantify(spectrum(27.0), WAVE, mask=inside).masked == 1


def test_the_unit_is_checked_on_what_was_measured(model):
    with pytest.raises(InputError, match="another unit"):
        model.quantify(1000.0 * spectrum(27.0))  # behind SNV it would look the same


def test_a_matrix_blank_is_taken_off_before_the_steps(model):
    matrix = 0.3 * np.exp(-WAVE / 200.0)
    found = model.quantify(spectrum(27.0) + matrix, WAVE, blank=np.stack([truth(0.0)[0] + matrix] * 2))
    assert found.estimate == pytest.approx(27.0, abs=1.5)


def test_a_control_shows_a_change_of_sensitivity_that_snv_removes(model):
    check = quality_check(model.calibration, 1.1 * spectrum(30.0), 30.0)
    assert check.passed and check.gain == pytest.approx(1.1, abs=0.01)


def test_predictions_are_labelled_as_preprocessed(model):
    mean, std = model.predict_spectra([15.0])
    assert mean.wavelength.values[[0, -1]].tolist() == [350.0, 650.0]
    assert mean.attrs == std.attrs
    assert mean.attrs["units"] == "1" and mean.attrs["signal"] == "preprocessed absorbance"
    assert mean.attrs["preprocessing"] == "range: 350-650, derivative: window_length=7 polyorder=2 deriv=1, snv"
    expected, _ = Preprocessing.parse(",".join(CHAIN)).fit_arrays(truth([15.0]), WAVE)
    assert np.sqrt(np.mean((mean.values - expected) ** 2)) < 0.1
    plain, _ = geonode.fit(standards(), GP).predict_spectra([15.0])
    assert "preprocessing" not in plain.attrs and plain.attrs["units"] == "AU"


# ---------------------------------------------------------------- bundle


@pytest.mark.parametrize("steps", [CHAIN, LEARNING])
@pytest.mark.parametrize("predictor", ["gp", "node"])
def test_round_trip_of_the_bundle(steps, predictor, tmp_path):
    fitted = geonode.fit(
        standards(),
        GeodesicConfig(flow="path_independent", predictor=predictor, epochs=2),
        device="cpu",
        preprocessing=steps,
    )
    fitted.save(tmp_path / "a")
    again = geonode.load(tmp_path / "a")
    assert str(again.preprocessing) == str(fitted.preprocessing)
    np.testing.assert_array_equal(again.standards.spectra, standards().spectra)
    np.testing.assert_array_equal(again.dataset.spectra, fitted.dataset.spectra)
    assert again.dataset.units == fitted.dataset.units and again.dataset.signal == fitted.dataset.signal
    assert again.dataset.notes == fitted.dataset.notes
    for one, other in zip(fitted.predict_spectra([15.0]), again.predict_spectra([15.0]), strict=True):
        np.testing.assert_array_equal(one, other)
    assert again.quantify(spectrum(27.0)).to_dict() == fitted.quantify(spectrum(27.0)).to_dict()
    again.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    _, header = read_bundle(tmp_path / "a")
    assert header["version"] == 5 and header["preprocessing"][0]["name"] == "range"


@pytest.mark.parametrize("preprocessing", [None, "snv"])
def test_an_earlier_reader_is_told_that_it_cannot_read_this(preprocessing, tmp_path, monkeypatch):
    geonode.fit(standards(), GP, preprocessing=preprocessing).save(tmp_path / "new")
    assert (geonode.load(tmp_path / "new").preprocessing is None) == (preprocessing is None)
    monkeypatch.setattr(bundle_module, "VERSION", 4)  # an earlier reader
    with pytest.raises(BundleError, match="version 5, and this geonode reads up to 4"):
        geonode.load(tmp_path / "new")


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        ([{"name": "nonsense", "parameters": {}}], "no preprocessing step 'nonsense'"),
        ([{"name": "snv"}], "is not a complete geonode bundle"),
        (7, "is not a complete geonode bundle"),
        ([{"name": "minmax", "parameters": {}}], "gives other spectra of the standards than when it was fitted"),
    ],
)
def test_altered_steps_are_refused(steps, sentence, tmp_path):
    geonode.fit(standards(), GP, preprocessing="snv").save(tmp_path / "a")
    tensors, header = read_bundle(tmp_path / "a")
    write_bundle(tmp_path / "a", tensors, {**{k: header[k] for k in header if k != "checksum"}, "preprocessing": steps})
    with pytest.raises(BundleError, match=sentence):
        geonode.load(tmp_path / "a")


def test_the_state_of_a_calibration_keeps_the_steps(model):
    arrays, meta = model.calibration.state()
    again = Calibration.from_state(arrays, json.loads(json.dumps(meta)))
    assert again.quantify(spectrum(27.0)).to_dict() == model.calibration.quantify(spectrum(27.0)).to_dict()
    other = Preprocessing.parse("snv").fit(standards().without_level(0))
    with pytest.raises(InputError, match="fitted on 10 spectra and there are 12 standards"):
        Calibration.from_dataset(standards(), preprocessing=other)


def test_masked_wavelengths_of_standards_are_left_out_and_said():
    mask = np.zeros((12, len(WAVE)), dtype=bool)
    mask[3, 10] = True
    data = SpectralDataset(standards().spectra, standards().concentrations, WAVE, mask=mask)
    fitted = geonode.fit(data, GP, preprocessing="snv")
    assert fitted.dataset.shape == (12, 80) and any("1 of 81 wavelengths dropped" in n for n in fitted.dataset.notes)
    assert fitted.quantify(spectrum(27.0), WAVE).verdict == "quantified"
    report = geonode.evaluate(data, methods=["linear"], preprocessing="snv")
    assert any("1 of 81 wavelengths are masked in some spectrum" in note for note in report.notes)


# ---------------------------------------------------------------- commands


def run(*arguments, code: int = 0) -> str:
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def table(tmp_path) -> Path:
    y = truth(LEVELS) + 0.002 * np.random.default_rng(0).standard_normal((6, len(WAVE)))
    path = tmp_path / "standards.csv"
    pd.DataFrame({"wavelength": WAVE, **{f"{c:g}": row for c, row in zip(LEVELS, y, strict=True)}}).to_csv(
        path, index=False
    )
    return path


def options(steps) -> list[str]:
    return [word for step in steps for word in ("--preprocess", step)]


def test_the_commands_from_fit_to_report(table, tmp_path):
    said = run("fit", table, "--predictor", "gp", "--out", tmp_path / "a", "--unit", "ppb", *options(CHAIN))
    chain = "range: 350-650, derivative: window_length=7 polyorder=2 deriv=1, snv"
    assert f"note: preprocessed: {chain}" in said
    pd.DataFrame({"wavelength": WAVE, "absorbance": spectrum(27.0)}).to_csv(tmp_path / "u.csv", index=False)
    said = run("quantify", tmp_path / "a", tmp_path / "u.csv", "--json", tmp_path / "r.json")
    assert f"note: preprocessed as the standards were: {chain}" in said
    data = json.loads((tmp_path / "r.json").read_text())
    assert data["unknowns"][0]["estimate"] == pytest.approx(27.0, abs=2.0)
    assert any(chain in note for note in data["unknowns"][0]["notes"])
    assert any(chain in note for note in data["standards"]["notes"])
    said = run("predict", tmp_path / "a", "--at", 15, "--out", tmp_path / "p.csv")
    assert f"note: these are preprocessed spectra ({chain}), not measured ones: preprocessed signal" in said
    assert list(pd.read_csv(tmp_path / "p.csv")) == ["wavelength", "preprocessed_mean_15", "preprocessed_std_15"]
    run("report", tmp_path / "a", "--out", tmp_path / "report")
    assert chain in (tmp_path / "report" / "report.md").read_text()
    run("suggest", tmp_path / "a")


def test_evaluate_command(table, tmp_path):
    said = run(
        "evaluate", table, "--method", "gp", "--method", "linear", "--json", tmp_path / "s.json", *options(LEARNING)
    )
    assert "fitted inside each fold" in said.replace("\n", " ")
    data = json.loads((tmp_path / "s.json").read_text())
    assert data["wavelengths"]["first"] == 350.0 and data["notes"][0].startswith(
        "Spectra were preprocessed (range: 350-650"
    )


@pytest.mark.parametrize("command", ["fit", "evaluate"])
@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        (["nonsense"], "there is no preprocessing step 'nonsense'; there are airpls"),
        ([""], "--preprocess is given an empty value"),
        (["snv:3"], "'3' is one too many; snv takes no value"),
        (["savgol:width=3"], "has no parameter 'width'; it has window_length"),
        (["savgol:4.5,2"], "must be an int"),
        (["savgol:5,9"], "polyorder must be < window_length"),
        (["savgol:99,2"], "window of 99 points, longer than the spectrum, which has 81 wavelengths"),
        (["range:400-450", "median:13"], "window of 13 points, longer than the spectrum, which has 11 wavelengths"),
        (["range:800-900"], "no wavelength between 800 and 900; they run from 300 to 700"),
        (["range:700-400"], "give two wavelengths, low before high"),
        (["range:red"], "write range:400-700"),
        (["baseline:flat"], "write baseline:METHOD, one of airpls"),
        (["range:400-404", "snv"], "values that are not finite"),
    ],
)
def test_bad_steps_are_one_sentence_and_exit_code_2(command, steps, sentence, table, tmp_path):
    extra = ["--predictor", "gp", "--out", tmp_path / "a"] if command == "fit" else ["--method", "linear", "-q"]
    said = run(command, table, *extra, *options(steps), code=2)
    assert sentence in said and len(said.strip().splitlines()) == 1
    assert not (tmp_path / "a").exists()
