"""Four and five standards: what contradicts is said by every command, and clean ones are not accused."""

from __future__ import annotations

import numpy as np
import pytest

import geonode
from geonode.calibration import Calibration
from geonode.calibration.assessment.few_standards import slips_among
from geonode.calibration.measurement_noise import whitening_variance
from geonode.corpus import draw
from geonode.data import SpectralDataset
from tests.calibration.assays import WAVE, monotone, noisy, straight
from tests.commands.cases import run

FOUR, FIVE = np.array([0.0, 12.0, 20.0, 45.0]), np.array([0.0, 12.0, 20.0, 33.0, 50.0])


def twice(c: np.ndarray, i: int) -> tuple[np.ndarray, np.ndarray]:
    """What is said of the levels, ascending, and what they are: the one at ``i`` is labelled twice its value."""
    said = c.copy()
    said[i] *= 2.0
    order = np.argsort(said)
    return said[order], c[order]


def write(path, said, spectra) -> None:
    heads = ",".join(f"{x:g}" for x in said)
    rows = [f"{w:g}," + ",".join(f"{v:.6f}" for v in row) for w, row in zip(WAVE, spectra.T, strict=True)]
    path.write_text("\n".join([f"wavelength,{heads}", *rows]) + "\n")


@pytest.mark.parametrize(("c", "i"), [(FOUR, 1), (FOUR, 2), (FOUR, 3), (FIVE, 1), (FIVE, 3), (FIVE, 4)])
def test_a_label_twice_its_value_is_named(c, i) -> None:
    said, true = twice(c, i)
    named = Calibration(said, noisy(straight, true, 0), WAVE).standing.contradictions
    assert len(named) == 1 and named[0].startswith(f"the standard {2.0 * c[i]:g} contradicts the others")


def test_the_commands_say_it(tmp_path) -> None:
    said, true = twice(FOUR, 2)
    write(tmp_path / "s.csv", said, noisy(straight, true, 0))
    write(tmp_path / "u.csv", [15.0], noisy(straight, [15.0], 1))
    sentence = "the standard 40 contradicts the others, which lie on a straight line of concentration"
    assert sentence in run("fit", tmp_path / "s.csv", "--out", tmp_path / "m.bundle").output
    assert sentence in run("inspect", tmp_path / "s.csv").output
    assert sentence in run("quantify", tmp_path / "m.bundle", tmp_path / "u.csv").output
    run("report", tmp_path / "m.bundle", "--out", tmp_path / "r")
    assert sentence in (tmp_path / "r" / "report.md").read_text()


@pytest.mark.parametrize(
    "c",
    [FOUR, np.array([0.0, 8.0, 15.0, 25.0, 50.0]), np.array([0.0, 5.0, 15.0, 30.0])],
    ids=["four", "five", "narrow"],
)
def test_one_spectrum_under_two_levels_is_named_though_measured_twice(c) -> None:
    true = c.copy()
    true[2] = c[1]  # sold as the next level
    found = Calibration(c, noisy(monotone, true, 0), WAVE).standing.contradictions
    assert len(found) == 1 and f"{c[2]:g}" in found[0]


BAD = {
    "zeros": lambda c, x: (c, np.where(np.arange(len(c))[:, None] == 2, 0.0, x), "is zero at every wavelength"),
    "copied": lambda c, x: (c, x[[0, 1, 1, *range(3, len(c))]], "is identical to"),
    "negative": lambda c, x: (np.append(-5.0, c[1:]), x, "is negative, which no amount is"),
}


@pytest.mark.parametrize("c", [FOUR, FIVE], ids=["four", "five"])
@pytest.mark.parametrize("kind", BAD)
def test_what_cannot_be_is_refused_by_fit_and_told_by_inspect(kind, c, tmp_path) -> None:
    levels, spectra, sentence = BAD[kind](c, noisy(monotone, c, 0))
    write(tmp_path / "s.csv", levels, spectra)
    unit = ["--unit", "ppb"] if kind == "negative" else []
    assert sentence in run("fit", tmp_path / "s.csv", "--out", tmp_path / "m.bundle", *unit, code=2).output
    assert sentence.split(", ")[0] in run("inspect", tmp_path / "s.csv").output


@pytest.mark.parametrize("c", [FOUR, FIVE], ids=["four", "five"])
def test_a_saturated_top_is_masked_and_counted(c, tmp_path) -> None:
    spectra = np.minimum(noisy(lambda x: 6.0 * straight(x), c, 0), 3.0)
    write(tmp_path / "s.csv", c, spectra)
    said = run("inspect", tmp_path / "s.csv").output
    assert "saturat" in said and "masked" in said
    model = geonode.fit(tmp_path / "s.csv")
    assert any("masked" in note for note in [*model.standards.notes, *model.calibration.notes])


@pytest.mark.parametrize("levels", [4, 5])
def test_clean_simulated_assays_are_hardly_ever_accused(levels) -> None:
    assays = draw(250, levels, 64, seed=5, step=0)
    accused = []
    for b in range(len(assays)):
        count = assays.count[b].numpy()
        x = np.concatenate([assays.replicates[b, i, : count[i]].double().numpy() for i in range(levels)])
        index = np.repeat(np.arange(levels), count)
        means = np.stack([x[index == i].mean(axis=0) for i in range(levels)])
        deviations = x - means[index] if len(x) > levels else None
        noise = np.sqrt(whitening_variance(means, deviations) / count.mean())
        accused.append(bool(slips_among(assays.concentration[b].double().numpy(), means, noise)))
    assert np.mean(accused) <= 0.02


@pytest.mark.parametrize("c", [FOUR, FIVE], ids=["four", "five"])
@pytest.mark.parametrize("truth", [straight, monotone])
def test_good_standards_are_not_accused(truth, c) -> None:
    for seed in range(2):
        data = SpectralDataset(noisy(truth, c, seed), c, WAVE)
        assert not Calibration.from_dataset(data).standing.contradictions
