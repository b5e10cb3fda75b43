"""Preprocessing: fitted on standards, applied to unknowns, kept without pickle."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geonode.data import Preprocessing, SpectralDataset, simulate_assay
from geonode.data.preprocessing import STEPS
from geonode.errors import InputError


def standards(seed=0) -> SpectralDataset:
    return simulate_assay(seed=seed, replicates=2)


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


def test_no_step_is_no_change():
    train = standards()
    assert Preprocessing([]).fit_transform(train) is train and len(Preprocessing.parse("")) == 0


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
        ("savgol: 3", "'3' is no parameter; write name=value"),
        ("range: 700-400", "give two wavelengths, low before high"),
        ("range: red", "write range: 400-700"),
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
