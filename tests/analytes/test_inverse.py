"""Two concentrations from one spectrum: laws of the density and its sets, coverage, what is refused, the commands."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest

import geonode
from geonode.analytes import SurfaceGP, fit_plane, load_plane, save_plane
from geonode.analytes.plane import PlaneDensity
from geonode.analytes.plane_sets import LEAST_PIECE, one_analyte, region
from geonode.bundle import read_bundle, write_bundle
from geonode.commands.plane import FIT, QUANTIFY
from geonode.data import SpectralDataset, simulate_sensor
from geonode.errors import BundleError, InputError
from tests.commands.cases import run

PH, CHLORIDE, NOISE = [5.5, 6.2, 6.9, 7.6, 8.3], [0.0, 10.0, 30.0, 80.0, 200.0, 500.0], 0.005
WAVE = np.arange(360.0, 521.0, 8.0)
QUICK = {"starts": 2, "hidden": 4, "steps": 120}


@pytest.fixture(scope="module")
def plate():
    return simulate_sensor(PH, CHLORIDE, WAVE.tolist(), noise=NOISE, seed=1)


@pytest.fixture(scope="module")
def made(plate):
    return fit_plane(plate, SurfaceGP(**QUICK))


def spectra(plate, points, seed: int = 0, noise: float = NOISE) -> np.ndarray:
    truth = plate.truth(np.atleast_2d(points).tolist()).numpy()
    return truth + noise * np.random.default_rng(seed).standard_normal(truth.shape)


def within(count: int, seed: int) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return np.stack([draw.uniform(5.5, 8.3, count), 10 ** draw.uniform(0.5, 2.6, count)], axis=1)


@pytest.fixture(scope="module")
def asked(made, plate):
    points = within(60, 7)
    return points, made.quantify(spectra(plate, points, 8))


# --- laws -------------------------------------------------------------------------------------------------------------


def test_mass_adds_up_and_regions_are_nested(asked):
    for _, answer in zip(*asked, strict=True):
        density = answer.density
        assert density.mass.sum() == pytest.approx(1.0) and (density.mass >= 0.0).all()
        inner, outer = region(density, 0.5), region(density, 0.9)
        assert (outer.inside | ~inner.inside).all()
        held = density.mass[inner.inside]
        least = density.density[inner.inside].min()  # without the cells of least density it would hold less
        assert (
            held.sum() >= 0.5 - LEAST_PIECE > density.mass[density.density > least * (1.0 + 1e-12)].sum() - LEAST_PIECE
        )
        assert sum(piece.probability for piece in inner.pieces) == pytest.approx(held.sum())
        for piece in inner.pieces:
            assert inner.contains(np.array(piece.point))
            assert all(a <= x <= b for a, x, b in zip(piece.low, piece.point, piece.high, strict=True))


def credibility(found: PlaneDensity, point: np.ndarray) -> float:
    """The level of the smallest region of highest density that covers ``point [2]``."""
    i, j = (int(np.abs(axis - value).argmin()) for axis, value in zip(found.axes, point, strict=True))
    return float(found.mass[found.density > found.density[i, j]].sum())


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_a_point_is_in_the_region_from_its_credibility_on(asked, level):
    for point, answer in zip(*asked, strict=True):
        nearest = np.array(
            [axis[np.abs(axis - v).argmin()] for axis, v in zip(answer.density.axes, point, strict=True)]
        )
        inside = credibility(answer.density, nearest) < level
        found = region(answer.density, level)
        if len(found.pieces) == 1:
            assert found.contains(nearest) == inside


@pytest.mark.parametrize("analyte", [0, 1])
def test_one_analyte_alone_is_the_margin(asked, analyte):
    for answer in asked[1][:10]:
        found = one_analyte(answer.density, analyte, 0.8, ends_at_zero=analyte == 1)
        assert sum(c.probability for c in found.components) == pytest.approx(1.0)
        assert all(c.low <= c.estimate <= c.high and c.low <= c.mean <= c.high for c in found.components)


def test_the_grid_closes_in(made, plate):
    """However narrow the density is, dozens of cells hold it."""
    for noise in (1.0, 0.1, 0.01):
        place, own, _ = made.space.coordinates(spectra(plate, [7.2, 50.0], noise=0.0)[0], np.ones(len(WAVE), bool))
        held = made.plane.density(place, noise**2 * own, made.widening)
        assert (held.density > 0.1 * held.density.max()).sum() >= 30


# --- what it finds ----------------------------------------------------------------------------------------------------


def test_regions_cover_as_often_as_they_say(asked):
    """Sixty unknowns: the binomial's 0.5 % tails around 80 %; `benchmarks/two_analytes_inverse.py` has hundreds."""
    covered = np.mean([answer.region.contains(point) for point, answer in zip(*asked, strict=True)])
    assert 0.65 <= covered <= 0.93
    assert np.mean([answer.region_95.contains(point) for point, answer in zip(*asked, strict=True)]) >= 0.87
    assert sum(answer.verdict == "does not match" for answer in asked[1]) <= 3  # a limit of 1 %


