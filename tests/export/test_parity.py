"""What is exported says what the library says: spectra, sets, verdicts, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import geonode
from geonode.errors import InputError
from geonode.export.closed_form import GPSpectra, Quantifier, Warps, eliminate
from geonode.export.export import compiled, export_package, in_process
from geonode.export.node import NodeSpectra, spectral_range
from geonode.export.tensorrt import unsupported
from geonode.metric.warp import scaled_warps
from geonode_runtime import load
from geonode_runtime.distributions import chi2_upper_quantile, f1_quantile, student_quantile
from geonode_runtime.model import _explainer, _standard_spectra
from tests.calibration.assays import LEVELS, WAVE, folding, monotone, noisy
from tests.export.conftest import standards
from tests.export.in_torch import in_torch

onnx = pytest.importorskip("onnx", reason="needs the extra export")


def same(mine, theirs, where="answer") -> None:
    """Two answers as plain data agree: words and structure exactly, numbers to rounding."""
    if isinstance(mine, dict):
        assert mine.keys() == theirs.keys(), where
        for key, value in mine.items():
            same(value, theirs[key], f"{where}.{key}")
    elif isinstance(mine, list):
        assert len(mine) == len(theirs), where
        for k, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            same(a, b, f"{where}[{k}]")
    elif isinstance(mine, float):
        assert mine == pytest.approx(theirs, rel=1e-7, abs=1e-9), where
    else:
        assert mine == theirs, where


# ---------------------------------------------------------------------- laws


def test_quantiles_are_scipys():
    from scipy.special import chdtri, fdtri, stdtrit

    for dof in (1.5, 2.0, 4.7, 8.0, 51.0, 200.0):
        for p in (1e-3, 0.3, 0.6, 0.975, 0.999999):
            assert student_quantile(dof, p) == pytest.approx(stdtrit(dof, p), rel=1e-11)
        for level in (0.01, 0.5, 0.8, 0.95, 0.999):
            assert f1_quantile(dof, level) == pytest.approx(fdtri(1.0, dof, level), rel=1e-11)
    for dof in (1, 3, 12, 600):
        for tail in (0.5, 0.05, 1e-4):
            assert chi2_upper_quantile(dof, tail) == pytest.approx(chdtri(dof, tail), rel=1e-11)


def test_elimination_is_the_schur_complement():
    rng = np.random.default_rng(0)
    half = rng.standard_normal((3, 5, 5))
    c, x = half @ half.swapaxes(1, 2) + np.eye(5), rng.standard_normal((3, 5, 2))
    whole = np.block([[c, x], [x.swapaxes(1, 2), np.zeros((3, 2, 2))]])
    expected = -x.swapaxes(1, 2) @ np.linalg.solve(c, x)
    np.testing.assert_allclose(eliminate(torch.from_numpy(whole), 5).numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize(("origin", "low", "high"), [(0.0, 0.0, 60.0), (0.0, 1e-9, 3e-7), (-2.0, -2.0, 1.5)])
def test_warps_are_the_metrics(origin, low, high):
    span = high - origin
    c = torch.linspace(low - 0.3 * span, high + 2.0 * span, 301, dtype=torch.float64)
    expected = scaled_warps((c - origin) / span, (low - origin) / span, 1.0)
    torch.testing.assert_close(Warps(origin, span, low, high)(c), expected, rtol=1e-11, atol=1e-11)


# ---------------------------------------------------------------------- spectra


@pytest.mark.parametrize("count", [1, 2, 7, 130])
def test_spectra_are_the_librarys_at_every_batch_size(pair, count):
    low, high = pair.model.served_range
    c = np.random.default_rng(count).uniform(low, high, count).astype(np.float32).astype(float)
    mean, std = pair.runtime.predict(c)
    expected, band = pair.model.predict_spectra(c)
    unit = spectral_range(pair.model)
    assert mean.shape == (count, len(WAVE)) and mean.dtype == np.float32
    assert np.abs(mean - expected.values).max() <= 1e-5 * unit
    assert np.abs(std - band.values).max() <= 1e-5 * unit


def test_at_levels_ends_and_beyond(pair):
    low, high = pair.model.served_range
    c = np.unique(np.concatenate([LEVELS, [low, high, 0.5 * (60.0 + high), 1e-4, 0.3]]))
    mean, _ = pair.runtime.predict(c)
    expected, _ = pair.model.predict_spectra(c)
    assert np.abs(mean - expected.values).max() <= 1e-5 * spectral_range(pair.model)
    assert pair.runtime.extrapolated(c).tolist() == expected.extrapolated.values.tolist()


def test_beyond_the_served_range_both_refuse_or_both_extrapolate(gp, node):
    for speaker in (node.runtime.predict, node.model.predict_spectra):
        with pytest.raises(InputError, match=r"Concentration 200 lies outside 0 … 75 ppb"):
            speaker([25.0, 200.0])
    far, _ = gp.runtime.predict([200.0])
    assert np.abs(far - gp.model.predict_spectra([200.0])[0].values).max() <= 1e-5 * spectral_range(gp.model)
    for speaker in (gp.runtime.predict, gp.model.predict_spectra):
        with pytest.raises(InputError, match="finite"):
            speaker([np.nan])


# ---------------------------------------------------------------------- unknowns


def test_answers_are_the_librarys_word_for_word(pair):
    c = np.random.default_rng(1).uniform(0.0, 80.0, 60)
    spectra = noisy(pair.truth, c, 2)
    spectra[::10] += 0.5 * np.exp(-0.5 * ((WAVE - 520) / 15) ** 2)  # foreign
    verdicts = set()
    for mine, theirs in zip(
        pair.runtime.quantify_many(spectra), pair.model.calibration.quantify_many(spectra), strict=True
    ):
        same(mine.to_dict(), theirs.to_dict())
        assert mine.sentence("ppb") == theirs.sentence("ppb") and mine.why == theirs.why
        verdicts.add(mine.verdict)
    assert len(verdicts) >= 3


SPOILT = {
    "offset": lambda s: s + 0.05,
    "tilt": lambda s: s + np.linspace(0.08, -0.02, len(WAVE)),
    "shift": lambda s: np.interp(WAVE - 6.0, WAVE, s),
    "interferent": lambda s: s + 0.08 * np.exp(-0.5 * ((WAVE - 600.0) / 12.0) ** 2),
    "scatter": lambda s: s + 0.1 * (WAVE / 300.0) ** -4,
    "scale": lambda s: 0.8 * s,
    "resolution": lambda s: np.convolve(np.pad(s, 12, mode="edge"), np.ones(25) / 25.0, mode="valid"),
}


@pytest.mark.parametrize("cause", SPOILT)
def test_the_cause_of_a_misfit_is_the_librarys(pair, cause):
    """Law: sentence for sentence, number for number, of replicates and masked spectra too."""
    spectra = np.stack([SPOILT[cause](one) for one in noisy(pair.truth, [25.0] * 2, 3)])
    mask = np.zeros(len(WAVE), dtype=bool)
    mask[20:30] = True
    for options in ({}, {"mask": mask}, {"method": "profile"}):
        both = pair.runtime, pair.model
        mine, theirs = (speaker.quantify(spectra, replicates=True, **options) for speaker in both)
        assert mine.why == theirs.why
        same(mine.explanation_dict(), theirs.explanation_dict())
    assert mine.verdict == "does not match" and len(mine.why) == 2


def test_a_file_from_before_causes_were_kept_says_where_to_ask(gp):
    assert _explainer({}, gp.runtime._arrays) is None
    answer = gp.runtime.quantify(SPOILT["interferent"](noisy(gp.truth, [25.0], 3)[0]), method="profile")
    old = replace(answer, known=None)
    assert old.verdict == "does not match" and "geonode quantify" in old.why[0] and old.explanation_dict() is None


def test_the_standards_own_spectra_are_recognised_alike(pair):
    own = pair.model.calibration.measured.spectra
    mine, theirs = pair.runtime.quantify_many(own), pair.model.calibration.quantify_many(own)
    for a, b, spectrum in zip(mine, theirs, own, strict=True):
        assert any("no new measurement" in note for note in a.notes)
        same(a.to_dict(), b.to_dict())
        same(pair.runtime.quantify(spectrum).to_dict(), pair.model.quantify(spectrum).to_dict())


def test_a_file_from_before_own_spectra_were_kept_takes_them_for_new(gp):
    arrays = {name: value for name, value in gp.runtime._arrays.items() if not name.startswith("own_")}
    none = _standard_spectra(arrays)
    own = gp.model.calibration.spectra
    spectra, which = none.as_new(own)
    assert spectra is own and (which == -1).all()


def test_options_and_replicates(pair):
    replicates = noisy(pair.truth, [20.0] * 3, 5)
    scattered = replicates + 0.02 * np.array([[-1.0], [0.0], [1.0]])
    clipped = np.minimum(replicates[0], 0.8 * replicates[0].max())
    mask = np.zeros(len(WAVE), dtype=bool)
    mask[20:45] = True
    fine = np.linspace(300, 700, 301)
    cases = [
        (replicates, {}),
        (scattered, {}),
        (replicates[0], {"level": 0.95, "dilution": 5.0, "dilution_std": 0.25}),
        (replicates[0], {"mask": mask}),
        (clipped, {"saturation": float(clipped.max())}),
        (np.interp(fine, WAVE, replicates[0]), {"wavelengths": fine}),
        (replicates + 0.05, {"blank": noisy(pair.truth, [0.0, 0.0], 9) + 0.05}),
    ]
    for spectra, options in cases:
        options = {"replicates": True, **options}
        same(pair.runtime.quantify(spectra, **options).to_dict(), pair.model.quantify(spectra, **options).to_dict())
    for one, other in zip(pair.runtime.quantify(replicates), pair.model.quantify(replicates), strict=True):
        same(one.to_dict(), other.to_dict())  # rows are samples


@pytest.mark.parametrize(
    ("change", "options"),
    [
        (lambda x: np.where(WAVE == 400, np.nan, x), {}),
        (lambda x: 0.0 * x, {}),
        (lambda x: 0.0 * x + 0.3, {}),
        (lambda x: 1000.0 * x, {}),
        (lambda x: x[:-5], {}),
        (lambda x: x[:-20], {"wavelengths": WAVE[:-20]}),
        (lambda x: x, {"level": 1.5}),
        (lambda x: x, {"dilution": 0.0}),
    ],
)
def test_refusals_are_the_librarys(gp, change, options):
    spectrum = change(monotone(25.0)[0])
    said = []
    for speaker in (gp.runtime, gp.model):
        with pytest.raises(InputError) as error:
            speaker.quantify(spectrum, **options)
        said.append(str(error.value))
    assert said[0] == said[1]


@pytest.mark.parametrize("left", ["one", "rank", "flat"])
def test_too_few_usable_wavelengths_are_refused_alike(gp, left):
    inverse = gp.model.calibration.inverse
    # "flat": more than the rank, but where the standards hardly show anything.
    strength = np.linalg.norm(inverse.basis, axis=1)
    keep = {"one": [0], "rank": np.arange(inverse.rank), "flat": strength.argsort()[: inverse.rank + 2]}[left]
    mask = np.ones(len(WAVE), dtype=bool)
    mask[keep] = False
    left_over = np.linalg.eigvalsh(inverse.basis[~mask].T @ inverse.basis[~mask])[0]
    said = []
    for speaker in (gp.runtime, gp.model):
        try:
            said.append(speaker.quantify(monotone(25.0)[0], mask=mask).to_dict())
        except InputError as error:
            said.append(str(error))
    if left != "flat" or left_over < 1e-6:
        assert said[0] == said[1] and said[0].startswith("too few wavelengths of the unknown")
    else:
        same(*said)


@pytest.mark.parametrize("batch", [1, 3])
def test_the_quantifier_takes_masks_row_by_row(gp, batch):
    inverse = gp.model.calibration.inverse
    x = noisy(monotone, np.linspace(5, 50, batch), 3)
    usable = np.ones_like(x)
    usable[-1, 30:50] = 0.0
    results = Quantifier(inverse)(*(torch.from_numpy(v) for v in (x, usable, np.full(batch, 2.0))))
    for row in range(batch):
        mask = None if usable[row].all() else usable[row] > 0
        expected, q = inverse.compare(x[row : row + 1] * usable[row], mask, 2.0)
        np.testing.assert_allclose(results[4][row], expected.squared[0], rtol=1e-9)
        np.testing.assert_allclose(results[5][row], expected.steps[0], rtol=1e-9, atol=1e-9)
        assert float(results[2][row]) == pytest.approx(q[0], rel=1e-9)
        assert float(results[3][row]) == pytest.approx(expected.minimum[0], rel=1e-9)


# ---------------------------------------------------------------------- folds


@pytest.fixture(scope="module")
def folds():
    return geonode.fit(
        standards(folding), geonode.GeodesicConfig(flow="path_independent", epochs=2, folds=True, members=2)
    )


def test_spectra_of_a_model_with_folds_are_those_of_its_own_ensemble(folds):
    low, high = folds.served_range
    near = LEVELS[:, None] + np.array([-1e-3, 0.0, 1e-3])  # the weights of the standards have their kinks there
    c = np.concatenate([np.linspace(low, high, 60), near.ravel()]).clip(low, high).astype(np.float32)
    with torch.no_grad():
        found = NodeSpectra(folds).eval()(torch.from_numpy(c))
    for mine, theirs in zip(found, folds.predict_spectra(c.astype(float)), strict=True):
        assert np.abs(mine.numpy() - theirs.values).max() <= 1e-5 * spectral_range(folds)
    assert np.abs(found[1].numpy() - folds.predict_spectra(c, "gp")[1].values).max() > 1e-3 * spectral_range(folds)


def test_expected_square_is_the_processes(folds):
    from geonode.calibration.gp.node_process import expected_square

    c = torch.linspace(0.0, 75.0, 23)
    with torch.no_grad():
        mine = GPSpectra(folds.gp).mean_and_square(c)[1][:, 0].numpy()
    np.testing.assert_allclose(mine, expected_square(folds.gp, folds.gp.predict_weights(c.double().numpy())), rtol=1e-9)


def test_a_model_with_folds_is_exported_whole(folds):
    """What stands beside its graph; a whole file of folds: test_pretrained.py."""
    runtime = in_torch(folds)
    spectra = noisy(folding, np.linspace(0.0, 80.0, 30), 6)
    for mine, theirs in zip(runtime.quantify_many(spectra), folds.calibration.quantify_many(spectra), strict=True):
        same(mine.to_dict(), theirs.to_dict())
    assert "rest on the neural flow" in runtime.facts["standing"]["sentence"]


# ---------------------------------------------------------------------- preprocessing


def test_preprocessed_models_answer_alike():
    steps = ["range:340-660", "savgol:7,2", "center", "snv"]
    model = geonode.fit(standards(monotone), geonode.GeodesicConfig(predictor="gp"), preprocessing=steps)
    runtime = in_torch(model)
    spectra = noisy(monotone, [12.0, 33.0, 70.0], 4)
    for row in spectra:
        same(runtime.quantify(row).to_dict(), model.quantify(row).to_dict())
    mean, _ = runtime.predict([12.0])
    assert np.abs(mean - model.predict_spectra([12.0])[0].values).max() <= 1e-5 * spectral_range(model)
    clipped = np.minimum(spectra[0], 0.8 * spectra[0].max())
    for speaker in (runtime, model):
        with pytest.raises(InputError, match="needs them all"):
            speaker.quantify(clipped, saturation=float(clipped.max()))


def test_a_step_that_is_not_linear_is_refused_by_name(tmp_path):
    from geonode.export.export import export_onnx

    model = geonode.fit(standards(monotone), geonode.GeodesicConfig(predictor="gp"), preprocessing="median")
    with pytest.raises(InputError, match=r"'median.*cannot be exported"):
        export_onnx(model, tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------- the graph, and in process


def test_the_graph_passes_the_checker_and_has_only_listed_operators(pair):
    model = onnx.load(pair.path)
    onnx.checker.check_model(model, full_check=True)
    assert unsupported(model) == []
    assert [o.version for o in model.opset_import if o.domain == ""] == [18]
    for value in (*model.graph.input, *model.graph.output):
        assert value.type.tensor_type.shape.dim[0].dim_param, f"the batch of {value.name} was frozen"
    data = pair.path.read_bytes()
    assert b"/geonode/" not in data and b".py" not in data


@pytest.mark.slow
def test_the_package_says_the_same(node, tmp_path):
    export_package(node.model, tmp_path / "m.pt2")
    module, width = in_process(node.model)
    again = torch.export.load(str(tmp_path / "m.pt2")).module()
    for count, rows in ((1, 2), (5, 1)):
        x = torch.from_numpy(noisy(folding, np.linspace(5, 50, rows), 1))
        inputs = (torch.linspace(1.0, 70.0, count), x, torch.ones(rows, width).double(), torch.ones(rows).double())
        for mine, theirs in zip(again(*inputs), module(*inputs), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-7)


@pytest.mark.slow
def test_compiled_says_the_same(gp):
    c = torch.linspace(1.0, 70.0, 9)
    with torch.no_grad():
        mean, _ = compiled(gp.model, backend="aot_eager")(c)  # inductor takes half a minute to compile
    expected = gp.model.predict_spectra(c.double().numpy())[0].values
    assert np.abs(mean.numpy() - expected).max() <= 1e-5 * spectral_range(gp.model)


def test_metadata_say_what_the_model_is(pair):
    facts = pair.runtime.facts
    assert facts["concentration_unit"] == "ppb" and facts["wavelength_unit"] == "nm" and facts["opset"] == 18
    assert facts["calibrated_range"] == [0.0, 60.0] and facts["geonode"] == geonode.__version__
    np.testing.assert_array_equal(pair.runtime.wavelengths, WAVE)
    assert pair.path.stat().st_size < 5e6
    if pair.report is not None:
        assert pair.report.checksum == load(pair.path).checksum and pair.report.bytes == pair.path.stat().st_size
