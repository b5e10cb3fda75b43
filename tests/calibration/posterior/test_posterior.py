"""The learned posterior: what must hold of it whatever its weights, then what its weights are for."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geonode.calibration import Calibration
from geonode.calibration.posterior.examples import examples, standards_of, unknowns_of
from geonode.calibration.posterior.network import PosteriorNetwork
from geonode.calibration.posterior.quantifier import learned_posterior, reading_of
from geonode.calibration.posterior.stored import (
    NAME,
    SHIPPED,
    load_posterior,
    posterior_card,
    posterior_weights,
    save_posterior,
    weights_of,
)
from geonode.calibration.posterior.training import PosteriorSettings, distances, mean_loss, train
from geonode.corpus import UNKNOWNS, draw
from geonode.errors import InputError
from geonode_runtime.distributions import student_cumulative
from geonode_runtime.posterior.answers import LearnedPosterior
from geonode_runtime.posterior.cells import CELLS, ERRORS, unknown_cells
from geonode_runtime.posterior.density import SMOOTHING, Posterior
from geonode_runtime.posterior.network import NONE, evaluate
from geonode_runtime.posterior.standards import PosteriorStandards
from tests.calibration.assays import LEVELS, WAVE, folding, monotone, noisy, straight


@pytest.fixture(scope="module")
def few():
    """Enough examples to see a loss fall."""
    with torch.random.fork_rng():
        return examples(2, seed=5)


def quantifier(truth=monotone, levels=LEVELS, replicates: int = 1, scale: float = 1.0, unit: float = 1.0, **options):
    c = np.repeat(levels, replicates)
    return learned_posterior(unit * c, scale * noisy(truth, c, 3), **options)


# ------------------------------------------------------------------ laws


@pytest.mark.parametrize("replicates", [1, 2])
@pytest.mark.parametrize(("unit", "scale"), [(1e3, 1.0), (1.0, 37.0), (1e-6, 1e-3)])
def test_neither_unit_matters(unit: float, scale: float, replicates: int):
    unknown = noisy(monotone, [7.0, 33.0, 70.0], 9)
    here, _, _ = quantifier(replicates=replicates).posteriors(unknown, np.ones(3))
    there, _, _ = quantifier(replicates=replicates, scale=scale, unit=unit).posteriors(scale * unknown, np.ones(3))
    for a, b in zip(here, there, strict=True):
        np.testing.assert_allclose(b.edges, unit * a.edges, rtol=1e-6, atol=1e-6 * unit * a.span)
        np.testing.assert_allclose(b.mass, a.mass, atol=2e-4)
        assert b.none == pytest.approx(a.none, abs=1e-4)


def test_order_of_standards_does_not_matter():
    c = np.repeat(LEVELS, 2)
    x, unknown = noisy(monotone, c, 3), noisy(monotone, [14.0], 9)
    order = np.random.default_rng(0).permutation(len(c))
    (here,), _, _ = learned_posterior(c, x).posteriors(unknown, np.ones(1))
    (there,), _, _ = learned_posterior(c[order], x[order]).posteriors(unknown, np.ones(1))
    np.testing.assert_allclose(there.mass, here.mass, atol=1e-5)


@pytest.mark.parametrize("truth", [monotone, folding, straight])
@pytest.mark.parametrize("levels", [LEVELS[:3], LEVELS, np.linspace(-3.0, 5.0, 7)])
def test_probabilities_add_up_and_cells_ascend(truth, levels):
    with np.errstate(invalid="ignore"):
        unknown = np.nan_to_num(noisy(truth, np.abs([3.0, 25.0, 90.0]), 1))
        reading = reading_of(levels, noisy(straight if levels[0] < 0 else truth, levels, 2), None)
    found, strange, _ = LearnedPosterior(reading.known, posterior_weights()).posteriors(unknown, np.ones(3))
    for one, share in zip(found, strange, strict=True):
        assert (np.diff(one.edges) > 0.0).all() and one.edges[0] == reading.low and one.edges[-1] == reading.high
        assert one.mass.sum() + one.below + one.above == pytest.approx(1.0, abs=1e-6)
        assert 0.0 <= one.none <= 1.0 and 0.0 <= share <= 1.0


def test_untrained_network_is_the_mixture(few):
    network = PosteriorNetwork()
    with torch.no_grad():
        outcome = network(few.values.float(), few.whole, few.base, few.odd, few.even.float())
    chance = torch.softmax(torch.cat([few.base, few.odd[:, None]], 1), 1)
    inside = 0.998 * chance[:, :CELLS] + 0.002 * few.even.float()
    torch.testing.assert_close(outcome.logs[:, :CELLS].exp(), inside, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("levels", [3, 6, 24])
def test_numpy_evaluates_the_network_that_torch_trained(levels):
    """Random weights, so that no layer is zero; the error of Φ's formula is 2e-7."""
    with torch.random.fork_rng():
        torch.manual_seed(levels)
        network = PosteriorNetwork()
        for parameter in network.parameters():
            torch.nn.init.normal_(parameter, std=0.2)
    reading = reading_of(np.linspace(0.0, 60.0, levels), noisy(monotone, np.linspace(0.0, 60.0, levels), 2), None)
    cells = unknown_cells(reading.known, noisy(monotone, [3.0, 25.0, 90.0], 1), np.ones(3))
    width = np.diff(cells.edges, axis=1)
    parts = (cells.values, cells.whole, cells.base, cells.odd, width / width.sum(1, keepdims=True))
    with torch.no_grad():
        theirs = network.double()(*(torch.from_numpy(part) for part in parts))
    mine = evaluate(weights_of(network), cells)
    np.testing.assert_allclose(mine.logs, theirs.logs.numpy(), atol=1e-4)
    np.testing.assert_allclose(mine.strange, torch.sigmoid(theirs.strange).numpy(), atol=1e-5)