def test_the_order_of_the_analytes_changes_nothing(made, plate):
    swapped = SpectralDataset(
        np.array(plate.spectra), np.array(plate.concentrations)[:, ::-1].copy(), WAVE, analytes=("Cl", "pH"),
        concentration_unit="mM, 1",
    )  # fmt: skip
    other = fit_plane(swapped, SurfaceGP(**QUICK))
    assert other.widening == pytest.approx(made.widening, rel=1e-6)
    for point in ((6.5, 20.0), (7.9, 120.0)):
        one, two = (m.quantify(spectra(plate, point, 3)[0]) for m in (made, other))
        assert one.verdict == two.verdict and one.point == pytest.approx(two.point[::-1], rel=1e-5)
        for a, b in zip(one.parts, two.parts[::-1], strict=True):
            assert (a.low, a.high) == pytest.approx((b.low, b.high), rel=1e-5)
    means = made.gp.predict_mean([[7.0, 50.0]]), other.gp.predict_mean([[50.0, 7.0]])
    np.testing.assert_allclose(*means, rtol=1e-6)


def test_too_few_standards_to_leave_out_quantify_nothing(plate):
    rows = [0, 5, 24, 29, 14, 8]
    few = SpectralDataset(
        np.array(plate.spectra)[rows], np.array(plate.concentrations)[rows], WAVE, analytes=("pH", "Cl"),
        concentration_unit="1, mM",
    )  # fmt: skip
    made = fit_plane(few, SurfaceGP(**QUICK))
    answers = made.quantify(spectra(plate, within(10, 3), 4))
    assert {a.verdict for a in answers} <= {"ambiguous", "does not match"}
    said = [a for a in answers if a.verdict == "ambiguous"]
    notes = [" ".join(a.notes) for a in said]
    assert said and all("6 standards are too few" in note and "measure 9 or more" in note for note in notes)


@pytest.mark.parametrize("point", [(6.5, 20.0), (7.2, 50.0), (7.9, 120.0)])
def test_both_concentrations_are_found(made, plate, point):
    answer = made.quantify(spectra(plate, point, 3)[0])
    assert answer.verdict == "quantified" and not answer.extrapolated
    assert answer.point[0] == pytest.approx(point[0], abs=0.3) and answer.point[1] == pytest.approx(point[1], rel=0.3)
    said = answer.sentence()
    assert said.startswith("pH: quantified: ") and "; Cl: quantified: " in said and " mM, 80 % interval" in said


def test_a_blank_of_one_analyte_is_below_its_limit(made, plate):
    answer = made.quantify(spectra(plate, [6.9, 0.0], 4)[0])
    assert answer.verdict == answer.parts[1].verdict == "below detection limit"
    assert answer.parts[0].verdict == "quantified" and "cannot be told from a blank" in answer.notes[0]


@pytest.mark.parametrize("change", [lambda s: s + 0.1, lambda s: s[::-1], lambda s: 1.5 * s + 0.05])
def test_a_foreign_spectrum_does_not_match(made, plate, change):
    answer = made.quantify(change(spectra(plate, [7.0, 50.0], 5)[0]))
    assert answer.verdict == "does not match" and answer.to_dict()["estimate"] is None
    assert answer.sentence().startswith("does not match: ") and answer.to_dict()["regions"] == []


def test_beyond_the_hull_is_said():
    """A triangle of standards: its empty corner is within the box and outside the hull."""
    grid = [(p, c) for i, p in enumerate(PH) for j, c in enumerate(CHLORIDE) if i + j <= 5]
    plate = simulate_sensor(PH, CHLORIDE, WAVE.tolist(), noise=0.002, seed=2)
    rows = [int(np.flatnonzero((np.array(plate.concentrations) == point).all(axis=1))[0]) for point in grid]
    some = SpectralDataset(
        np.array(plate.spectra)[rows], np.array(grid), WAVE, analytes=("pH", "Cl"), concentration_unit="1, mM"
    )
    made = fit_plane(some, SurfaceGP(**QUICK | {"starts": 1}))
    for point in ((8.2, 450.0), (8.2, 300.0), (7.9, 480.0)):
        answer = made.quantify(spectra(plate, point, 1, 0.002)[0])
        assert answer.extrapolated or answer.verdict in ("outside calibrated range", "does not match", "ambiguous")
        assert answer.verdict == "does not match" or any("hull" in n or "region" in n for n in answer.notes)
    inner = made.quantify(spectra(plate, (6.5, 40.0), 1, 0.002)[0])
    assert not inner.extrapolated and not any("hull" in note for note in inner.notes)


