"""Unknowns made fit: grids that nearly cover, coarse ones, constants, units, saturation; and what is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

from geonode.calibration import Calibration
from geonode.calibration.remarks import wide_limits_of
from geonode.calibration.unknown_files import load_unknowns, read_unknowns
from geonode.data import SpectralDataset, inspect_file, load_standards
from geonode.errors import InputError
from geonode_runtime.unknowns import prepare_unknown
from tests.calibration.assays import LEVELS, WAVE, band, folding, monotone, noisy, straight

STANDARDS = monotone(LEVELS)


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return Calibration(LEVELS, noisy(monotone, LEVELS, 0), WAVE, unit="mM")


def on(grid: np.ndarray, c: float = 30.0) -> np.ndarray:
    return np.interp(grid, WAVE, monotone(c)[0])


def test_up_to_a_step_beyond_the_ends_is_left_out_and_said() -> None:
    shifted = WAVE + 0.0008
    found = prepare_unknown(on(shifted), WAVE, STANDARDS, wavelengths=shifted)
    assert found.usable.tolist() == [False] + [True] * (len(WAVE) - 1)
    assert "1 of the standards' 101 wavelengths lie up to 0.0008 beyond its ends" in found.notes[0]
    np.testing.assert_allclose(found.spectra[0, 1:], on(WAVE)[1:], atol=1e-4)
    inner = np.arange(301.9, 698.7, 0.5)  # both ends short by less than a step of 4
    found = prepare_unknown(on(inner), WAVE, STANDARDS, wavelengths=inner)
    assert found.usable.sum() == len(WAVE) - 2 and not found.usable[[0, -1]].any()
    short = np.arange(304.1, 702.0, 0.5)
    with pytest.raises(InputError, match=r"misses 300 to 304\.1"):
        prepare_unknown(on(short), WAVE, STANDARDS, wavelengths=short)


def test_results_with_ends_left_out_agree(calibration: Calibration) -> None:
    spectrum = noisy(monotone, 30.0, 1)[0]
    shifted = WAVE + 0.0008
    whole, cut = calibration.quantify(spectrum), calibration.quantify(np.interp(shifted, WAVE, spectrum), shifted)
    assert cut.masked == 1 and cut.estimate == pytest.approx(whole.estimate, abs=0.2)


@pytest.mark.parametrize("start", [300.0, 301.0, 302.0])
@pytest.mark.parametrize("step", [12.0, 16.0, 20.0, 33.0])
def test_coarse_unknowns_are_compared_where_they_were_measured(calibration, step, start) -> None:
    """Nothing between their wavelengths is made up: straight lines there would blunt the bands."""
    own = np.append(np.arange(start, 697.0, step), 700.0)
    found = prepare_unknown(on(own), WAVE, STANDARDS, wavelengths=own)
    assert (
        len(own) - 2 <= found.usable.sum() <= len(own) and "since nothing between those was measured" in found.notes[-1]
    )
    np.testing.assert_allclose(found.spectra[0, found.usable], on(WAVE)[found.usable], atol=0.004)
    noise = 0.002 * np.random.default_rng(int(step)).standard_normal(len(own))
    answer = calibration.quantify(on(own) + noise, own, method="profile")
    assert answer.verdict == "quantified" and answer.estimate == pytest.approx(30.0, abs=0.7)
    learned = calibration.quantify(on(own) + noise, own)
    assert learned.verdict == "quantified" and any(part.contains(30.0) for part in learned.verdict_components)


def test_far_coarser_unknowns_are_refused() -> None:
    every = WAVE[::2]
    found = prepare_unknown(on(every), WAVE, STANDARDS, wavelengths=every)
    assert "interpolated linearly from its own 51 wavelengths to the 101" in found.notes[0] and found.usable.all()
    for own in (WAVE[::20], WAVE[[0, -1]], np.array([300.0, 340.0, 480.0, 700.0])):
        with pytest.raises(InputError, match="too coarse to be compared"):
            prepare_unknown(on(own), WAVE, STANDARDS, wavelengths=own)


def test_a_constant_is_called_constant() -> None:
    with pytest.raises(InputError, match=r"is 0\.06 at every wavelength: a constant is no spectrum"):
        prepare_unknown(np.full(len(WAVE), 0.06), WAVE, STANDARDS)
    with pytest.raises(InputError, match="every wavelength of the unknown is masked"):
        prepare_unknown(on(WAVE), WAVE, STANDARDS, mask=np.ones(len(WAVE), dtype=bool))


def test_a_spike_is_not_another_unit(calibration: Calibration) -> None:
    spiked = noisy(monotone, 30.0, 2)[0]
    spiked[40] = 50.0
    with pytest.raises(InputError, match="a spike"):
        calibration.quantify(spiked)
    for factor in (1000.0, 1e-3):
        with pytest.raises(InputError, match="another unit"):
            calibration.quantify(factor * monotone(30.0)[0])


@pytest.mark.parametrize("value", [-1.0, 0.0, float("nan"), float("inf")])
def test_saturation_is_a_positive_number(value: float) -> None:
    with pytest.raises(InputError, match="saturated must be a positive number"):
        prepare_unknown(on(WAVE), WAVE, STANDARDS, saturation=value)


@pytest.mark.parametrize("dilution", [1e308, float("inf"), float("nan"), -2.0, 0.0])
def test_absurd_dilutions_are_refused(calibration: Calibration, dilution: float) -> None:
    with pytest.raises(InputError, match="dilution factor must be a number between"):
        calibration.quantify(monotone(30.0)[0], dilution=dilution)


def test_what_readers_say_of_standards_is_not_said_of_unknowns(shared_data) -> None:
    path = shared_data / "raw" / "clariostar" / "calibration.csv"
    standards = load_standards(path)
    said = ("taken as concentration 0", "concentration taken as 1/dilution")
    assert all(any(part in note for note in standards.notes) for part in said)
    unknowns = read_unknowns([str(path)], standards, each=True)
    assert not any(part in note for part in said for one in unknowns for note in one.notes)
    replaced = load_standards(path, column="Dilution")
    assert replaced.levels.max() > 1.0 and not any(part in note for part in said for note in replaced.notes)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("wavelength,0,5.0,5.10,20", "taken as a level of its own"),
        ("wavelength,0,5,5.2,20", "taken as a level of its own"),
        ("nm,0 mM,5 mM,10 mM,20000 µM", "converted from µM to mM"),
        ("nm,a 0 mM,b 5 mM,c 10 mM,d 3-5 mM", "no concentration taken from the name"),
    ],
)
def test_how_headers_were_read_as_concentrations_is_not_said_of_unknowns(tmp_path, header, said) -> None:
    path = tmp_path / "a.csv"
    rows = [f"{400 + 10 * x}," + ",".join(f"{0.1 + 0.01 * x + 0.1 * k:.4f}" for k in range(4)) for x in range(8)]
    path.write_text("\n".join([header, *rows]) + "\n")
    assert any(said in note for note in inspect_file(path).notes)
    unknowns = load_unknowns(path)
    assert len(unknowns) == 4 and not any(said in note for one in unknowns for note in one.notes)


@pytest.mark.parametrize("replicates", [False, True])
def test_what_is_left_out_of_a_folder_of_unknowns_is_said_once_of_each(tmp_path, replicates) -> None:
    for k in range(2):
        rows = (f"{400 + 10 * x},{0.1 + 0.01 * x + 0.001 * k * (x % 3):.4f}" for x in range(8))
        (tmp_path / f"u{k}.csv").write_text("\n".join(["wavelength,absorbance", *rows]) + "\n")
    (tmp_path / "remarks.txt").write_text("nothing of ours\n")
    unknowns = load_unknowns(tmp_path, replicates=replicates)
    assert len(unknowns) == 2 - replicates
    for one in unknowns:
        (note,) = [note for note in one.notes if "left out of" in note]
        assert note.startswith(f"left out of the folder {tmp_path}, since") and note.endswith("'remarks.txt'")


@pytest.mark.parametrize(
    ("head", "factor", "said"),
    [
        ("time (s)", 1.0, r"u\.csv is in s and that of the standards in nm, .* give the spectrum over the same axis"),
        ("wavelength (µm)", 1.0, r"u\.csv are said to be in µm, where 500 to 570 would be 500000 .*: correct the unit"),
        ("wavenumber (cm-1)", 1.0, r"are said to be in cm-1, .* which are in nm: correct the unit that is said"),
        ("wavelength (µm)", 1e-3, ""),
        ("wavelength (furlong)", 1.0, ""),
    ],
)
def test_an_axis_in_another_unit_than_the_standards_is_told_with_a_remedy(tmp_path, head, factor, said) -> None:
    """Converted where it can be, refused with what to do where it cannot; a unit that nobody knows is no silent nm."""
    axis = 500.0 + 10.0 * np.arange(8)
    standards = SpectralDataset(np.outer([1.0, 2.0, 3.0], np.arange(1.0, 9.0)), [1, 2, 3], axis, wavelength_unit="nm")
    rows = (f"{x * factor:.6g},{0.1 + 0.01 * k}" for k, x in enumerate(axis))
    path = tmp_path / "u.csv"
    path.write_text("\n".join([f"{head},u", *rows]) + "\n")
    if said:
        with pytest.raises(InputError, match=said):
            load_unknowns(path, standards)
        return
    (one,) = load_unknowns(path, standards)
    assert one.wavelengths == pytest.approx(axis)
    assert any("converted from µm to nm" in note or "no known unit is said in" in note for note in one.notes)


# ---------------------------------------------------------------------- what is said


def test_where_concentrations_were_found_is_not_said_of_unknowns(tmp_path) -> None:
    """A table of samples in rows with their concentrations: that of standards, and asked as unknowns."""
    levels = (0.0, 10.0, 20.0, 40.0)
    rows = [f"{c:g}," + ",".join(f"{0.1 + 0.01 * c + 0.001 * x:.4f}" for x in range(8)) for c in levels]
    path = tmp_path / "plate.csv"
    path.write_text("\n".join(["concentration," + ",".join(str(400 + 10 * x) for x in range(8)), *rows]) + "\n")
    standards = load_standards(path)
    said = "taken as the concentration"
    assert any(said in note for note in standards.notes)
    assert not any(said in note for one in read_unknowns([str(path)], standards, each=True) for note in one.notes)


def test_ranges_and_their_number_are_of_one_set() -> None:
    calibration = Calibration(LEVELS, noisy(folding, LEVELS, 0), WAVE, unit="mM")
    seen = set()
    for level in (0.3, 0.8, 0.95):
        for answer in calibration.quantify_many(noisy(folding, np.linspace(5.0, 40.0, 15), 2), level, method="profile"):
            if answer.verdict != "ambiguous":
                continue
            said = answer.sentence("mM")
            kind = "set:" if level <= answer.attainable else "interval that 6 standards alone vouch for"
            count = len(answer.components)
            assert said.count("probability") == (count if count > 1 else 0) and f"{100 * level:g} % {kind}" in said
            (note,) = [n for n in answer.notes if "separate" in n or "as wide" in n]
            if len(answer.components) > 1 and "separate" in note:
                assert note.startswith(f"{len(answer.components)} separate ranges") and f"{100 * level:g} % set" in note
                seen.add("several")
            elif "separate" in note:
                assert f"the {100 * level:g} % set is one range" in note and "95 % set" in note
                seen.add("one")
    assert seen == {"several", "one"}


def test_units_stand_behind_the_numbers(calibration: Calibration) -> None:
    beyond = calibration.quantify(noisy(monotone, 110.0, 4)[0])
    assert beyond.high is None
    assert beyond.sentence("mM") == "outside calibrated range: above 60 mM, the highest standard"
    inside = calibration.quantify(noisy(monotone, 30.0, 4)[0])
    assert inside.sentence("mM").endswith(f"{inside.low:.4g} to {inside.high:.4g} mM")


def test_wide_limits_of_does_not_match_are_said(calibration: Calibration) -> None:
    few = Calibration(LEVELS[:4], noisy(monotone, LEVELS[:4], 0), WAVE)
    (note,) = wide_limits_of(few)
    assert "4 left-out standards" in note and "grossly foreign" in note
    # χ²_{97.5 %}(ν)/ν of ν = 101 − r, by its normal approximation 1 + 1.96 √(2/ν)
    factor = few.q_limit / (1.0 + 1.96 * np.sqrt(2.0 / (len(WAVE) - few.inverse.rank)))
    assert float(note.split("standards: ")[1].split(" (Q)")[0]) == pytest.approx(factor, rel=0.05)
    many = np.linspace(0.0, 60.0, 13)
    fine = Calibration(many, noisy(straight, many, 0), WAVE)
    assert not wide_limits_of(fine)
    for made in (few, fine):  # of the posterior, which has no such limits, nothing is said
        spectrum = noisy(monotone, 30.0, 1)
        asked, plain = made.quantify(spectrum[0], method="profile"), made.quantify(spectrum[0])
        (many,) = made.quantify_many(spectrum, method="profile")
        assert all(
            any("limits of 'does not match' rest" in n for n in one.notes) == (made is few) for one in (asked, many)
        )
        assert not any("limits of 'does not match' rest" in n for n in plain.notes)


def test_a_dataset_with_masked_ends_is_still_compared() -> None:
    spectra = noisy(monotone, LEVELS, 3)
    calibration = Calibration.from_dataset(SpectralDataset(spectra, LEVELS, WAVE))
    foreign = monotone(20.0)[0] + 0.3 * band(520, 15)
    assert calibration.quantify(foreign, WAVE + 0.5).verdict == "does not match"


@pytest.mark.parametrize(("limit", "c"), [(0.21, 30.0), (0.25, 20.0), (0.3, 45.0)])
def test_a_saturation_that_masks_what_changes_is_refused_with_the_least_that_is_not(limit: float, c: float) -> None:
    """The standards themselves exceed it nearly everywhere: what is left was chosen for being weak."""
    unknown = noisy(monotone, [c], 4)[0]
    with pytest.raises(InputError, match=rf"saturation={limit} masks \d+ of 101 wavelengths of u, which hold") as told:
        prepare_unknown(unknown, WAVE, STANDARDS, saturation=limit, name="u")
    least = float(re.findall(r"give ([\d.]+) or more, the value at which the detector saturates", str(told.value))[0])
    assert limit < least < unknown.max()
    kept = prepare_unknown(unknown, WAVE, STANDARDS, saturation=least, name="u").usable
    share = STANDARDS.var(axis=0)
    assert 0.1 <= share[kept].sum() / share.sum() < 0.2
    below = least * (1.0 - 1.1e-2)
    with pytest.raises(InputError, match="exceed it themselves"):
        prepare_unknown(unknown, WAVE, STANDARDS, saturation=below, name="u")


@pytest.mark.parametrize("limit", [1.05, 1.2, 2.0])
def test_a_saturation_above_the_standards_masks_whatever_the_unknown_has_there(limit: float) -> None:
    """Beyond the range a spectrum may lose all that changes: that is no reason to refuse it."""
    unknown = np.minimum(0.2 + 6.0 * (monotone([30.0])[0] - 0.2), limit)
    prepared = prepare_unknown(unknown, WAVE, STANDARDS, saturation=limit)
    np.testing.assert_array_equal(prepared.usable, unknown < limit)