@given(st.integers(2, 24), st.floats(-60.0, 60.0))
@settings(max_examples=60, deadline=None)
def test_students_distribution_is_scipys(dof, t):
    from scipy.special import stdtr

    assert student_cumulative(dof, np.array(t)) == pytest.approx(stdtr(dof, t), abs=1e-14)


def test_what_is_kept_of_the_standards_makes_them_again():
    known = quantifier(folding, replicates=2).known
    arrays, numbers = known.state()
    again = PosteriorStandards.from_state({name: value.astype(float) for name, value in arrays.items()}, numbers)
    spectra = noisy(folding, [7.0, 33.0, 80.0], 4)
    here, there = (unknown_cells(one, spectra, np.ones(3)) for one in (known, again))
    for name in ("edges", "base", "values", "whole", "odd"):
        np.testing.assert_array_equal(getattr(here, name), getattr(there, name))


masses = st.lists(st.floats(0.0, 1.0), min_size=12, max_size=12).filter(lambda m: sum(m) > 0.1)


@given(masses, st.floats(0.05, 0.99), st.booleans())
@settings(max_examples=60, deadline=None)
def test_sets_hold_at_least_their_level(mass, level, floor):
    share = np.array(mass) / sum(mass)
    one = Posterior(np.linspace(0.0, 12.0, 11), share[:10], share[10], share[11], 0.0, 12.0, floor)
    found = one.highest(level)
    held = sum(float(one.below_of(c.high) - one.below_of(c.low)) for c in found.components)
    held += one.below * any(c.open_low or (floor and c.low == 0.0) for c in found.components)
    held += one.above * any(c.open_high for c in found.components)
    assert held >= level - 0.03
    assert sum(c.probability for c in found.components) == pytest.approx(1.0, abs=1e-6)
    for a, b in zip(found.components, found.components[1:], strict=False):
        assert a.probability >= b.probability
    for c in found.components:
        assert c.low <= c.estimate <= c.high


@given(masses, st.lists(st.sampled_from([1e-6, 1e-3, 5e-3, 1.0]), min_size=10, max_size=10), st.floats(0.3, 0.95))
@settings(max_examples=60, deadline=None)
def test_no_gap_of_a_set_is_narrower_than_densities_are_averaged_over(mass, widths, level):
    share = np.array(mass) / sum(mass)
    edges = np.concatenate([[0.0], np.cumsum(widths)])
    one = Posterior(edges, share[:10], share[10], share[11], 0.0, float(edges[-1]), True)
    pieces = sorted(one.highest(level).components, key=lambda c: c.low)
    for left, right in pairwise(pieces):
        assert right.low - left.high > 2.0 * SMOOTHING * edges[-1]


@given(masses, st.floats(0.1, 0.95), st.sampled_from([0.8, 0.5, 0.2]))
@settings(max_examples=40, deadline=None)
def test_own_levels_never_narrow(mass, level, power):
    share = np.array(mass) / sum(mass)
    one = Posterior(np.linspace(0.0, 12.0, 11), share[:10], share[10], share[11], 0.1, 12.0, False)
    spread = [-(p.mass * np.log(np.maximum(p.mass, 1e-300))).sum() for p in (one, one.widened(power))]
    beyond = [-sum(m * np.log(max(m, 1e-300)) for m in (p.below, p.above)) for p in (one, one.widened(power))]
    assert spread[1] + beyond[1] >= spread[0] + beyond[0] - 0.05
    assert one.widened(power).none == one.none


