"""Methane: profiles against special functions, absorption against HAPI, scans that any number of workers repeat."""

from __future__ import annotations

import hashlib
import multiprocessing
import time

import numpy as np
import pytest
import torch
import typer
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import wofz
from typer.testing import CliRunner

from geonode.commands import simulate as simulate_command
from geonode.data import methane
from geonode.data.methane import Gas, Spectrometer, load_scans, read_hitran, simulate_scans, strong_lines
from geonode.data.methane import scans as scans_module
from geonode.data.methane.absorption import absorption_coefficient, faddeeva_real, partition_ratio, voigt
from geonode.data.methane.lines import write_hitran
from geonode.data.methane.reference import hapi_absorption_coefficient
from geonode.data.methane.spectrometer import Conditions, draw_conditions, record, transmission, voltages
from geonode.errors import InputError, ReaderError

SMALL = Spectrometer(samples=64)


def one(value: float) -> torch.Tensor:
    return torch.tensor([value], dtype=torch.float64)


# --- physics ----------------------------------------------------------------------------------------------------------


@given(x=st.floats(-1e3, 1e3), y=st.floats(1e-4, 1e3))
def test_faddeeva_function(x, y):
    found = float(faddeeva_real(one(x), one(y))[0])
    assert found == pytest.approx(wofz(x + 1j * y).real, rel=1e-7, abs=1e-13)


@given(doppler=st.floats(1e-3, 0.1), width=st.floats(1e-4, 0.1))
def test_voigt_profile_has_unit_area(doppler, width):
    x = torch.tensor(np.sinh(np.linspace(-12, 12, 40001)) * 1e-2)
    area = torch.trapezoid(voigt(x, one(doppler), one(width)), x)
    assert float(area) == pytest.approx(1.0, abs=1e-4)


def test_voigt_limits():
    x = torch.linspace(-0.1, 0.1, 201, dtype=torch.float64)
    doppler = 0.01
    gauss = np.sqrt(np.log(2) / np.pi) / doppler * np.exp(-np.log(2) * (x.numpy() / doppler) ** 2)
    np.testing.assert_allclose(voigt(x, one(doppler), one(1e-7)).numpy(), gauss, atol=1e-3)
    lorentz = 0.05 / np.pi / (x.numpy() ** 2 + 0.05**2)
    np.testing.assert_allclose(voigt(x, one(1e-4), one(0.05)).numpy(), lorentz, rtol=1e-4)


@pytest.mark.parametrize("fraction", [2e-6, 1e-3, 0.01, 0.1])
@pytest.mark.parametrize(("temperature", "pressure"), [(296.0, 1.0), (270.0, 0.5), (320.0, 1.5)])
def test_absorption_agrees_with_hapi(fraction, temperature, pressure):
    """Over 1 m, from the atmosphere's 2 ppm to 10 %: the peak within 1 %, and the whole curve as near."""
    pytest.importorskip("hapi")
    nu = np.linspace(6046.5, 6047.4, 901)
    expected = hapi_absorption_coefficient(nu, fraction, temperature, pressure, strong_lines())
    state = (one(fraction), one(temperature), one(pressure))
    found = absorption_coefficient(torch.tensor(nu), *state, strong_lines())[0].numpy()
    assert found.max() == pytest.approx(expected.max(), rel=0.01)
    np.testing.assert_allclose(found, expected, rtol=0.01, atol=1e-3 * expected.max())


@pytest.mark.parametrize("temperature", [200.0, 250.0, 296.0, 330.0, 400.0])
def test_partition_function_agrees_with_hapi(temperature):
    hapi = pytest.importorskip("hapi")
    expected = hapi.partitionSum(6, 1, temperature) / hapi.partitionSum(6, 1, 296.0)
    assert float(partition_ratio(one(temperature))[0]) == pytest.approx(expected, rel=3e-3)


def test_absorption_is_differentiable_in_the_state_of_the_gas():
    state = [one(v).requires_grad_() for v in (1e-3, 296.0, 1.0)]
    nu = torch.linspace(6046.8, 6047.1, 7, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda *s: 1e4 * absorption_coefficient(nu, *s, strong_lines()), state, rtol=1e-4)


# --- lines ------------------------------------------------------------------------------------------------------------


