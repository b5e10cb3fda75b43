"""Detection, designs, errors and unknowns: limits, units, and errors of the size that is declared."""

from __future__ import annotations

import math

import pytest
import torch

from geonode.corpus import (
    DESIGN_NAMES,
    DETECTIONS,
    FAMILIES,
    SPECTRUM_KINDS,
    UNKNOWNS,
    Assays,
    common_levels,
    draw,
    stages,
)
from geonode.corpus.detection.bandpass import through_slit
from geonode.corpus.detection.fluorescence import inner_filter
from geonode.corpus.detection.reflectance import kubelka_munk
from geonode.corpus.detection.saturating import stray_light
from geonode.corpus.draw import CARE
from geonode.corpus.kinds import DESIGNS, DETECTION, ERRORS, SPECIES, SPECTRA
from geonode.corpus.lab import Counts
from geonode.corpus.numbers import Source

CPU = torch.device("cpu")


def draws(count: int, **options) -> list[Assays]:
    return [draw(256, common_levels(11, step), 24, 3, 3, seed=11, step=step, **options) for step in range(count)]


@pytest.mark.parametrize("stray", [1e-4, 1e-2, 0.3])
def test_stray_light_levels_off(stray):
    absorbance, s = torch.tensor([0.0, 1e-3, 50.0], dtype=torch.float64), torch.tensor(stray, dtype=torch.float64)
    seen = stray_light(absorbance, s)
    assert seen[0].abs() < 1e-12
    torch.testing.assert_close(seen[1] / 1e-3, 1 / (1 + s), rtol=2e-3, atol=0.0)  # slope at the origin
    torch.testing.assert_close(seen[2], torch.log10((1 + s) / s), rtol=1e-9, atol=0.0)


def test_an_inner_filter_that_is_thin_is_none():
    assert abs(inner_filter(torch.tensor(1e-6, dtype=torch.float64)) - 1) < 1e-5
    thick = inner_filter(torch.tensor(30.0, dtype=torch.float64))
    torch.testing.assert_close(thick, torch.tensor(1 / (30 * math.log(10)), dtype=torch.float64), rtol=1e-9, atol=0.0)


def test_kubelka_and_munk_are_inverted():
    ratio = torch.logspace(-6, 2, 30, dtype=torch.float64)
    r = kubelka_munk(ratio)
    torch.testing.assert_close((1 - r) ** 2 / (2 * r), ratio, rtol=1e-7, atol=0.0)


def test_a_slit_takes_from_slopes_and_not_from_tops():
    a = torch.tensor([1.0, 1.0], dtype=torch.float64)
    seen = through_slit(a, torch.tensor([0.0, 0.2], dtype=torch.float64))
    assert seen[0] == 1.0 and seen[1] < 1.0


@pytest.mark.parametrize("name", SPECTRUM_KINDS)
def test_molar_spectra_are_not_negative_unless_they_say_so(name):
    kind, rows = SPECTRA[name], 300
    amounts = Source(9, 0, rows, CPU).uniform(5, SPECIES)
    density = kind().density(Source(4, 0, rows, CPU).table(256), torch.linspace(0, 1, 50), amounts)
    assert density.shape == (rows, 5, 50) and torch.isfinite(density).all()
    assert (density >= 0).all() or kind.signed
    # of order one: no absurd amplitudes, and none without any band
    largest = density.abs().amax((1, 2))
    assert largest.max() < 30 and (largest > 0.02).float().mean() > 0.98


