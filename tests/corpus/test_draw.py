"""What every draw promises: finite, reproducible, in the shares that were asked for, the same in any order of use."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from geonode.corpus import FAMILIES, UNKNOWNS, Assays, draw
from geonode.errors import InputError
from tests.tolerances import tolerance


def tensors(assays: Assays) -> dict[str, torch.Tensor]:
    return {field.name: getattr(assays, field.name) for field in fields(assays)}


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


@pytest.mark.gpu
@pytest.mark.parametrize("step", [0, 1, 2])
def test_the_gpu_draws_what_the_cpu_draws(step):
    here, there = (tensors(draw(300, 8, 64, 4, 3, seed=7, step=step, device=device)) for device in ("cpu", "cuda"))
    for name, value in here.items():
        other = there[name].cpu()
        if not value.is_floating_point():
            assert torch.equal(value, other), name
        else:
            scale = (
                torch.nan_to_num(value).abs().amax(tuple(range(1, value.ndim)), keepdim=True) if value.ndim > 1 else 1
            )
            torch.testing.assert_close(
                value / scale, other / scale, **tolerance(torch.float32, "solver"), equal_nan=True
            )