# ------------------------------------------------------------------ what it is for


def test_training_lowers_the_loss_and_is_repeatable(few):
    plan = PosteriorSettings(steps=40, batch=64, lr=3e-3, warm_up=5)
    (first, history), (second, _) = train(few, plan), train(few, plan)
    assert mean_loss(first, few) < mean_loss(None, few) - 0.05
    assert history[-1]["step"] == 40
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0.0, atol=0.0)


def test_distance_is_that_of_the_truth_from_the_mass(few):
    """All mass in the truth's own cell costs next to nothing, in one ten cells beside it the way there, which the
    cross-entropy does not know; what has no concentration costs nothing, and no gradient either."""
    inside = torch.nonzero((few.label > 12) & (few.label < CELLS - 12))[:200, 0]
    batch = few[inside]
    found = []
    for apart in (0, 10):
        logs = torch.full((len(inside), CELLS + 3), -40.0)
        logs.scatter_(1, (batch.label + apart)[:, None], 0.0)
        found.append(distances(logs, batch))
    assert (found[0] <= found[1]).all()
    scale = torch.exp(2.0 * batch.whole[:, ERRORS]).amin(1).clamp(1e-4, 1.0).double()
    near, far = (batch.edges.gather(1, (batch.label + k)[:, None])[:, 0] - batch.truth for k in (10, 11))
    score, free = found[1].double() * scale, found[1] < 9.9
    assert free.any() and (score[free] >= 0.99 * near[free]).all() and (score[free] <= 1.01 * far[free]).all()
    none = few[torch.nonzero(few.label == NONE)[:20, 0]]
    logs = torch.zeros(len(none), CELLS + 3, requires_grad=True)
    distances(logs, none).sum().backward()
    assert logs.grad is not None and not logs.grad.any()


def test_examples_are_a_function_of_the_seed_and_are_what_was_kept_of_them(few, tmp_path):
    again = examples(1, seed=5, keep=tmp_path / "own")
    count = len(again)
    assert torch.equal(again.label, few.label[:count]) and torch.equal(again.values, few.values[:count])
    kept = examples(1, seed=5, keep=tmp_path / "own")
    for name, values in vars(again).items():
        torch.testing.assert_close(getattr(kept, name), values, rtol=0.0, atol=0.0, equal_nan=True)
    assert len(list((tmp_path / "own").iterdir())) == 1
    other = examples(1, seed=6, keep=tmp_path / "own")  # another draw is never read from what was kept of this one
    assert other.values.shape != kept.values.shape or not torch.equal(other.values, kept.values)


def test_shipped_weights_beat_their_start_on_new_families():
    card = posterior_card()
    fresh = examples(3, seed=77, families=card["families left out"])
    assert mean_loss(load_posterior(), fresh) < mean_loss(None, fresh) - 0.3
    start = load_posterior(SHIPPED / f"{card['settings']['start']}.safetensors")
    assert mean_loss(load_posterior(), fresh) < mean_loss(start, fresh)
    assert (SHIPPED / f"{NAME}.safetensors").stat().st_size < 1 << 20


def test_sets_cover_on_fresh_assays():
    """Truths of new assays: 95 % sets hold 95 % of them, within three standard errors of assays that count as one."""
    hits, count, refused = [], 0, []
    for step, levels in enumerate((4, 6, 9)):
        assays = draw(12, levels, 48, queries=0, unknowns=8, seed=123, step=step, dtype=torch.float64)
        for row in range(len(assays)):
            reading = standards_of(assays, row, None)
            spectra, repeats, truth, kind = unknowns_of(assays, row, None)
            found, _, _ = LearnedPosterior(reading.known, posterior_weights()).posteriors(spectra, repeats)
            own = [i for i in range(len(truth)) if UNKNOWNS[kind[i]] == "sample"]
            hits += [[found[i].highest(level).contains(truth[i]) for level in (0.8, 0.95)] for i in own]
            refused += [found[i].none > 0.25 for i in own]
            count += 1
    narrow, wide = np.mean(hits, 0)
    assert 0.8 - 3 * 0.4 / count**0.5 < narrow and wide > 0.95 - 3 * 0.22 / count**0.5
    assert np.mean(refused) < 0.02


