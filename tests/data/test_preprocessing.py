"""Preprocessing: fitted on standards, applied to unknowns, kept without pickle."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geonode.data import Preprocessing, SpectralDataset, simulate_assay
from geonode.data.preprocessing import LEARNING, STEPS
from geonode.errors import InputError


def standards(seed=0) -> SpectralDataset:
    return simulate_assay(seed=seed, replicates=2)


@pytest.mark.smoke
@pytest.mark.parametrize("name", sorted(STEPS))
def test_every_step_is_kept_and_restored(name):
    train, other = standards(), standards(1)
    chain = Preprocessing.parse(f"range: 400-700, {name}")
    result = chain.fit_transform(train)
    assert result.shape == (12, 301) and result.levels.tolist() == train.levels.tolist()
    assert result.notes[-1].startswith("preprocessed: range: 400-700, " + name)
    description, arrays = chain.state()
    again = Preprocessing.from_state(json.loads(json.dumps(description)), arrays)
    np.testing.assert_array_equal(
        again.transform_spectra(other.spectra, other.wavelengths)[0],
        chain.transform_spectra(other.spectra, other.wavelengths)[0],
    )
    np.testing.assert_allclose(chain.transform(train).spectra, result.spectra)


def test_what_is_learned_comes_from_the_standards_alone():
    """Mean centring shows it: an unknown is centred on the standards' mean, not on its own."""
    train, other = standards(), standards(1)
    chain = Preprocessing.parse("center").fit(train)
    y, x = chain.transform_spectra(other.spectra, other.wavelengths)
    np.testing.assert_allclose(y, other.spectra - train.spectra.mean(axis=0))
    assert x.tolist() == train.wavelengths.tolist()
    single, _ = chain.transform_spectra(other.spectra[3], other.wavelengths)
    np.testing.assert_allclose(single, y[3])


@pytest.mark.parametrize("name", sorted(STEPS))
def test_which_steps_learn_is_known(name):
    """Exactly the steps in LEARNING depend on the spectra they were fitted on."""
    one, two, other = (standards(seed).spectra for seed in range(3))
    wavelengths = standards().wavelengths
    results = []
    for fitted_on in (one, two + 0.3):
        chain = Preprocessing.parse(name)
        chain.fit_arrays(fitted_on, wavelengths)
        results.append(chain.transform_spectra(other, wavelengths)[0])
    assert np.array_equal(*results) == (name not in LEARNING)
    assert Preprocessing.parse(name).learns == (name in LEARNING)


@pytest.mark.parametrize("name", sorted(STEPS))
def test_a_spectrum_is_transformed_alike_alone_and_among_others(name):
    chain = Preprocessing.parse(name).fit(standards())
    other = standards(1)
    together, _ = chain.transform_spectra(other.spectra, other.wavelengths)
    alone, _ = chain.transform_spectra(other.spectra[5], other.wavelengths)
    np.testing.assert_allclose(alone, together[5], atol=1e-12)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("savgol:15,2", "savgol: window_length=15 polyorder=2"),
        ("savgol:15,2,0", "savgol: window_length=15 polyorder=2"),
        ("savgol:15,2,1", "derivative: window_length=15 polyorder=2 deriv=1"),
        ("savgol:15,polyorder=3", "savgol: window_length=15 polyorder=3"),
        ("baseline:asls,1e6", "asls: lam=1000000.0"),
        ("baseline:polynomial,2,snv", "polynomial: order=2, snv"),
        ("center:true,false", "center: with_std=False with_mean=True"),
        ("SNV", "snv"),
    ],
)
def test_short_forms(short, long):
    assert str(Preprocessing.parse(short)) == str(Preprocessing.parse(long)) == long


def test_order_is_kept_and_matters():
    train = standards()
    chain = Preprocessing.of(["savgol:15,2,1", "snv", "range:400-700"])
    other = Preprocessing.of(["range:400-700", "savgol:15,2,1", "snv"])
    assert chain is not None and other is not None
    assert [step["name"] for step in chain.describe()] == ["derivative", "snv", "range"]
    assert np.abs(chain.fit_transform(train).spectra - other.fit_transform(train).spectra).max() > 1e-3


def test_signal_and_unit_say_what_was_done():
    train = standards().with_metadata(signal_unit="AU")
    for text, signal, unit in (
        ("range:400-700", "absorbance", "AU"),
        ("baseline:linear", "preprocessed absorbance", "AU"),
        ("savgol:15,2,1", "preprocessed absorbance", "AU per point"),
        ("savgol:15,2,2", "preprocessed absorbance", "AU per point^2"),
        ("savgol:15,2,1,snv", "preprocessed absorbance", "1"),
    ):
        result = Preprocessing.parse(text).fit_transform(train)
        assert (result.signal, result.signal_unit) == (signal, unit)


