"""Adapting lowers the loss on the series it saw, and is judged by series that it did not see."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import geonode
from geonode.adaptation import Judgement, LeftOut, adapt, gather_series, judge, tune
from geonode.adaptation.judgement import MOST_FOLDS, compare
from geonode.errors import InputError
from tests.adaptation.conftest import NAMES, QUICK
from tests.adaptation.instrument import series


def row(ratio, before=0.8, after=0.8):
    return LeftOut("one", ("other",), 6, 1.0, ratio, before, after)


def test_the_loss_falls_on_the_series_that_were_seen(adapted):
    assert adapted.tuned.after < adapted.tuned.before - 0.1
    assert adapted.card["loss on these series"] == {"before": adapted.tuned.before, "after": adapted.tuned.after}


def test_the_same_seed_gives_the_same_weights(small, earlier):
    found = gather_series(earlier[:2])
    quick = dataclasses.replace(QUICK, steps=4)
    one, other = (tune(small, found, quick).network.state_dict() for _ in range(2))
    assert all(torch.equal(value, other[name]) for name, value in one.items())


def test_each_row_is_what_weights_say_that_never_saw_the_series(small, adapted, earlier):
    found = gather_series(earlier, NAMES)
    for number, one in enumerate(adapted.judgement.rows):
        others = [s for i, s in enumerate(found) if i != number]
        assert one.seen == tuple(s.name for s in others) and one.name == NAMES[number] not in one.seen
        if number == 1:
            assert compare(small, tune(small, others, QUICK).network, found[number], one.seen) == one


def test_a_planted_series_is_unforeseen_where_it_is_left_out_and_known_where_it_was_seen(small, earlier):
    """Its levels answer upside down: nobody who has not seen it can know, and who has seen it does."""
    plain = series(7, width=31)
    spectra = np.array(plain.spectra)
    spectra[1::2] = spectra[::2] + 0.01 * np.linspace(0.0, 1.0, 31)
    planted = geonode.SpectralDataset(spectra, plain.concentrations, plain.wavelengths)
    found = gather_series([earlier[0], planted], [NAMES[0], "planted"])
    strong = dataclasses.replace(QUICK, steps=70)
    left_out = judge(small, found, strong).rows[-1]
    seen = compare(small, tune(small, found[1:], strong).network, found[1], ["planted"])
    assert left_out.name == "planted" and "planted" not in left_out.seen
    assert left_out.before == seen.before
    assert seen.ratio < 0.7 < left_out.ratio


@pytest.mark.parametrize(("count", "most"), [(2, 1), (6, 1), (8, 2), (13, 3)])
def test_every_series_is_left_out_once_with_a_group_of_few(monkeypatch, count, most):
    calls = []

    def tuned(network, others, *_):
        calls.append([one.name for one in others])
        return dataclasses.make_dataclass("Tuned", ["network"])(network)

    monkeypatch.setattr("geonode.adaptation.judgement.tune", tuned)
    monkeypatch.setattr("geonode.adaptation.judgement.compare", lambda a, b, one, seen: (one.name, set(seen)))
    found = [dataclasses.make_dataclass("One", ["name"])(str(i)) for i in range(count)]
    rows = judge(None, found).rows  # type: ignore[arg-type]
    assert [name for name, _ in rows] == [str(i) for i in range(count)]
    assert len(calls) == min(count, MOST_FOLDS)
    for name, seen in rows:
        assert name not in seen and count - most <= len(seen) <= count - 1


@pytest.mark.parametrize(
    ("rows", "helped"),
    [
        ([row(0.5), row(0.6), row(0.55)], True),
        ([row(1.1), row(1.2), row(1.0)], False),
        ([row(0.4), row(1.5), row(1.2)], False),  # lower in the mean, by less than its error
        ([row(0.995), row(0.994), row(0.996)], False),  # next to nothing
        ([row(0.8), row(0.99)], False),  # two series say little: Student's t
        ([row(0.5, 0.8, 0.5)] * 3, False),  # bands that hold half of what they should hold
        ([row(0.5, 0.5, 0.6)] * 3, True),  # bands that were worse
    ],
)
def test_whether_it_helped(rows, helped):
    found = Judgement(tuple(rows))
    assert found.helped is helped
    assert found.ratio == pytest.approx(float(np.exp(np.mean([np.log(r.ratio) for r in rows]))))
    said = found.sentence()
    assert said.startswith("adapting helped" if helped else "adapting did not help")
    assert f"lower in {found.better} of {len(rows)}" in said
    assert found.as_dict()["helped"] is helped
    assert len(found.table().splitlines()) == 1 + len(rows)


def test_adapting_helps_on_an_instrument_whose_fault_no_simulated_assay_has(adapted):
    assert adapted.helped
    assert adapted.judgement.ratio < 0.85
    assert 0.65 <= adapted.judgement.coverage[1] <= 0.95


def test_a_tuning_that_does_harm_says_so_and_writes_nothing(base, earlier, tmp_path):
    harm = dataclasses.replace(QUICK, lr=3.0, steps=5)
    out = tmp_path / "ours.safetensors"
    with pytest.raises(InputError, match=r"adapting did not help.*nothing was written: fit with small as it is"):
        adapt(earlier[:2], out, weights=base, settings=harm)
    assert list(tmp_path.iterdir()) == []
    adapt(earlier[:2], out, weights=base, settings=dataclasses.replace(harm, steps=2), anyway=True)
    assert {path.name for path in tmp_path.iterdir()} == {"ours.safetensors", "ours.json"}
