"""`evaluate`: schema, honesty of the choice, the hook for the neural flow, bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest

from geonode.data import SpectralDataset
from geonode.errors import InputError
from geonode.validation import METHODS, evaluate

SIMPLE = [name for name in METHODS if name != "node"]
LEVELS = np.array([0.0, 20.0, 50.0, 100.0, 250.0, 450.0])
WAVE = np.linspace(400.0, 700.0, 31)


def standards(
    response, replicates: int = 2, noise: float = 0.002, levels: np.ndarray = LEVELS, width: int = 31, spoil=None
) -> SpectralDataset:
    """``spoil(spectra, concentrations)`` may change what was measured."""
    c = np.repeat(levels, replicates)
    wave = np.linspace(WAVE[0], WAVE[-1], width)
    generator = np.random.default_rng(0)
    band = np.exp(-(((wave - 520.0) / 60.0) ** 2))
    spectra = 0.1 + response(c)[:, None] * band + generator.normal(0, noise, (len(c), width))
    if spoil is not None:
        spoil(spectra, c)
    return SpectralDataset(spectra, c, wave, concentration_unit="mM", mask=np.isnan(spectra))


def test_schema_and_winner_on_a_line() -> None:
    report = evaluate(standards(lambda c: 0.002 * c), methods=SIMPLE)
    data = json.loads(report.to_json())
    assert data["levels"] == LEVELS.tolist()
    assert list(data["methods"]) == SIMPLE
    for method in data["methods"].values():
        assert [entry["level"] for entry in method["per_level"]] == LEVELS.tolist()
        assert [entry["edge"] for entry in method["per_level"]] == [True, False, False, False, False, True]
        for entry in method["per_level"]:
            assert set(entry) == {"level", "edge", "rmse", "nrmse", "r2", "mae", "sam", "sid", "peak_error"}
    assert data["winner"] in ("line", "gp", "quadratic", "isotherm")
    assert len(data["fold_winners"]) == len(LEVELS)
    assert data["selected"]["per_level"][2]["rmse"] == data["methods"][data["fold_winners"][2]]["per_level"][2]["rmse"]
    assert 0.0 <= data["methods"]["gp"]["coverage"]["responding"] <= 1.0


def test_curved_response_is_not_won_by_the_line() -> None:
    report = evaluate(standards(lambda c: c / (c + 30.0)), methods=SIMPLE)
    assert report.winner in ("gp", "isotherm")
    assert report.results["gp"].rmse[1:-1].max() < 0.3 * report.results["line"].rmse[1:-1].max()


def test_the_held_out_level_takes_no_part_in_its_own_choice() -> None:
    """Spoiling one level changes every score of that level, but not which method its own fold chooses."""
    clean = standards(lambda c: 0.002 * c)

    def spoil(spectra, concentrations):
        spectra[concentrations == 100.0] += 0.5 * np.sin(WAVE)

    spoilt = standards(lambda c: 0.002 * c, spoil=spoil)
    methods = ["linear", "pchip", "quadratic", "line", "gp"]
    one, two = evaluate(clean, methods=methods), evaluate(spoilt, methods=methods)
    held = int(np.flatnonzero(LEVELS == 100.0)[0])
    for name in methods:
        assert one.results[name].inner_score(held) == pytest.approx(two.results[name].inner_score(held), rel=1e-9)
        assert one.results[name].rmse[held] != pytest.approx(two.results[name].rmse[held])
    assert one.fold_winners[held] == two.fold_winners[held]


def test_node_hook_gets_every_fold_and_its_gp() -> None:
    data = standards(lambda c: 0.002 * c, width=200)
    calls = []

    def trainer(gps, targets, wavelengths, config, seed=0, progress=None, device="cpu"):
        calls.append((len(gps), len(targets), len(wavelengths), config, seed))
        return [gp.predict_mean(target) for gp, target in zip(gps, targets, strict=True)]

    report = evaluate(data, config="anything", methods=["linear", "gp", "node"], node_trainer=trainer, seed=7)
    assert calls == [(6, 6, 200, "anything", 7), (15, 15, 50, "anything", 7)]
    np.testing.assert_array_equal(report.results["node"].predictions, report.results["gp"].predictions)
    assert report.results["node"].inner_score() == pytest.approx(report.results["gp"].inner_score(), rel=1e-12)
    assert any("one wavelength in 4" in note for note in report.notes)


def test_masked_wavelengths_are_left_out_and_said() -> None:
    def spoil(spectra, concentrations):
        spectra[concentrations == 50.0, 3] = np.nan

    data = standards(lambda c: 0.002 * c, spoil=spoil)
    report = evaluate(data, methods=["linear", "gp"])
    assert len(report.wavelengths) == len(WAVE) - 1 and "1 of 31 wavelengths" in report.notes[0]


def test_a_level_of_which_nothing_is_left_is_refused() -> None:
    def spoil(spectra, concentrations):
        spectra[concentrations == 0.0] = np.nan

    with pytest.raises(InputError, match="masked"):
        evaluate(standards(lambda c: 0.002 * c, spoil=spoil), methods=["linear"])


def test_three_levels_have_no_winner() -> None:
    report = evaluate(standards(lambda c: 0.002 * c, levels=LEVELS[:3]), methods=["linear", "line", "quadratic", "gp"])
    data = report.to_dict()
    assert data["winner"] is None and data["selected"] is None and "Three levels" in data["notes"][0]
    assert all(entry["rmse"] is None for entry in data["methods"]["quadratic"]["per_level"])
    assert any(note.startswith("quadratic: not applicable") for note in data["notes"])


def test_table_and_plot(tmp_path) -> None:
    from rich.console import Console

    report = evaluate(standards(lambda c: 0.002 * c), methods=["linear", "line", "isotherm"])
    console = Console(width=160, record=True, file=open(tmp_path / "null", "w"))  # noqa: SIM115
    console.print(report.table())
    assert "← winner" in console.export_text()
    path = report.plot(tmp_path / "figure.png")
    assert path.read_bytes().startswith(b"\x89PNG") and [p.name for p in tmp_path.glob(".*")] == []


def test_bad_input() -> None:
    data = standards(lambda c: 0.002 * c)
    with pytest.raises(InputError, match="no method called 'pls'"):
        evaluate(data, methods=["pls"])
    with pytest.raises(InputError, match="each once"):
        evaluate(data, methods=["gp", "gp"])
    with pytest.raises(InputError, match="at least three"):
        evaluate(standards(lambda c: c, levels=LEVELS[:2]))
    two = SpectralDataset(data.spectra, np.stack([data.concentrations, data.concentrations**2], axis=1), WAVE)
    with pytest.raises(InputError, match="one analyte"):
        evaluate(two)


def test_real_series_reproduce_the_recorded_accuracy(shared_data) -> None:
    """On one saturating series the GP must stay clearly ahead of every simple interpolation."""
    from geonode.data import load_standards

    report = evaluate(load_standards(shared_data / "series" / "h148g_cl_ph74.csv"), methods=["linear", "pchip", "gp"])
    assert report.winner == "gp"
    rmse = {name: result.rmse for name, result in report.results.items()}
    assert np.median(rmse["gp"][1:-1]) < 0.8 * np.median(rmse["pchip"][1:-1])
    assert rmse["gp"][-1] < 0.5 * rmse["linear"][-1]