@pytest.mark.parametrize(
    ("truth", "at", "verdict"),
    [
        (monotone, 27.0, "quantified"),
        (straight, 44.0, "quantified"),
        (monotone, 0.0, "below detection limit"),
        (straight, 72.0, "outside calibrated range"),
    ],
)
def test_verdicts(truth, at, verdict):
    calibration = Calibration(np.repeat(LEVELS, 3), noisy(truth, np.repeat(LEVELS, 3), 3), WAVE)
    said = calibration.quantify(noisy(truth, [at] * 3, 8), replicates=True, method="posterior")
    assert said.verdict == verdict, said
    assert said.estimate == pytest.approx(at, abs=3.0)


def test_foreign_spectra_are_refused():
    calibration = Calibration(np.repeat(LEVELS, 3), noisy(monotone, np.repeat(LEVELS, 3), 3), WAVE)
    foreign = 0.9 * np.exp(-0.5 * ((WAVE - 520.0) / 12.0) ** 2)
    (said,) = calibration.quantify_many(foreign[None], method="posterior")
    assert said.verdict == "does not match"
    assert said.to_dict()["estimate"] is None and said.to_dict()["probabilities"]["none"] > 0.25


def test_many_and_one_agree_and_dilution_multiplies():
    calibration = Calibration(LEVELS, noisy(monotone, LEVELS, 3), WAVE)
    spectra = noisy(monotone, [7.0, 33.0], 9)
    many = calibration.quantify_many(spectra, method="posterior")
    for row, one in zip(spectra, many, strict=True):
        alone = calibration.quantify(row, method="posterior")
        assert alone.estimate == pytest.approx(one.estimate, rel=1e-4)
        diluted = calibration.quantify(row, method="posterior", dilution=10.0)
        assert diluted.estimate == pytest.approx(10.0 * alone.estimate, rel=1e-6)
    json.dumps(many[0].to_dict(), allow_nan=False)


def test_masked_wavelengths_and_declared_uncertainty():
    exact = Calibration(LEVELS, noisy(monotone, LEVELS, 3), WAVE)
    rough = Calibration(LEVELS, noisy(monotone, LEVELS, 3), WAVE, concentration_std=2.0)
    spectrum = noisy(monotone, [25.0], 9)[0]
    mask = np.zeros(len(WAVE), dtype=bool)
    mask[:20] = True
    masked = exact.quantify(spectrum, method="posterior", mask=mask)
    assert masked.masked == 20 and masked.estimate == pytest.approx(25.0, abs=2.0)
    widths = [one.quantify(spectrum, method="posterior").components[0].width for one in (exact, rough)]
    assert widths[1] > widths[0]


@pytest.mark.parametrize("count", [2, 3, 6])
def test_who_answers_is_said_where_it_is_not_the_posterior(count):
    levels = np.linspace(0.0, 60.0, count)
    calibration = Calibration(levels, noisy(monotone, levels, 3), WAVE, minimum_levels=2)
    spectrum = noisy(monotone, [20.0], 9)
    for said in (calibration.quantify(spectrum[0]), *calibration.quantify_many(spectrum)):
        instead = any("method='profile'" in note for note in said.notes)
        assert said.to_dict()["method"] == ("profile" if count < 3 else "posterior") and instead == (count < 3)
    assert any("method='profile'" in note for note in calibration.notes) == (count < 3)
    assert calibration.quantify(spectrum[0], method="profile").to_dict()["method"] == "profile"
    if count < 3:
        with pytest.raises(InputError, match="has 2; use method='profile'"):
            calibration.quantify(spectrum[0], method="posterior")


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize("method", ["Posterior", "", "pls"])
def test_unknown_method(method):
    calibration = Calibration(LEVELS, noisy(monotone, LEVELS, 3), WAVE)
    for ask in (calibration.quantify, calibration.quantify_many):
        with pytest.raises(InputError, match="choose from posterior, profile"):
            ask(monotone(20.0)[0], method=method)


def test_weights_that_are_none(tmp_path):
    with pytest.raises(InputError, match="is not there"):
        load_posterior(tmp_path / "none.safetensors")
    (tmp_path / "bad.safetensors").write_bytes(b"{}")
    with pytest.raises(InputError, match="holds no weights"):
        load_posterior(tmp_path / "bad.safetensors")
    path = save_posterior(PosteriorNetwork(), {"what": "a test"}, tmp_path / "kept")
    assert json.loads(path.with_suffix(".json").read_text())["what"] == "a test"
    assert not any(p.requires_grad for p in load_posterior(path).parameters())