def test_replicates_narrow_and_different_samples_are_refused(made, plate):
    one = spectra(plate, [[7.2, 50.0]] * 4, 6)
    alone, together = made.quantify(one[0]), made.quantify(one, replicates=True)
    assert together.parts[0].components[0].std < alone.parts[0].components[0].std and together.parts[0].replicates == 4
    for other in ([6.0, 50.0], [7.2, 400.0], [8.2, 5.0]):
        with pytest.raises(InputError, match=r"of different ones: number . has (pH|Cl) up to .*replicates=True"):
            made.quantify(np.concatenate([one[:1], spectra(plate, other, 9)]), replicates=True)


def test_masked_and_coarse_unknowns(made, plate):
    spectrum = spectra(plate, [7.2, 50.0], 3)[0]
    mask = np.zeros(len(WAVE), dtype=bool)
    mask[[4, 9]] = True
    found = made.quantify(np.where(mask, np.nan, spectrum), mask=mask)
    assert found.parts[0].masked == 2 and found.point[0] == pytest.approx(7.2, abs=0.3)
    with pytest.raises(InputError, match=r"misses 360 to 400"):
        made.quantify(spectrum[5:], WAVE[5:])
    with pytest.raises(InputError, match="between 0 and 1"):
        made.quantify(spectrum, level=1.5)


# --- files and commands -----------------------------------------------------------------------------------------------


def test_a_bundle_of_the_rule_before_is_refused_in_one_sentence(made, tmp_path):
    path = tmp_path / "plane.bundle"
    save_plane(made, path)
    tensors, metadata = read_bundle(path)
    kept = {name: value for name, value in tensors.items() if not name.startswith("members/")}
    write_bundle(path, kept, {name: value for name, value in metadata.items() if name not in ("version", "checksum")})
    with pytest.raises(
        BundleError, match=r"plane\.bundle was written by an earlier geonode.*; fit again and save anew"
    ):
        load_plane(path)


def test_a_bundle_answers_as_the_calibration_that_wrote_it(made, plate, tmp_path):
    save_plane(made, tmp_path / "plane.bundle")
    again = load_plane(tmp_path / "plane.bundle")
    for point in ((6.5, 20.0), (7.9, 120.0)):
        spectrum = spectra(plate, point, 3)[0]
        assert again.quantify(spectrum).to_dict() == made.quantify(spectrum).to_dict()
    with pytest.raises(BundleError, match=r"two analytes.*geonode.analytes.load_plane"):
        geonode.load(tmp_path / "plane.bundle")
    for command in (
        ["predict", "--at", 5, "--out", tmp_path / "p.csv"],
        ["report", "--out", tmp_path / "r"],
        ["suggest"],
    ):
        said = run(command[0], tmp_path / "plane.bundle", *command[1:], code=2).output
        assert "a calibration of two analytes" in said and said.count("\n") == 1


def write_plate(folder, plate) -> None:
    names = [f"w{k}" for k in range(len(plate))]
    table = np.column_stack([WAVE, np.array(plate.spectra).T])
    rows = [",".join(["wavelength", *names]), *(",".join(f"{v:.6g}" for v in row) for row in table)]
    (folder / "plate.csv").write_text("\n".join(rows) + "\n")
    note = ["sample,pH,Cl", *(f"{n},{p:g},{c:g}" for n, (p, c) in zip(names, plate.concentrations, strict=True))]
    (folder / "note.csv").write_text("\n".join(note) + "\n")


def test_the_commands_fit_and_answer(plate, tmp_path, monkeypatch):
    monkeypatch.setattr("geonode.analytes.plane_calibration.SurfaceGP", functools.partial(SurfaceGP, **QUICK))
    write_plate(tmp_path, plate)
    bundle, drawn = tmp_path / "plane.bundle", tmp_path / "plane.png"
    columns = ["--column", "pH", "--column", "Cl"]
    fitting = ["fit", tmp_path / "plate.csv", "--concentrations", tmp_path / "note.csv", *columns, "--out", bundle]
    said = run(*fitting).output
    assert "30 levels of two analytes" in said and "pH: 5.5 6.2 6.9 7.6 8.3" in said and "left out one by one" in said
    values = spectra(plate, [7.2, 50.0], 3)[0]
    rows = ["wavelength,unknown", *(f"{w:g},{v:.6g}" for w, v in zip(WAVE, values, strict=True))]
    (tmp_path / "u.csv").write_text("\n".join(rows) + "\n")
    said = run("quantify", bundle, tmp_path / "u.csv", "--json", tmp_path / "a.json", "--plot", drawn).output
    (entry,) = json.loads((tmp_path / "a.json").read_text())["unknowns"]
    assert "pH: quantified" in said and "Cl: quantified" in said and drawn.stat().st_size > 5000
    assert entry["verdict"] == "quantified" and set(entry["by_analyte"]) == {"pH", "Cl"}
    assert entry["estimate"] == pytest.approx([7.2, 50.0], rel=0.25)


