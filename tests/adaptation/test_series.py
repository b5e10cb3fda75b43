"""What `adapt` takes as series, and refuses in one sentence."""

from __future__ import annotations

import numpy as np
import pytest

import geonode
from geonode.adaptation import AdaptSettings, adapt, gather_series
from geonode.errors import DeviceError, InputError
from tests.adaptation.conftest import QUICK
from tests.adaptation.instrument import series


def of(spectra, like):
    return geonode.SpectralDataset(spectra, like.concentrations, like.wavelengths)


def test_levels_are_ascending_means_and_replicates_of_the_level_left_out_do_not_count():
    one = series(3, width=31, replicates=2)
    found = gather_series([one, series(4, width=31)], ["a", "b"])
    np.testing.assert_array_equal(found[0].levels, one.levels)
    np.testing.assert_array_equal(found[0].means, one.level_means())
    assert found[0].left_out.tolist() == list(range(6))
    deviations = np.asarray(one.replicate_deviations())
    for level, variance in zip(found[0].left_out, found[0].variances, strict=True):
        kept = np.asarray(one.level_index) != level
        np.testing.assert_allclose(variance, (deviations[kept] ** 2).sum(0) / 5, rtol=1e-12)
    assert found[1].variances == (None,) * 6


def test_series_may_differ_in_levels_and_wavelengths_and_unit(base):
    wide = series(1, width=61)
    few = series(2, width=12).select_samples([0, 1, 3, 5])
    many = geonode.SpectralDataset(
        np.asarray(wide.spectra), np.asarray(wide.concentrations) * 1e6, wide.wavelengths, concentration_unit="nM"
    )
    found = adapt([wide.select_samples([5, 2, 3, 0, 1]), few, many.select_wavelengths(slice(0, 50))],
                  weights=base, settings=AdaptSettings(steps=3))  # fmt: skip
    assert [row.levels for row in found.judgement.rows] == [5, 4, 6]


def test_preprocessing_is_that_of_the_series(base):
    given = [series(1, width=31), series(2, width=31)]
    plain, smoothed = gather_series(given), gather_series(given, preprocessing=["range:450-650"])
    assert smoothed[0].means.shape[1] < plain[0].means.shape[1]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: [series(1)], "needs 2 series or more, and 1 was given"),
        (lambda: [], "needs 2 series or more, and 0 was given"),
        (lambda: series(1), "must be a list of calibrations"),
        (lambda: "one.csv", "must be a list of calibrations"),
        (lambda: [series(1), series(2).select_samples([0, 1, 2])], "second: .*[Ff]our|second: .*4"),
        (lambda: [series(1), series(1)], "first and second share spectra"),
        (lambda: [series(1), of(np.asarray(series(1).spectra) * (1 + 1e-12), series(1))], "share spectra"),
        (lambda: [series(1), series(1).select_samples([0, 1, 2, 4])], "share spectra"),
    ],
)
def test_series_that_cannot_be_used(make, says):
    with pytest.raises(InputError, match=says) as error:
        gather_series(make(), ["first", "second"][: len(make())] if isinstance(make(), list) else None)
    assert "\n" not in str(error.value)


def test_a_blank_that_two_series_share_is_no_reason_to_refuse():
    one, other = series(1, width=31), series(2, width=31)
    blank = np.asarray(other.spectra).copy()
    blank[0] = np.asarray(one.spectra)[0]
    assert len(gather_series([one, of(blank, other)])) == 2


def test_names_are_one_for_each():
    with pytest.raises(InputError, match="names has 1 entries for 2 series"):
        gather_series([series(1), series(2)], ["one"])


def test_weights_that_are_adapted_already_are_refused(weights, earlier):
    with pytest.raises(InputError, match=r"is adapted already .from small., so no series it has seen could judge"):
        adapt(earlier, weights=weights)


@pytest.mark.parametrize(
    ("change", "says"),
    [({"rank": 0}, "rank must"), ({"steps": 0}, "steps must"), ({"lr": -1.0}, "lr must"), ({"batch": 0}, "batch must")],
)
def test_settings_out_of_range(change, says):
    with pytest.raises(InputError, match=says):
        AdaptSettings(**change)


def test_a_device_that_is_not_there(base, earlier):
    with pytest.raises(DeviceError):
        adapt(earlier, weights=base, device="abacus")


@pytest.mark.parametrize("name", ["ours", "ours.onnx", "ours.json"])
def test_a_name_that_is_no_file_of_weights(adapted, name, tmp_path):
    with pytest.raises(InputError, match=r"weights are written as \.safetensors"):
        adapted.save(tmp_path / name)
    assert QUICK.steps and list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(adapted, tmp_path):
    with pytest.raises(InputError, match="does not exist; create it first"):
        adapted.save(tmp_path / "none" / "ours.safetensors")
