"""A model adapted to a changed instrument from three standards beats one trained on those three alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset, simulate_assay
from geonode.errors import InputError
from geonode.model import fit
from geonode.training import predict
from geonode.training.adapters import adapt

GRID = np.linspace(300.0, 700.0, 61)
LEVELS, ASKED = np.array([0.0, 20.0, 60.0]), np.array([10.0, 30.0, 40.0])


def changed_instrument(concentrations, seed=0):
    """Wavelengths off by 3 nm, a gain that falls towards the red, a baseline; noise as the assay has it."""
    shifted = simulate_assay(list(concentrations), wavelengths=(GRID + 3.0).tolist(), seed=seed)
    gain, baseline = 0.9 - 0.1 * (GRID - 300.0) / 400.0, 0.02
    noisy, clean = shifted.spectra, shifted.truth(np.asarray(concentrations)).double().numpy()
    return gain * noisy + baseline, gain * clean + baseline


@pytest.fixture(scope="module")
def trained():
    return fit(
        simulate_assay(wavelengths=GRID.tolist()), GeodesicConfig(flow="path_independent", epochs=30), device="cpu"
    )


def _error(mean, truth):
    return float(np.sqrt(np.mean((mean - truth) ** 2)))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_three_standards_adapt_better_than_they_train(trained, seed):
    spectra, _ = changed_instrument(LEVELS, seed)
    _, truth = changed_instrument(ASKED)
    asked = torch.from_numpy(ASKED).expand(trained.ode.models, -1)
    ode, problem = adapt(trained.ode, trained.problem, LEVELS, spectra)
    adapted = _error(predict(ode, problem, asked).double().numpy().mean(0), truth)
    untouched = _error(trained.predict_spectra(ASKED)[0].values, truth)
    scratch = fit(
        SpectralDataset(spectra, LEVELS, GRID), GeodesicConfig(flow="path_independent", epochs=30), device="cpu"
    )
    from_scratch = _error(scratch.predict_spectra(ASKED)[0].values, truth)
    print(f"adapted {adapted:.4f}, from scratch {from_scratch:.4f}, as it was {untouched:.4f}")
    assert adapted < 0.8 * from_scratch
    assert adapted < 0.5 * untouched


def test_adapting_trains_the_correction_alone_and_leaves_the_model_as_it_was(trained):
    before = {name: p.clone() for name, p in trained.ode.named_parameters()}
    spectra, _ = changed_instrument(LEVELS)
    ode, _ = adapt(trained.ode, trained.problem, LEVELS, spectra, rank=1, steps=5)
    after = dict(ode.named_parameters())
    assert after.keys() == before.keys()
    changed = {name for name, value in before.items() if not torch.equal(value, after[name])}
    assert changed == {"flow.embedding"}
    rank = torch.linalg.matrix_rank((after["flow.embedding"] - before["flow.embedding"]).detach(), rtol=1e-4)
    assert rank.tolist() == [1, 1]
    for name, parameter in trained.ode.named_parameters():
        assert torch.equal(parameter, before[name])


def test_standards_that_cannot_be_used_are_refused(trained):
    spectra, _ = changed_instrument(LEVELS)
    with pytest.raises(InputError, match="two or more standards"):
        adapt(trained.ode, trained.problem, LEVELS[:1], spectra[:1])
    with pytest.raises(InputError, match="ascending"):
        adapt(trained.ode, trained.problem, LEVELS[::-1], spectra)
    with pytest.raises(InputError, match=r"\[n, 61\]"):
        adapt(trained.ode, trained.problem, LEVELS, spectra[:, :5])
    with pytest.raises(InputError, match="outside the range"):
        adapt(trained.ode, trained.problem, np.array([0.0, 500.0, 900.0]), spectra)
    with pytest.raises(InputError, match="rank=9"):
        adapt(trained.ode, trained.problem, LEVELS, spectra, rank=9)