VALUES = {
    "folds": None, "blueprint": None, "resume": None, "compiled": None, "profile": None, "wandb": None,
    "predictor": "gp", "flow": "velocity", "preprocess": "snv", "settings": "s.json", "weights": "w.safetensors",
    "epochs": 3, "margin": 0.2, "precision": "64-true", "uncertainty": "2%", "log": "logs", "checkpoint": "run",
    "strategy": "ddp", "batch": "auto", "recompute": 2, "seed": 3, "device": "cpu",
    "dilution": "1:5", "dilution_std": "1%", "blank": "u.csv", "qc": 5, "method": "profile", "table": "t.csv",
}  # fmt: skip
"""A value for every option that is for one analyte, None for a flag."""


def options_of(name: str) -> dict[str, str]:
    import typer

    from geonode.cli import app

    command = typer.main.get_command(app).commands[name]
    return {p.name: p.opts[0] for p in command.params if p.param_type_name == "option" and p.name != "help"}


@pytest.fixture(scope="module")
def on_disk(made, plate, tmp_path_factory):
    folder = tmp_path_factory.mktemp("plane")
    write_plate(folder, plate)
    save_plane(made, folder / "plane.bundle")
    values = spectra(plate, [7.2, 50.0], 3)[0]
    rows = ["wavelength,unknown", *(f"{w:g},{v:.6g}" for w, v in zip(WAVE, values, strict=True))]
    (folder / "u.csv").write_text("\n".join(rows) + "\n")
    (folder / "s.json").write_text("{}")
    (folder / "w.safetensors").write_text("")
    return folder


def test_of_several_files_one_that_is_refused_costs_no_other_its_answer(made, on_disk, tmp_path):
    (tmp_path / "words.csv").write_text("dear colleague\n")
    files = [tmp_path / "words.csv", on_disk / "u.csv"]
    out = tmp_path / "a.json"
    said = run("quantify", on_disk / "plane.bundle", *files, "--each", "--json", out, code=2).output
    assert "1 of 2 unknowns was not answered: words.csv" in said.splitlines()[-1]
    entries = json.loads(out.read_text())["unknowns"]
    assert "words.csv" in entries[0]["refused"] and entries[1]["estimate"] == pytest.approx([7.2, 50.0], rel=0.25)
    answers = made.quantify([str(path) for path in files])
    assert [one.verdict for one in answers] == ["refused", entries[1]["verdict"]]


@pytest.mark.parametrize(("command", "honoured"), [("fit", FIT), ("quantify", QUANTIFY)])
def test_every_option_is_honoured_or_refused_by_name(command, honoured, on_disk, monkeypatch):
    monkeypatch.chdir(on_disk)
    columns = ["--column", "pH", "--column", "Cl"]
    fitting = ["fit", "plate.csv", "--concentrations", "note.csv", *columns, "--out", "new.bundle"]
    start = fitting if command == "fit" else ["quantify", "plane.bundle", "u.csv"]
    options = options_of(command)
    assert set(honoured) <= set(options)
    besides = {"resume": ["--checkpoint", "run"], "profile": ["--log-dir", "logs"]}
    for name in set(options) - set(honoured):
        value = VALUES[name]
        given = [options[name]] if value is None else [options[name], value]
        said = run(*start, *given, *besides.get(name, []), code=2).output
        refused = [options[name], *besides.get(name, [])[:1], "--log"]
        assert any(
            f"{one} is for one analyte, and these standards vary in two; leave it out" in said for one in refused
        )
    assert not (on_disk / "new.bundle").exists()


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_an_answer_is_drawn(asked, tmp_path, suffix):
    assert asked[1][0].plot(tmp_path / f"a{suffix}").stat().st_size > 2000
    assert asked[1][0].plot().axes[0].get_xlabel() == "pH"
    with pytest.raises(InputError, match="give such a name"):
        asked[1][0].plot(tmp_path / "a.xyz")


def test_one_analyte_is_no_plane():
    one = geonode.simulate_assay()
    with pytest.raises(InputError, match=r"for two analytes, and these standards have 1; use geonode.fit"):
        fit_plane(one)
