"""What is taken as it is written, and told: standards that are transmittance, units that nobody uses."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import geonode
from geonode.commands import amounts
from geonode.data.readers import load_standards
from geonode.data.readers.inspection import inspect_file
from geonode.data.readers.transmittance import transmittance_note
from geonode.data.readers.unit_words import beside_label, is_concentration
from geonode.errors import InputError, ReaderError
from tests.calibration.assays import LEVELS, WAVE, folding, monotone, noisy, straight

LOOKS = "look like percent transmittance"
NAMED = "taken as it is; absorbance, 2 − log10(%T), is nearer to a straight line"


def written(path: Path, spectra: np.ndarray, axis: str = "wavelength / nm") -> Path:
    rows = (",".join(f"{v:.6g}" for v in row) for row in zip(WAVE, *spectra, strict=True))
    path.write_text(f"{axis},{','.join(f'{c:g}' for c in LEVELS)}\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def percent(truth) -> np.ndarray:
    return 100.0 * 10.0 ** -(noisy(truth, LEVELS, 1) - 0.2)


@pytest.mark.parametrize("truth", [straight, monotone], ids=["straight", "saturating"])
@pytest.mark.parametrize("clear", [1.0, 0.9, 1.04], ids=["to 100", "to 90", "to 104"])
def test_percent_transmittance_that_no_header_names_is_noted(truth, clear, tmp_path):
    found = load_standards(written(tmp_path / "t.csv", clear * percent(truth)))
    assert sum(LOOKS in note for note in found.notes) == 1
    assert sum(LOOKS in note for note in inspect_file(tmp_path / "t.csv").notes) == 1
    assert found.spectra == pytest.approx(clear * percent(truth), rel=1e-5)


COUNTS = {
    "absorbance": lambda: noisy(monotone, LEVELS, 1),
    "absorbance that folds": lambda: noisy(folding, LEVELS, 1),
    "counts": lambda: 2e4 * noisy(straight, LEVELS, 1),
    "a rising fluorescence up to 100": lambda: 120.0 * (noisy(straight, LEVELS, 1) - 0.2),
    "a bleach of absorbance": lambda: noisy(straight, LEVELS[::-1], 1),
}


@pytest.mark.parametrize("name", COUNTS)
def test_other_signals_are_not(name, tmp_path):
    assert not any(LOOKS in note for note in load_standards(written(tmp_path / "s.csv", COUNTS[name]())).notes)


@pytest.mark.parametrize("unit", ["%", ""])
def test_transmittance_that_is_said_is_told_to_be_used_as_it_is(unit):
    assert NAMED in transmittance_note("transmittance", unit, percent(straight), LEVELS)


def test_so_it_is_of_an_instruments_file(tmp_path):
    pairs = [row.split(",") for row in written(tmp_path / "t.csv", percent(straight)).read_text("utf-8").splitlines()]
    lines = [",".join(f"{c} ppb," for c in pairs[0][1:]), ",".join("Wavelength (nm),%T" for _ in pairs[0][1:])]
    lines += [",".join(f"{row[0]},{value}" for value in row[1:]) for row in pairs[1:]]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = load_standards(tmp_path / "t.csv")
    assert found.signal == "transmittance" and sum(NAMED in note for note in found.notes) == 1


@pytest.mark.parametrize("unit", ["furlong", "mgL", "ppbb", "ounce"])
def test_a_unit_that_nobody_uses_is_told_with_those_that_are_known(unit, tmp_path):
    found = load_standards(written(tmp_path / "s.csv", noisy(straight, LEVELS, 1)), concentration_unit=unit)
    assert found.units["concentration"] == unit
    (said,) = [note for note in found.notes if "is no unit of concentration that is known" in note]
    assert said.startswith(f"'{unit}' is no unit") and "ppb" in said and "mg/L" in said
    assert said.endswith("it was taken as a label: nothing is converted to it or from it")


@pytest.mark.parametrize(
    ("unit", "way"),
    [("drops", "{} drops"), ("drops", "{}(drops)"), ("spoons of sugar", "{}_spoons of sugar"), ("pH", "pH {}"),
     ("pH", "pH={}"), ("g/100 mL", "{} g/100 mL")],
)  # fmt: skip
def test_a_label_written_in_both_places_the_same_is_the_unit(unit, way, tmp_path):
    """In the headers of the file and where the unit is asked for; without the second, or beside another, it is none."""
    first, *rows = written(tmp_path / "s.csv", noisy(straight, LEVELS, 1)).read_text().splitlines()
    heads = [way.format(one) for one in first.split(",")[1:]]
    (tmp_path / "s.csv").write_text("\n".join([",".join(["wavelength", *heads]), *rows]) + "\n")
    found = load_standards(tmp_path / "s.csv", concentration_unit=unit)
    assert found.levels.ravel().tolist() == LEVELS.tolist() and found.units["concentration"] == unit
    assert sum("taken as a label" in note for note in found.notes) == (not is_concentration(unit))
    assert amounts.concentration(way.format("15.5"), "--qc", unit) == (15.5, "")
    for other in (None, "bananas", "mg/L"):
        with pytest.raises(ReaderError, match="no concentration is known for"):
            load_standards(tmp_path / "s.csv", concentration_unit=other)
    with pytest.raises(InputError, match=r"--qc 15 mg/L: mg/L does not convert|--qc 15 mg/L: that is no"):
        amounts.concentration("15 mg/L", "--qc", unit)


def test_a_label_of_a_table_of_concentrations_is_told_too(tmp_path):
    path = written(tmp_path / "s.csv", noisy(straight, LEVELS, 1))
    _, *rows = path.read_text().splitlines()
    path.write_text("\n".join(["wavelength,a,b,c,d,e,f", *rows]) + "\n")
    listed = "".join(f"{name},{c:g}\n" for name, c in zip("abcdef", LEVELS, strict=True))
    for unit, count in (("drops", 1), ("mg/L", 0)):
        (tmp_path / "note.csv").write_text(f"sample,amount ({unit})\n{listed}")
        found = load_standards(path, concentrations=tmp_path / "note.csv")
        assert found.units["concentration"] == unit
        assert sum("taken as a label" in note for note in found.notes) == count


@pytest.mark.parametrize("text", ["1,050 drops", "drops", "5 drop", "5 drops more", "5 5 drops", "drops of 5"])
def test_what_is_no_number_beside_its_label(text):
    assert beside_label(text, "drops") is None


@pytest.mark.parametrize(("text", "value"), [("0,125 drops", 0.125), ("1,5 drops", 1.5), ("2e3drops", 2000.0)])
def test_a_number_beside_its_label(text, value):
    assert beside_label(text, "drops") == value


@pytest.mark.parametrize(
    "unit",
    ["ppb", "mg/L", "%", "IU/mL", "pH", "uM", "µmol/L", "mg/dL", "mg_L-1", "wt%", "% (w/v)", "v/v", "cells/mL", "U/L",
     "mol/kg", "µg/g", "°Bx", "NTU", "g/100 mL", "mg/100g", "relative", "mEq/L", "CFU/mL", "equiv."],
)  # fmt: skip
def test_units_that_are_used_are_taken_without_a_word(unit, tmp_path):
    assert is_concentration(unit)
    found = load_standards(written(tmp_path / "s.csv", noisy(straight, LEVELS, 1)), concentration_unit=unit)
    assert found.units["concentration"] == unit and not any("no unit" in note for note in found.notes)


def test_a_wavelength_that_no_standard_has_a_number_for_changes_nothing():
    spectra = percent(straight)
    spectra[:, 3] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert LOOKS in transmittance_note("signal", "", spectra, LEVELS)
        assert transmittance_note("signal", "", np.full_like(spectra, np.nan), LEVELS) == ""


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("uncertainty", "the uncertainty of the standards is what concentration_std says"),
        ("conc. SD", "the uncertainty of the standards is what concentration_std says"),
        ("error", "the uncertainty of the standards is what concentration_std says"),
        ("Weight", "standards count alike"),
    ],
)
@pytest.mark.parametrize("beside", [True, False], ids=["in the file", "in a table"])
def test_a_column_of_uncertainties_or_weights_is_said_to_be_unused(tmp_path, column, said, beside):
    heads = [f"{400 + 10 * k}" for k in range(12)]
    own = [f"sample,concentration,{column}"] + [f"S{k},{5 * k},0.1" for k in range(5)]
    values = [heads] + [[f"{0.1 * (k + 1) * (1.0 + 0.1 * w):.4f}" for w in range(12)] for k in range(5)]
    if beside:
        lines = [",".join([left, *row]) for left, row in zip(own, values, strict=True)]
        table = None
    else:
        lines = [",".join([left.split(",")[0], *row]) for left, row in zip(own, values, strict=True)]
        table = tmp_path / "table.csv"
        table.write_text("\n".join(own) + "\n", encoding="utf-8")
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    data = geonode.load_standards(tmp_path / "a.csv", concentrations=table)
    assert data.levels.tolist() == [0.0, 5.0, 10.0, 15.0, 20.0]
    assert any(f"column '{column}' is not used: {said}" in note for note in data.notes), data.notes