def test_hitran_records_round_trip(tmp_path):
    path = tmp_path / "ch4.par"
    write_hitran(strong_lines(), path)
    assert all(len(line) == 160 for line in path.read_text().splitlines())
    found = read_hitran(path)
    for name in ("position", "strength", "gamma_air", "gamma_self", "n_air", "lower_energy", "mass"):
        np.testing.assert_allclose(getattr(found, name), getattr(strong_lines(), name), rtol=1e-6)
    assert len(found.between(6046.95, 6047)) == 2 and found.fingerprint() != strong_lines().fingerprint()
    other = path.read_text().replace(" 61", " 11", 1)  # water
    path.write_text(other)
    assert len(read_hitran(path)) == 2


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("short\n", "line 1 has 5 characters and a HITRAN record 160"),
        (" 61 6046.94x000 " + " " * 144 + "\n", "line 1, column 4 has"),
        ("\n", "no line of methane"),
        (" 11 6046.942000 8.580E-22 0.000E+00.06500.079   62.87570.73-0.01209".ljust(160) + "\n", "no line of methane"),
    ],
)
def test_files_that_are_no_lines(tmp_path, content, sentence):
    path = tmp_path / "x.par"
    path.write_text(content)
    with pytest.raises(ReaderError, match=sentence):
        read_hitran(path)
    with pytest.raises(ReaderError, match="cannot be read"):
        read_hitran(tmp_path / "absent.par")


# --- the instrument ---------------------------------------------------------------------------------------------------


def conditions(n=4, seed=0, gas=None, instrument=SMALL) -> tuple[Conditions, torch.Generator]:
    generator = torch.Generator().manual_seed(seed)
    return draw_conditions(n, gas or Gas(), instrument, generator), generator


def test_trace_is_light_times_transmission():
    drawn, _ = conditions()
    volts, through = voltages(drawn, SMALL, strong_lines()), transmission(drawn, SMALL, strong_lines())
    assert volts.shape == through.shape == (4, 64) and (through > 0).all() and (through <= 1).all()
    empty = Conditions(**{**vars(drawn), "fraction": torch.zeros(4, dtype=torch.float64)})
    light = voltages(empty, SMALL, strong_lines())
    torch.testing.assert_close((volts - SMALL.offset) / (light - SMALL.offset), through)


def test_codes_are_the_voltage_in_steps_with_the_noise_asked_for():
    quiet = Spectrometer(samples=64, noise=0, relative_noise=0)
    drawn, generator = conditions()
    codes = record(drawn, quiet, strong_lines(), generator)
    assert (codes * quiet.step - voltages(drawn, quiet, strong_lines())).abs().max() <= quiet.step / 2 * (1 + 1e-9)
    drawn, generator = conditions(n=200)
    loud = Spectrometer(samples=64, noise=0.01, relative_noise=0)
    residual = record(drawn, loud, strong_lines(), generator) * loud.step - voltages(drawn, loud, strong_lines())
    assert float(residual.std()) == pytest.approx(0.01, rel=0.03)