@pytest.mark.parametrize("name", [name for name in SPECTRUM_KINDS if not SPECTRA[name].moves])
def test_beer_lambert_adds_species(name):
    rows, x = 50, torch.linspace(0, 1, 40)
    table = Source(4, 0, rows, CPU).table(256)
    amounts = Source(9, 0, rows, CPU).uniform(3, SPECIES)
    whole = SPECTRA[name]().density(table[:], x, amounts)
    double = SPECTRA[name]().density(table[:], x, 2 * amounts)
    parts = sum(SPECTRA[name]().density(table[:], x, amounts * (torch.arange(SPECIES) == k)) for k in range(SPECIES))
    torch.testing.assert_close(double, 2 * whole, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(parts, whole, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", DETECTIONS)
def test_detectors_show_finite_numbers(name):
    rows, x = 100, torch.linspace(0, 1, 30)
    density, c = Source(1, 0, rows, CPU).uniform(6, 30), Source(2, 0, rows, CPU).uniform(6) * 1.4
    shown = DETECTION[name]().detect(Source(3, 0, rows, CPU).table(64), density, c, x)
    assert shown.shape == density.shape and torch.isfinite(shown).all()


@pytest.mark.parametrize("name", DESIGN_NAMES)
@pytest.mark.parametrize("n", [3, 4, 9, 24, 50])
def test_designs_ascend_to_one(name, n):
    levels = DESIGNS[name]().levels(Source(0, 0, 300, CPU).table(n + 8, torch.float64), n)
    assert levels.shape == (300, n)
    assert (levels.diff(dim=1) > 0).all()
    assert (levels[:, 0] >= 0).all() and torch.allclose(levels[:, -1], torch.ones(300, dtype=torch.float64))
    if DESIGNS[name].spans:
        assert (levels[:, 0] == 0).all()


def test_beer_lambert_seen_as_absorbance_is_a_straight_line():
    straight = 0
    for assays in draws(4, families=["beer_lambert"]):
        plain = assays.detection == DETECTIONS.index("absorbance")
        c, y = assays.concentration[plain].double(), assays.truth[plain].double()
        slope = (y[:, -1] - y[:, 0]) / (c[:, -1] - c[:, 0])[:, None]
        line = y[:, :1] + slope[:, None] * (c - c[:, :1])[..., None]
        worst = (line - y).abs().amax((1, 2)) / y.abs().amax((1, 2))
        assert worst.max() < 1e-5
        straight += len(worst)
    assert straight > 300


def test_about_a_quarter_of_all_is_straight_and_few_are_dead():
    bent, dead = [], []
    for assays in draws(12):
        c, y = assays.concentration.double(), assays.truth.double()
        design = torch.stack([torch.ones_like(c), c / c[:, -1:]], -1)
        residual = y - design @ (torch.linalg.pinv(design) @ y)
        size = (y - y.mean(1, keepdim=True)).square().mean((1, 2)).sqrt()
        bent.append(residual.square().mean((1, 2)).sqrt() / size.clamp_min(1e-30))
        dead.append(assays.noise > 1.0)
    share = (torch.cat(bent) < 0.01).double().mean()
    assert 0.2 < share < 0.3
    # microplates have some: wells that differ by more than a small response on a large signal
    assert torch.cat(dead).double().mean() < 0.025


def test_replicates_scatter_as_declared():
    """Where all errors are those of one reading, replicates' variance is the noise squared."""
    ratio = []
    for assays in draws(6, replicates=4):
        enough = (assays.count >= 3).all(1) & (assays.preparation < 1e-6)
        noise = assays.noise * assays.response
        spread = assays.replicate_variance.mean((1, 2)).sqrt()
        ratio.append((spread / noise)[enough])
    ratio = torch.cat(ratio)
    assert len(ratio) > 100
    # errors that all readings share (drift along the run, a join) are in the noise and not in the spread
    assert 0.85 < ratio.median() < 1.05 and ratio.max() < 1.6


def test_level_means_are_those_of_counted_replicates():
    for assays in draws(3, replicates=5):
        kept = torch.arange(5) < assays.count[..., None]
        assert (assays.replicates[~kept] == 0).all()
        mean = assays.replicates.sum(2) / assays.count[..., None]
        torch.testing.assert_close(mean, assays.spectra)
        single = assays.count == 1
        assert (assays.replicate_variance[single] == 0).all()


def test_queries_lie_inside_the_range_and_beyond_both_ends():
    for assays in draws(2):
        low, high = assays.concentration[:, :1], assays.concentration[:, -1:]
        place = (assays.query_concentration - low) / (high - low)
        assert 0.7 < ((place >= 0) & (place <= 1)).float().mean() < 0.95
        assert (place < 0).any() and (place > 1).any() and place.max() <= 1.4001
        assert (assays.query_concentration[assays.from_zero] >= 0).all()


def test_measured_queries_lie_about_their_truth():
    for assays in draws(3):
        error = (assays.query_spectra - assays.query_truth).square().mean((1, 2)).sqrt() / assays.response
        assert error.median() < 0.06


def test_unknowns_come_in_their_kinds():
    kinds = torch.cat([assays.unknown_kind.flatten() for assays in draws(12)])
    from geonode.corpus.unknowns import KINDS

    for number, share in enumerate(KINDS.values()):
        assert abs((kinds == number).float().mean() - share) < 0.02, UNKNOWNS[number]


def test_foreign_unknowns_are_unlike_the_standards():
    for assays in draws(2, replicates=False):
        y = assays.truth.double()
        base = torch.linalg.svd(y - y.mean(1, keepdim=True), full_matrices=False).Vh[:, :3]
        rest = assays.unknown_spectra.double() - y.mean(1, keepdim=True)
        rest = (rest - rest @ base.mT @ base).square().mean(-1).sqrt() / assays.response[:, None]
        kind = assays.unknown_kind
        assert rest[kind == UNKNOWNS.index("foreign")].median() > 10 * rest[kind == UNKNOWNS.index("sample")].median()


@pytest.mark.parametrize("name", ERRORS.names())
def test_every_error_has_a_share_and_an_effect(name):
    kind = ERRORS[name]
    assert 0 < kind.share <= 1
    from geonode.corpus.kinds import Error

    hooks = [hook for hook in vars(Error) if not hook.startswith("_") and callable(getattr(Error, hook))]
    assert [hook for hook in hooks if getattr(kind, hook) is not getattr(Error, hook)], "overrides nothing"


def test_every_kind_is_drawn():
    assays = draws(8)
    for labels, names in (
        ([a.family for a in assays], FAMILIES),
        ([a.detection for a in assays], DETECTIONS),
        ([a.spectrum for a in assays], SPECTRUM_KINDS),
        ([a.design for a in assays], DESIGN_NAMES),
    ):
        assert set(torch.cat(labels).tolist()) == set(range(len(names)))


def test_no_value_decides_what_is_computed():
    """On the meta device there are no values: whatever asks for one fails there."""
    assays = draw(512, 8, 64, 4, 3, seed=0, device="meta")
    assert assays.spectra.shape == (512, 8, 64) and assays.spectra.device.type == "meta"


def test_a_camera_clips_and_its_absorbance_is_that_of_the_light():
    rows, x = 400, torch.linspace(0, 1, 30)
    density = torch.linspace(0, 1, 6)[:, None].expand(rows, 6, 30).contiguous()
    shown = DETECTION["camera"]().detect(Source(3, 0, rows, CPU).table(64), density, torch.zeros(rows, 6), x)
    steps = shown.diff(dim=1)
    grows = shown[:, -1].mean(-1) > shown[:, 0].mean(-1)
    assert 0.4 < grows.float().mean() < 0.6  # absorbances; the others are counts
    assert (steps[grows] >= -1e-6).all() and (steps[~grows] <= 1e-6).all()
    assert shown[grows][:, 0].abs().max() < 1e-6  # no absorbance without an absorber


def test_what_is_added_to_a_cuvette_dilutes_it():
    families = ["binding_1_1", "beer_lambert", "acid_base"]
    source = Source(5, 0, 600, CPU)
    lab, _ = stages.plan(source, Counts(600, 5, 1, 0, 0, 8), families, CARE)
    c = torch.linspace(0, 1.4, 8).expand(600, 8)
    left = stages.dilution(lab, c)[..., 0]
    diluted = (left < 1).any(1)
    assert (left[:, 0] == 1).all() and (left.diff(dim=1) <= 0).all() and (left > 0.58).all()
    titrations = lab.family == FAMILIES.index("binding_1_1")
    assert not diluted[~titrations].any() and 0.08 < diluted[titrations].float().mean() < 0.26
