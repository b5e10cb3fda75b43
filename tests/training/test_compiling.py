"""Losses through torch.compile's own backend, inductor, on a CPU: the same training, or one sentence why not."""

from __future__ import annotations

import shutil

import pytest
import torch
from typer.testing import CliRunner

from geonode.calibration import GeodesicGP
from geonode.cli import app
from geonode.training import build_problem, train
from geonode.training.compiling import compiler_failures, cpp_compiler
from geonode.training.lightning.datamodule import SpectralDataModule
from geonode.training.lightning.trainer import train_module

# torch's own, while it traces: of an old module of its, and of a cache that it does not use
pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{text}")
    for text in (".*torch.jit.script_method.*", "Dynamo detected a call to a `functools.lru_cache`")
]

COMPILER = shutil.which(cpp_compiler())


@pytest.fixture
def afresh(tmp_path, monkeypatch):
    """Nothing compiled before, in this process or in a cache on disk; one process that compiles, and scalars: to
    find out what vectors this processor knows takes as long as all the rest, so it is said to know none."""
    from torch._inductor import config, cpu_vec_isa

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setattr(cpu_vec_isa, "valid_vec_isa_list", list)
    torch.compiler.reset()
    with config.patch({"compile_threads": 1, "cpp.simdlen": 1}):
        yield tmp_path
    torch.compiler.reset()


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason=f"no C++ compiler ({cpp_compiler()}) for torch.compile on a CPU")
def test_compiled_by_inductor_the_training_is_the_same(afresh, assay, small, one_thread, away):
    gp = GeodesicGP().fit_levels(assay.levels, assay.level_means())
    config = small.replace(epochs=6)
    problem = build_problem([gp] * config.members, assay.wavelengths, config).to("cpu", torch.float64)
    start = problem.build_model(config, 0).state_dict()
    plain, compiled = (dict(train(problem, config, 0, compiled=c).named_parameters()) for c in (False, True))
    assert list((afresh / "inductor").rglob("*.so")), "inductor built nothing"
    for name, value in plain.items():
        torch.testing.assert_close(compiled[name], value, rtol=0, atol=1e-10)
    assert max(float((value - start[name]).detach().abs().max()) for name, value in plain.items()) > 1e-3

    data = SpectralDataModule(assay, config)  # and under Lightning, losses besides; served from inductor's cache
    one, other = (train_module(data, config, "cpu", 0, compiled=c) for c in (False, True))
    assert len(one.history) == 6
    for a, b in zip(one.history, other.history, strict=True):
        assert a == pytest.approx(b, rel=1e-10)
    for name, value in one.ode.named_parameters():
        torch.testing.assert_close(other.ode.get_parameter(name), value, rtol=0, atol=1e-10)


@pytest.fixture
def fit_compiled(afresh, assay, monkeypatch):
    """`geonode fit --compile` with the compiler of the given path: exit code and what was said, as one line."""
    from torch._inductor import config

    path = afresh / "standards.csv"
    rows = [",".join(["nm", *(f"{level:g}" for level in assay.levels)])]
    rows += [f"{w:g}," + ",".join(map(str, a)) for w, a in zip(assay.wavelengths, assay.level_means().T, strict=True)]
    path.write_text("\n".join(rows) + "\n")

    def run(compiler):
        monkeypatch.setenv("CXX", str(compiler))
        with config.patch({"cpp.cxx": (None, str(compiler))}):  # read from CXX when torch was imported
            arguments = [
                "fit",
                str(path),
                "--out",
                str(afresh / "m"),
                "--epochs",
                "2",
                "--device",
                "cpu",
                "--compile",
                "--flow",
                "path_independent",
            ]
            result = CliRunner().invoke(app, arguments)
        assert isinstance(result.exception, SystemExit) and not (afresh / "m").exists()
        return result.exit_code, " ".join(result.output.split())

    return run


def test_without_a_compiler_the_command_says_so_in_a_sentence(fit_compiled, tmp_path):
    compiler = tmp_path / "no-such-c++"
    code, said = fit_compiled(compiler)
    assert code == 2 and "Traceback" not in said
    assert said.endswith(
        f"geonode: torch.compile needs a C++ compiler on a CPU, and '{compiler}' does not run here; install one (g++ "
        "or clang++), name it in CXX, or train without --compile."
    )


def test_a_compiler_that_fails_is_named_with_its_error(fit_compiled, tmp_path):
    compiler = tmp_path / "c++"
    answers = 'if [ "$1" = --version ]; then echo "g++ 12.2.0"; exit 0; fi'
    compiler.write_text(f'#!/bin/sh\n{answers}\necho "x.cpp:1:1: fatal error: no Python.h"\nexit 1\n')
    compiler.chmod(0o755)
    code, said = fit_compiled(compiler)
    assert code == 2 and "Traceback" not in said
    assert f"'{compiler}' failed (x.cpp:1:1: fatal error: no Python.h); install one" in said


def test_other_errors_of_a_compiled_training_stay_what_they_are():
    with pytest.raises(ZeroDivisionError), compiler_failures():
        raise ZeroDivisionError
