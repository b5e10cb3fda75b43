"""SpectralDataset: order, levels, replicates, selections, and every rule it refuses to break."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from geonode.data import SpectralDataset
from geonode.errors import InputError


def make(levels=(0.0, 5.0, 10.0), replicates=1, wavelengths=20, **kwargs):
    c = np.repeat(np.asarray(levels, dtype=float), replicates, axis=0)
    y = np.random.default_rng(0).normal(size=(len(c), wavelengths))
    return SpectralDataset.from_arrays(y, c, np.linspace(400, 500, wavelengths), **kwargs)


def test_shapes_and_levels():
    data = make(replicates=2, concentration_unit="ppb")
    assert data.shape == (6, 20) and len(data) == 6 and data.dim == 1
    assert data.levels.tolist() == [0, 5, 10]
    assert data.level_index.tolist() == [0, 0, 1, 1, 2, 2]
    assert data.analytes == ("concentration",)
    assert data.units == {"concentration": "ppb", "wavelength": "nm", "signal": ""}
    assert data.replicate_degrees_of_freedom == 3
    np.testing.assert_allclose(data.level_means()[1], data.spectra[2:4].mean(axis=0))
    np.testing.assert_allclose(data.replicate_deviations().reshape(3, 2, 20).sum(axis=1), 0, atol=1e-14)
    assert "6 spectra × 20 wavelengths (400–500 nm)" in repr(data) and "3 levels 0 … 10 ppb" in repr(data)


def test_several_analytes():
    points = [[7.0, 0.0], [7.0, 20.0], [6.0, 20.0], [6.0, 0.0]]
    data = make(points, analytes=("pH", "Cl"))
    assert data.dim == 2 and data.concentrations.shape == (4, 2)
    assert data.levels.tolist() == [[6, 0], [6, 20], [7, 0], [7, 20]]
    assert data.without_level(0).levels.tolist() == [[6, 20], [7, 0], [7, 20]]
    assert data.xarray["concentration"].dims == ("sample", "analyte")


@given(
    order=st.permutations(range(6)),
    columns=st.permutations(range(12)),
)
def test_the_order_of_samples_and_wavelengths_does_not_matter(order, columns):
    rng = np.random.default_rng(1)
    y, c, x = rng.normal(size=(6, 12)), np.array([0.0, 10, 20, 30, 40, 60]), np.arange(400.0, 412)
    expected = SpectralDataset(y, c, x, names=[f"s{i}" for i in range(6)])
    names = [f"s{i}" for i in order]
    shuffled = SpectralDataset(y[np.ix_(order, columns)], c[list(order)], x[list(columns)], names=names)
    assert shuffled == expected
    if list(order) != sorted(order):
        assert "samples were put in order of concentration" in shuffled.notes


def test_arrays_are_copies_and_read_only():
    y = np.random.default_rng(0).normal(size=(3, 10))
    data = SpectralDataset(y, [0, 1, 2], np.arange(1.0, 11))
    before = data.spectra.copy()
    y[:] = 0
    np.testing.assert_array_equal(data.spectra, before)
    with pytest.raises(ValueError, match="read-only"):
        data.spectra[0, 0] = 1


def test_torch_tensors_go_in_and_come_out():
    y = torch.randn(3, 10, dtype=torch.float64, requires_grad=True)
    data = SpectralDataset(y, torch.tensor([0.0, 1, 2]), torch.arange(1.0, 11))
    c, spectra, x = data.tensors(dtype=torch.float32)
    assert (c.shape, spectra.shape, x.shape) == ((3,), (3, 10), (10,)) and spectra.dtype == torch.float32
    torch.testing.assert_close(data.tensors()[1], y.detach())


def test_selections():
    data = make(replicates=3)
    assert data.without_level(1).levels.tolist() == [0, 10]
    assert data.without_level(-1).levels.tolist() == [0, 5]
    assert data.only_level(1).levels.tolist() == [5]
    assert data.select_wavelengths(slice(None, None, 2)).shape == (9, 10)
    assert data.wavelength_range(420, 450).wavelengths.min() >= 420
    assert data.with_metadata(concentration_unit="mM").concentration_unit == "mM"
    assert data.without_level(0).groups.tolist() == [1, 1, 1, 2, 2, 2]
    with pytest.raises(InputError, match="no level 3"):
        data.without_level(3)
    with pytest.raises(InputError, match="no wavelength between 600 and 700"):
        data.wavelength_range(600, 700)
    with pytest.raises(InputError, match="leaves no spectrum"):
        data.select_samples([])
    with pytest.raises(InputError, match="no such metadata"):
        data.with_metadata(colour="blue")


def test_masked_values_become_nan_and_can_be_left_out():
    mask = np.zeros((3, 20), dtype=bool)
    mask[1, :4] = True
    y = np.ones((3, 20)) * [[1], [2], [3]]
    y[1, 0] = np.inf  # masked, so no fault
    data = SpectralDataset(y, [0, 1, 2], np.arange(1.0, 21), mask=mask)
    assert np.array_equal(np.isnan(data.spectra), mask) and "4 masked" in repr(data)
    assert np.isnan(data.level_means()[1, :4]).all()
    complete = data.without_masked()
    said = "4 of 20 wavelengths dropped, where a value is masked: between 1 and 4 nm"
    assert complete.shape == (3, 16) and complete.notes[-1] == said
    four = SpectralDataset(np.vstack([y, y[2] + 1]), [0, 1, 2, 3], data.wavelengths, mask=np.vstack([mask, mask[0]]))
    assert four.without_masked().notes[-1] == f"{said}, by the standard 1 alone; without it they would be kept"
    assert complete.without_masked() is complete
    with pytest.raises(InputError, match="every wavelength has a masked value"):
        SpectralDataset(y, [0, 1, 2], np.arange(1.0, 21), mask=np.ones((3, 20), dtype=bool)).without_masked()


def spoil(y=None, c=None, x=None, **kwargs):
    return lambda: SpectralDataset(
        np.arange(60.0).reshape(3, 20) if y is None else y,
        [0.0, 1.0, 2.0] if c is None else c,
        np.arange(400.0, 420) if x is None else x,
        source="file.csv",
        **kwargs,
    )


NAN = np.arange(60.0).reshape(3, 20)
NAN[1, 3] = np.nan


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (spoil(y=NAN), "spectrum '1' is nan at wavelength 403 (1 such value)"),
        (spoil(c=[0.0, np.inf, 2.0]), "the concentration of 'inf' is inf"),
        (spoil(x=np.arange(-3.0, 17)), "wavelength number 1 is -3, which is not positive"),
        (spoil(x=[*np.arange(400.0, 419), 410]), "wavelength 410 occurs twice"),
        (spoil(x=[np.nan, *np.arange(400.0, 419)]), "wavelength number 1 is nan"),
        (spoil(c=[1.0, 1.0 + 1e-12, 2.0]), "are one level up to rounding, recorded as two"),
        (spoil(c=[[1.0, 5], [1.0 + 1e-12, 7], [2.0, 5]]), "are one level up to rounding"),
        (spoil(y=np.ones((3, 20)), c=[0, 1, 1], names=["a", "b", "c"]), "'c' is identical to 'b' at every wavelength"),
        (spoil(c=[0, 1]), "3 spectra but 2 concentrations"),
        (spoil(x=[1, 2]), "20 values each but there are 2 wavelengths"),
        (spoil(y=np.ones(20)), "spectra must be 2-dimensional"),
        (spoil(y=[[1, 2], [3]]), "spectra must be real numbers in a rectangular array"),
        (spoil(y=[["a", "b"]]), "spectra must be real numbers"),
        (spoil(y=np.ones((0, 20)), c=[]), "no spectrum"),
        (spoil(names=["a"]), "3 spectra but 1 names"),
        (spoil(groups=[1.5, 2, 3]), "groups must be 3 whole numbers or strings"),
        (spoil(analytes=["a", "b"]), "1 analyte(s) need 1 distinct name(s)"),
        (spoil(mask=np.ones(3)), "the mask has shape (3,)"),
    ],
)
def test_broken_rules_are_one_sentence_that_names_the_place(build, message):
    with pytest.raises(InputError) as caught:
        build()
    text = str(caught.value)
    assert text.startswith("file.csv: ") and message in text and "\n" not in text and text.endswith(".")


def test_real_replicates_and_coincidences_pass():
    make(replicates=2)
    SpectralDataset(np.ones((3, 4)), [0, 1, 1], [1, 2, 3, 4])  # four rounded values may agree by chance
    SpectralDataset(np.ones((3, 20)), [0, 1, 2], np.arange(1.0, 21))  # different levels may look alike


def test_require_levels():
    assert make().require_levels(3).shape == (3, 20)
    with pytest.raises(InputError, match=r"2 concentration levels \(0, 5\), but at least 3 are needed"):
        make((0, 5), replicates=3, source="a.csv").require_levels()


def test_equality_ignores_where_it_came_from():
    assert make(source="a", notes=("x",)) == make(source="b")
    assert make() != make(concentration_unit="ppb")
    assert make() != make((0, 5, 11))
    assert make() != 3
    with pytest.raises(TypeError):
        hash(make())