def test_more_methane_absorbs_more():
    deepest = []
    for fraction in (1e-5, 1e-3, 1e-2):
        drawn, _ = conditions(n=1, gas=Gas(fraction, fraction * 1.0001, (296.0, 0.0), (1.0, 0.0)))
        deepest.append(float(transmission(drawn, SMALL, strong_lines()).min()))
    assert deepest == sorted(deepest, reverse=True) and deepest[0] > 0.999 and deepest[-1] < 0.8


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Gas(lowest=0.0).check(), "give 0 < low < high"),
        (lambda: Gas(temperature=(10.0, 1.0)).check(), "temperature"),
        (lambda: Gas(pressure=(1.0, 0.5)).check(), "pressure"),
        (lambda: Spectrometer(samples=3).check(), "3 samples"),
        (lambda: Spectrometer(start=2.0, stop=1.0).check(), "ramp from low to high"),
        (lambda: Spectrometer(bits=20).check(), "20 bits"),
        (lambda: Spectrometer(power=(1.0, 9.0)).check(), "beyond the full scale"),
        (lambda: Spectrometer(noise=-1.0).check(), "must not be negative"),
    ],
)
def test_what_is_no_gas_or_instrument(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


# --- files of scans ---------------------------------------------------------------------------------------------------


def digest(path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(scans_module, "BLOCK", 16)


@pytest.mark.parametrize("workers", [0, -1])
def test_no_workers_are_refused_and_leave_nothing(tmp_path, workers):
    with pytest.raises(InputError, match=f"workers={workers} must be at least 1"):
        simulate_scans(100, tmp_path / "s.h5", workers=workers, instrument=SMALL)
    assert not list(tmp_path.iterdir())


def test_one_worker_or_two_the_same_file(tmp_path):
    one_worker = simulate_scans(1100, tmp_path / "one.h5", seed=3, workers=1, instrument=SMALL)
    two_workers = simulate_scans(1100, tmp_path / "two.h5", seed=3, workers=2, instrument=SMALL)
    assert digest(one_worker) == digest(two_workers)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one.h5", "two.h5"]
    found = load_scans(one_worker)
    assert found.voltages.shape == (1100, 64) and found.voltages.dtype == np.float32
    assert found.fraction.min() >= 2e-6 and found.fraction.max() <= 0.1 and len(np.unique(found.fraction)) == 1100
    part = load_scans(one_worker, 700, 710)
    np.testing.assert_array_equal(part.voltages, found.voltages[700:710])
    assert digest(simulate_scans(1100, tmp_path / "one.h5", seed=4, workers=1, instrument=SMALL)) != digest(two_workers)


def test_an_interrupted_run_goes_on_to_the_same_file(tmp_path, small_blocks, monkeypatch):
    expected = digest(simulate_scans(100, tmp_path / "whole.h5", workers=1, instrument=SMALL))
    computed = []

    def interrupted(job, block, compute=scans_module._compute):
        if len(computed) == 3:
            raise KeyboardInterrupt
        computed.append(block)
        return compute(job, block)

    monkeypatch.setattr(scans_module, "_compute", interrupted)
    target = tmp_path / "resumed.h5"
    with pytest.raises(KeyboardInterrupt):
        simulate_scans(100, target, workers=1, instrument=SMALL)
    assert not target.exists() and len(list((tmp_path / "resumed.h5.blocks").glob("block-*"))) == 3
    (tmp_path / "resumed.h5.blocks" / "block-00000001.npz").write_bytes(b"half a block")
    monkeypatch.undo()
    monkeypatch.setattr(scans_module, "BLOCK", 16)
    with pytest.raises(InputError, match="an interrupted run with other settings; delete the folder"):
        simulate_scans(100, target, seed=1, workers=1, instrument=SMALL)
    assert digest(simulate_scans(100, target, workers=1, instrument=SMALL)) == expected


def _run_for_ever(path):
    simulate_scans(2_000_000, path, workers=1, instrument=Spectrometer(samples=200))


def test_a_killed_run_leaves_whole_blocks_only(tmp_path):
    process = multiprocessing.get_context("spawn").Process(target=_run_for_ever, args=(tmp_path / "k.h5",))
    process.start()
    folder = tmp_path / "k.h5.blocks"
    for _ in range(600):
        time.sleep(0.05)
        if len(list(folder.glob("block-*.npz"))) >= 2:
            break
    process.kill()
    process.join()
    blocks = list(folder.glob("block-*.npz"))
    assert len(blocks) >= 2 and not (tmp_path / "k.h5").exists()
    for block in blocks:
        with np.load(block, allow_pickle=False) as arrays:
            assert arrays["codes"].shape == (500, 200)


def test_files_that_are_no_scans(tmp_path, small_blocks):
    path = simulate_scans(20, tmp_path / "s.h5", workers=1, instrument=SMALL)
    with pytest.raises(InputError, match="scans 5 to 5, but there are 20"):
        load_scans(path, 5, 5)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"nothing of the kind"):
        path.write_bytes(content)
        with pytest.raises(ReaderError, match="no complete file of methane scans"):
            load_scans(path)
    with pytest.raises(ReaderError, match="there is no such file of scans"):
        load_scans(tmp_path / "absent.h5")
    with pytest.raises(InputError, match="0 scans"):
        simulate_scans(0, path)
    with pytest.raises(InputError, match="in a folder that does not exist"):
        simulate_scans(1, tmp_path / "absent" / "s.h5")


def test_command(tmp_path):
    app = typer.Typer()
    simulate_command.register(app)
    out = tmp_path / "scans.h5"
    result = CliRunner().invoke(
        app,
        ["simulate", "methane", "--n", "40", "--samples", "64", "--out", str(out), "--workers", "1", "--device", "cpu"],
    )
    assert result.exit_code == 0, result.output
    assert "40 scans of 64 readings" in result.output and "a million scans would take" in result.output
    assert len(load_scans(out)) == 40 and load_scans(out).settings["lines"].startswith("2ν3 R(3)")


def test_public_names():
    assert all(hasattr(methane, name) for name in methane.__all__)


@pytest.mark.gpu
def test_on_the_gpu(tmp_path):
    path = simulate_scans(100, tmp_path / "g.h5", device="cuda", instrument=SMALL)
    generator = torch.Generator(device="cuda").manual_seed(0)
    drawn = draw_conditions(4, Gas(), SMALL, generator)
    on_cpu = Conditions(**{name: value.cpu() for name, value in vars(drawn).items()})
    torch.testing.assert_close(
        transmission(drawn, SMALL, strong_lines()).cpu(), transmission(on_cpu, SMALL, strong_lines())
    )
    assert len(load_scans(path)) == 100
