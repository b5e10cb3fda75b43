"""Every kind of chemistry: positive finite amounts whatever the concentration, and what is conserved is."""

from __future__ import annotations

import pytest
import torch

from geonode.corpus.chemistry.solubility import rounded_minimum
from geonode.corpus.chemistry.stepwise import complexes
from geonode.corpus.chemistry.thermal import melted
from geonode.corpus.kinds import CHEMISTRY, SPECIES, SPECTRA, Axis
from geonode.corpus.numbers import Source
from tests.tolerances import tolerance

CPU = torch.device("cpu")
FRACTIONS = ["hill", "acid_base", "binding_1_2", "competitive", "consecutive", "kinetic", "redox", "stepwise"]
ROWS = 400


def amounts(name: str, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Concentrations [400, 30] far inside, at and beyond the ends of the range, and the amounts there."""
    kind = CHEMISTRY[name]
    window = (0.0, 1.0) if kind.window is None else kind.window[:2]
    low = torch.full((ROWS, 1), window[0], dtype=torch.float64)
    high = torch.full_like(low, window[1])
    place = torch.cat([torch.linspace(0, 1, 20), torch.logspace(-6, 0.3, 10)]).double()
    c = (low + (high - low) * place).contiguous()
    axis = Axis(low, high, low + 0.01 * (high - low))
    return c, kind().amounts(Source(seed, 0, ROWS, CPU).table(64, torch.float64), c, axis)


@pytest.mark.parametrize("name", CHEMISTRY.names())
@pytest.mark.parametrize("seed", [0, 1])
def test_amounts_are_positive_and_finite(name, seed):
    _, found = amounts(name, seed)
    assert found.shape[:2] == (ROWS, 30) and 1 <= found.shape[2] <= SPECIES
    assert torch.isfinite(found).all() and (found >= 0).all()


@pytest.mark.parametrize("name", CHEMISTRY.names())
def test_every_kind_says_what_it_is(name):
    kind = CHEMISTRY[name]
    assert kind.share > 0
    assert kind.__doc__, "ranges of the parameters"
    assert kind.spectra is None or kind.spectra in SPECTRA
    assert (kind.window is None) == (kind.error == (0.0, 0.0))


@pytest.mark.parametrize("name", FRACTIONS)
def test_fractions_sum_to_one(name):
    _, found = amounts(name)
    total = found.sum(-1)
    torch.testing.assert_close(total, torch.ones_like(total), rtol=1e-6, atol=0.0)


@pytest.mark.parametrize("name", ["binding_1_1", "tight_binding"])
def test_free_and_bound_host_are_all_of_it(name):
    _, found = amounts(name)
    host = found[..., 0] + found[..., 1]
    torch.testing.assert_close(host, torch.ones_like(host), rtol=1e-6, atol=0.0)


def test_aggregating_particles_are_conserved():
    _, found = amounts("aggregation")
    particles = found[..., :3].sum(-1)
    torch.testing.assert_close(particles, torch.ones_like(particles), rtol=1e-6, atol=0.0)
    assert (found[..., 3] <= 1).all()


def test_particles_and_dye_are_conserved_each():
    _, found = amounts("displacement")
    for pair in (found[..., :2], found[..., 2:]):
        torch.testing.assert_close(pair.sum(-1), torch.ones_like(pair[..., 0]), rtol=1e-6, atol=0.0)


@pytest.mark.parametrize("name", ["dimerisation", "solubility"])
def test_what_is_weighed_in_is_there(name):
    c, found = amounts(name)
    torch.testing.assert_close(found.sum(-1), c, rtol=1e-6, atol=1e-12)


def test_beer_lambert_is_proportional():
    c, found = amounts("beer_lambert")
    at_one = found[:, 19:20]
    torch.testing.assert_close(found, c[..., None] * at_one, **tolerance(torch.float64, "value"))


@pytest.mark.parametrize(
    "name", ["binding_1_1", "tight_binding", "binding_1_2", "hill", "aggregation", "kinetic", "stepwise"]
)
def test_nothing_has_happened_at_zero(name):
    c, found = amounts(name)
    at_zero = found[:, c[0] == 0]
    first = torch.zeros_like(at_zero)
    first[..., 0] = 1.0
    torch.testing.assert_close(at_zero, first, rtol=0.0, atol=1e-4)


def test_half_is_melted_at_the_melting_point_and_cold_and_heat_end_it():
    t = torch.tensor([[5.0, 50.0, 95.0]], dtype=torch.float64)
    melting, enthalpy = torch.full((1, 1), 50.0, dtype=torch.float64), torch.full((1, 1), 400.0, dtype=torch.float64)
    share = melted(t, melting, enthalpy)[0]
    assert share[0] < 1e-6 and share[2] > 1 - 1e-6
    torch.testing.assert_close(share[1], torch.tensor(0.5, dtype=torch.float64), **tolerance(torch.float64, "value"))


def test_complexes_obey_mass_action():
    ligand = torch.logspace(-3, 1, 9, dtype=torch.float64)[None]
    constants = torch.tensor([[0.1, 0.4, 2.0]], dtype=torch.float64)
    found = complexes(ligand, constants)
    for j in range(3):
        quotient = found[..., j] * ligand / found[..., j + 1]
        torch.testing.assert_close(quotient, constants[:, j : j + 1].expand_as(quotient), rtol=1e-12, atol=0.0)


def test_a_sharp_limit_of_solubility_is_the_minimum():
    c = torch.linspace(0, 3, 31, dtype=torch.float64)
    limit, power = torch.tensor(1.03, dtype=torch.float64), torch.tensor(1e5, dtype=torch.float64)
    torch.testing.assert_close(rounded_minimum(c, limit, power), c.minimum(limit), rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("name", ["binding_1_1", "tight_binding", "hill", "adsorption"])
def test_the_product_only_grows(name):
    c, found = amounts(name)
    product = found[..., 0 if name == "adsorption" else 1]
    steps = product.gather(1, c.argsort(1)).diff(dim=1)
    assert (steps >= -1e-9).all()
