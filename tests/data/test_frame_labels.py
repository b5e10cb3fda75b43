"""Columns beside the spectra of a DataFrame, names, factors of dilution, temperatures: told as those of a file are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from geonode.calibration.asking import questions
from geonode.calibration.unknown_files import load_unknowns
from geonode.data import given_standards, load_standards
from geonode.data.given import given_spectra
from geonode.errors import GeonodeError, InputError

W = np.arange(400.0, 480.0, 10.0)
LEVELS = (5.0, 10.0, 20.0, 40.0)


def frame(levels=LEVELS[:2], **beside) -> pd.DataFrame:
    """Samples in rows, and columns ``beside`` them in front."""
    spectra = np.outer(levels, np.linspace(0.01, 0.02, len(W))) + 0.001 * np.arange(len(W)) ** 2
    made = pd.DataFrame(spectra.round(5), columns=W)
    for k, (name, cells) in enumerate(beside.items()):
        made.insert(k, name.replace("_", " "), list(cells))
    return made


def notes_of(data: pd.DataFrame) -> list[tuple[str, ...]]:
    found, _ = questions(data, None, replicates=False, mask=None, name="u", unit="nm", standards=W)
    assert all(np.array_equal(one.wavelengths, W) for one in found)
    return [one.notes for one in found]


@pytest.mark.parametrize(
    ("called", "factors", "shown", "said"),
    [
        ("dilution_factor", (5, 10), ("5", "10"), ("5", "10")),
        ("Verdünnung", ("1:5", "1+9"), ("1:5", "1+9"), ("5", "10")),
        ("DF", (2.5, 4.0), ("2.5", "4"), ("2.5", "4")),
    ],
)
def test_a_dilution_that_was_not_used_is_told_of_a_frame_and_of_a_file(tmp_path, called, factors, shown, said):
    data = frame(sample=("a", "b"), **{called: factors})
    head = called.replace("_", " ")
    wanted = [
        f"the column '{head}' ({one}) tells a dilution and was not used: only a factor that is said "
        f"(dilution={factor}) is undone in the result"
        for one, factor in zip(shown, said, strict=True)
    ]
    assert [notes[-1] for notes in notes_of(data)] == wanted
    data.to_csv(tmp_path / "u.csv", index=False)
    assert [one.notes[-1].replace(".0)", ")") for one in load_unknowns(tmp_path / "u.csv")] == wanted


@pytest.mark.parametrize("beside", [{"dilution": (1, 1)}, {"dilution": ("none", "1:1")}, {"manifold": (1, 2)}])
def test_where_nothing_was_diluted_nothing_is_told(tmp_path, beside):
    data = frame(sample=("a", "b"), **beside)
    assert not any("dilution" in note for notes in notes_of(data) for note in notes)
    data.to_csv(tmp_path / "u.csv", index=False)
    assert not any("not used" in note for one in load_unknowns(tmp_path / "u.csv") for note in one.notes)


def test_replicates_of_several_dilutions_are_told_together():
    data = frame((5.0, 5.1, 9.0), group=("a", "a", "b"), dilution=(2, 4, 1))
    (first, second) = notes_of(data)
    assert "(2, 4) tells a dilution" in first[-1] and second == ()


def test_words_name_the_samples_and_other_numbers_are_left_out_with_a_note():
    given = given_spectra(frame(plate=("P", "P"), well=("A1", "A2"), **{"T_(°C)": (25.0, 25.1)}))
    assert given.names == ("P A1", "P A2") and given.values.shape == (2, len(W))
    assert given.notes == ("column 'T (°C)' of the unknown left out: it is headed by no wavelength",)
    assert given_spectra(frame(concentration=(1, 2), dilution=(5, 5))).values.shape == (2, len(W))


def test_words_beside_too_few_or_other_numbers_are_no_labels():
    for columns in (["s1", 0.0, 10.0, 20.0], ["s1", 400.0, 410.0], ["s1", "s2"]):
        with pytest.raises(InputError, match="no wavelengths are found"):
            given_spectra(pd.DataFrame(np.eye(4)[:, : len(columns)], columns=columns))


@pytest.mark.parametrize(
    ("factors", "said"),
    [((5, 5, 4, 8), "before it or after; if it is that in the cuvette, take 'dilution factor' out"), ((1,) * 4, "")],
)
def test_standards_beside_a_dilution_are_refused_as_in_a_file(tmp_path, factors, said):
    data = frame(LEVELS, **{"concentration_(µM)": LEVELS, "dilution_factor": factors})
    data.to_csv(tmp_path / "s.csv", index=False)
    for read in (lambda: given_standards(data), lambda: load_standards(tmp_path / "s.csv")):
        if said:
            with pytest.raises(GeonodeError, match=said):
                read()
        else:
            assert read().concentrations.tolist() == list(LEVELS)


def test_one_stock_and_its_dilutions_are_standards():
    data = frame(LEVELS, concentration=LEVELS, dilution=(8, 4, 2, 1))
    assert given_standards(data).concentrations.tolist() == list(LEVELS)
    with pytest.raises(InputError, match="'concentration' is the same in every row, so that it is no concentration"):
        given_standards(frame(LEVELS, **{"concentration": (40.0,) * 4, "dilution": (8, 4, 2, 1)}))
