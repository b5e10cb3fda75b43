"""What every draw promises: finite, reproducible, in the shares that were asked for, the same in any order of use."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from geonode.corpus import FAMILIES, UNKNOWNS, Assays, draw
from geonode.corpus.errors.digits import Digits
from geonode.errors import InputError
from tests.tolerances import tolerance


def tensors(assays: Assays) -> dict[str, torch.Tensor]:
    return {field.name: getattr(assays, field.name) for field in fields(assays)}


def assert_equal_to_rounding(here: dict[str, torch.Tensor], there: dict[str, torch.Tensor], kind: str) -> None:
    """Labels to the bit, numbers relative to the largest of their assay."""
    for name, value in here.items():
        other = there[name].cpu()
        assert value.dtype == other.dtype and value.shape == other.shape, name
        if not value.is_floating_point():
            assert torch.equal(value, other), name
            continue
        axes = tuple(range(1, value.ndim))
        scale = torch.nan_to_num(value).abs().amax(axes, keepdim=True).clamp_min(1e-30) if axes else value.abs()
        torch.testing.assert_close(value / scale, other / scale, **tolerance(torch.float32, kind), equal_nan=True)


@given(
    batch=st.integers(1, 40),
    levels=st.integers(3, 50),
    wavelengths=st.integers(8, 90),
    queries=st.integers(0, 5),
    unknowns=st.integers(0, 5),
    seed=st.integers(-(2**40), 2**40),
    replicates=st.one_of(st.booleans(), st.integers(1, 5)),
)
def test_every_draw_is_finite_and_has_its_shapes(batch, levels, wavelengths, queries, unknowns, seed, replicates):
    assays = draw(batch, levels, wavelengths, queries, unknowns, seed=seed, replicates=replicates)
    for name, value in tensors(assays).items():
        if value.is_floating_point() and name != "unknown_concentration":
            assert torch.isfinite(value).all(), name
    assert assays.spectra.shape == assays.truth.shape == (batch, levels, wavelengths)
    assert assays.query_spectra.shape == assays.query_truth.shape == (batch, queries, wavelengths)
    assert assays.unknown_spectra.shape == (batch, unknowns, wavelengths)
    nothing = torch.isnan(assays.unknown_concentration)
    without = [UNKNOWNS.index("foreign"), UNKNOWNS.index("nothing")]
    assert torch.equal(nothing, torch.isin(assays.unknown_kind, torch.tensor(without)))
    assert (assays.concentration.diff(dim=1) > 0).all(), "levels ascend"
    assert (assays.concentration[assays.from_zero] >= 0).all()


def test_seed_and_step_alone_decide():
    first = tensors(draw(32, 6, 40, seed=3, step=5))
    torch.manual_seed(99)
    again = tensors(draw(32, 6, 40, seed=3, step=5))
    for name, value in first.items():
        assert torch.equal(value, again[name]) or torch.isnan(value).any(), name
    for other in (draw(32, 6, 40, seed=4, step=5), draw(32, 6, 40, seed=3, step=6)):
        assert not torch.equal(other.spectra, first["spectra"])


def test_families_come_in_their_shares_and_can_be_left_out():
    assays = draw(2000, 3, 8, seed=1)
    counts = torch.bincount(assays.family, minlength=len(FAMILIES))
    from geonode.corpus.kinds import CHEMISTRY

    total = sum(CHEMISTRY[name].share for name in FAMILIES)
    for name, count in zip(FAMILIES, counts.tolist(), strict=True):
        assert abs(count - 2000 * CHEMISTRY[name].share / total) <= 1, name
    without = draw(200, 3, 8, seed=1, exclude=("hill", "acid_base"))
    assert FAMILIES.index("hill") not in without.family and FAMILIES.index("acid_base") not in without.family
    assert set(draw(50, 3, 8, seed=1, families=["hill"]).family.tolist()) == {FAMILIES.index("hill")}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"levels": 2}, "levels=2"),
        ({"levels": 51}, "levels=51"),
        ({"batch": 0}, "batch=0"),
        ({"wavelengths": 4}, "wavelengths=4"),
        ({"replicates": 0}, "replicates=0"),
        ({"families": ["nonsense"]}, "nonsense"),
        ({"exclude": ["nonsense"]}, "nonsense"),
        ({"families": ["hill"], "exclude": ["hill"]}, "No family"),
    ],
)
def test_what_cannot_be_drawn_is_said(arguments, words):
    with pytest.raises(InputError, match=words):
        draw(**{"batch": 4, "levels": 5, "wavelengths": 16, "seed": 0, **arguments})


def test_torchs_default_type_does_not_matter():
    here = tensors(draw(64, 6, 40, 3, 3, seed=3))
    try:
        torch.set_default_dtype(torch.float64)
        there = tensors(draw(64, 6, 40, 3, 3, seed=3))
    finally:
        torch.set_default_dtype(torch.float32)
    assert_equal_to_rounding(here, there, "value")


def test_a_step_may_be_a_tensor():
    first, second, again = (tensors(draw(32, 6, 40, seed=3, step=torch.tensor(step))) for step in (5, 6, 5))
    assert torch.equal(first["spectra"], again["spectra"]) and not torch.equal(first["spectra"], second["spectra"])


def assert_one_draw(here: dict[str, torch.Tensor], there: dict[str, torch.Tensor]) -> None:
    """Equal to rounding; what is left between spectra (noise, scatter of replicates) is as exact as the spectra are."""
    signal, exact = here["spectra"].abs().amax((1, 2)), tolerance(torch.float32, "solver")["rtol"]
    here, there = dict(here), {name: value.cpu() for name, value in there.items()}
    noise = here.pop("noise") - there.pop("noise")  # relative to the response
    assert (noise.abs() * here["response"] <= exact * signal).all()
    scatter = here.pop("replicate_variance").sqrt() - there.pop("replicate_variance").sqrt()
    assert (scatter.abs() <= exact * signal[:, None, None]).all()
    assert_equal_to_rounding(here, there, "solver")


@pytest.mark.gpu
@pytest.mark.parametrize("step", [0, 1, 2])
def test_the_gpu_draws_what_the_cpu_draws(step, monkeypatch):
    def both():
        return [tensors(draw(300, 8, 64, 4, 3, seed=7, step=step, device=device)) for device in ("cpu", "cuda")]

    # A reading that is written with few digits may be rounded to either side, by a whole step: a few do.
    written = ("spectra", "replicates", "query_spectra", "unknown_spectra")
    here, there = both()
    for name in written:
        scale = here[name].abs().amax(tuple(range(1, here[name].ndim)), keepdim=True).clamp_min(1e-30)
        off = (here[name] - there[name].cpu()).abs() / scale
        assert (off > tolerance(torch.float32, "solver")["rtol"]).double().mean() < 1e-3
    monkeypatch.setattr(Digits, "share", 0.0)
    assert_one_draw(*both())


@pytest.mark.gpu
@pytest.mark.parametrize("step", [0, 1, 2])
def test_assays_depart_from_their_law_alike_on_the_gpu(step):
    """Parameters are float32: in one value of some thousand a steep response makes more of their last digit."""
    kind = {"seed": 7, "step": step, "departures": 0.5}
    here, there = (tensors(draw(300, 8, 64, 4, 3, device=device, **kind)) for device in ("cpu", "cuda"))
    assert torch.equal(here["family"], there["family"].cpu())
    for name in ("truth", "query_truth", "spectra"):
        scale = here[name].abs().amax((1, 2), keepdim=True).clamp_min(1e-30)
        off = (here[name] - there[name].cpu()).abs() / scale
        assert (off > tolerance(torch.float32, "solver")["rtol"]).double().mean() < 1e-3, name