def test_masked_values_of_an_unknown_pass_ranges_only():
    train = standards()
    usable = train.wavelengths != 450.0
    chain = Preprocessing.parse("range:400-700").fit(train)
    (measured, grid), spectra = chain.measured, train.spectra[:1]
    assert grid[0] == 400.0 and measured.shape == (12, 301)
    inside = chain._steps[0].inside(train.wavelengths)
    _, left = chain.transform_measured(spectra[:, inside], usable[inside], "u")
    assert (~left).sum() == 1 and len(left) == 301
    chain = Preprocessing.parse("range:500-700, snv").fit(train)
    inside = chain._steps[0].inside(train.wavelengths)
    assert chain.transform_measured(spectra[:, inside], usable[inside], "u")[1].all()
    chain = Preprocessing.parse("snv, range:500-700").fit(train)
    with pytest.raises(InputError, match=r"u: 1 of 601 wavelengths are masked .* step 'snv' needs them all"):
        chain.transform_measured(spectra, usable, "u")


def test_no_step_is_no_change():
    train = standards()
    assert Preprocessing([]).fit_transform(train) is train and len(Preprocessing.parse("")) == 0


@pytest.mark.smoke
def test_snv_is_what_it_says():
    result = Preprocessing.parse("snv").fit_transform(standards())
    np.testing.assert_allclose(result.spectra.mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(result.spectra.std(axis=1), 1, rtol=1e-2)


@given(window=st.integers(2, 20).map(lambda k: 2 * k + 1), polyorder=st.integers(0, 3))
def test_text_form_round_trip(window, polyorder):
    chain = Preprocessing.parse(
        f"savgol: window_length={window} polyorder={polyorder}, msc: method=median, range: 1-2.5"
    )
    assert str(Preprocessing.parse(str(chain))) == str(chain)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nonsense", "there is no preprocessing step 'nonsense'; there are airpls"),
        ("savgol: windows=3", "step 'savgol' has no parameter 'windows'; it has window_length"),
        ("snv: 3", "'3' is one too many; snv takes no value"),
        ("savgol:15,2,1,7", "'7' is one too many; savgol takes window_length, polyorder, deriv"),
        ("savgol:15,window_length=3", "gives window_length twice"),
        ("baseline:7", "write baseline:METHOD, one of airpls"),
        ("savgol: axis=0", "has no parameter 'axis'"),
        ("range: 700-400", "give two wavelengths, low before high"),
        ("range: red", "write range:400-700"),
    ],
)
def test_bad_descriptions(text, sentence):
    with pytest.raises(InputError, match=sentence):
        Preprocessing.parse(text)


def test_bad_data():
    train = standards()
    with pytest.raises(InputError, match="no wavelength between 1 and 2; they run from 200 to 800"):
        Preprocessing.parse("range: 1-2").fit(train)
    with pytest.raises(InputError, match=r"cannot be fitted|failed"):
        Preprocessing.parse("savgol: window_length=3 polyorder=9").fit(train)
    with pytest.raises(InputError, match="window of 603 points, longer than the spectrum, which has 601"):
        Preprocessing.parse("savgol:603,2").fit(train)
    with pytest.raises(InputError, match="window of 303 points, longer than the spectrum, which has 301"):
        Preprocessing.parse("range:400-700, median:303").fit(train)
    with pytest.raises(InputError, match="must be an int"):
        Preprocessing.parse("savgol:wide").fit(train)
    with pytest.raises(InputError, match="step '' is none"):
        Preprocessing.of(["snv", ""])
    with pytest.raises(InputError, match="lam must be a number or a word"):
        Preprocessing([("asls", {"lam": [1.0]})])
    with pytest.raises(InputError, match="not fitted; fit it on the standards"):
        Preprocessing.parse("snv").transform(train)
    with pytest.raises(InputError, match="there is nothing to keep yet"):
        Preprocessing.parse("snv").state()
    chain = Preprocessing.parse("snv").fit(train)
    with pytest.raises(InputError, match="different wavelengths"):
        chain.transform(train.select_wavelengths(slice(0, 100)))
    with pytest.raises(InputError, match="must be finite"):
        chain.transform_spectra(np.full(601, np.nan), train.wavelengths)
    with pytest.raises(InputError, match="values that are not finite, as for a constant spectrum"):
        Preprocessing.parse("norm").fit(SpectralDataset(np.zeros((3, 20)), [0, 1, 2], np.arange(1.0, 21)))
    with pytest.raises(InputError, match="no preprocessing that was kept"):
        Preprocessing.from_state({"steps": [{"name": "snv"}]}, {})
    mask = np.zeros((3, 20), dtype=bool)
    mask[0, 0] = True
    masked = SpectralDataset(np.random.default_rng(0).normal(size=(3, 20)), [0, 1, 2], np.arange(1.0, 21), mask=mask)
    with pytest.raises(InputError, match="drop masked wavelengths first"):
        Preprocessing.parse("snv").fit(masked)


@pytest.mark.parametrize("step", ["savgol", "derivative", "median", "whittaker"])
def test_a_window_across_a_gap_is_refused_and_dead_pixels_are_not(step: str) -> None:
    x = np.concatenate([np.arange(300.0, 340.0), np.arange(400.0, 440.0)])
    y = np.random.default_rng(0).random((4, len(x)))
    with pytest.raises(InputError, match="gap between wavelengths 339 and 400"):
        Preprocessing.of(step).fit_arrays(y, x)
    assert Preprocessing.of(["range:400-440", step]).fit_arrays(y, x)[0].shape == (4, 40)
    dead = np.delete(np.arange(300.0, 380.0), [20, 21])
    assert Preprocessing.of(step).fit_arrays(y[:, : len(dead)], dead)[0].shape == (4, len(dead))
