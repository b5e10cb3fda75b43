"""The lanes of the Makefile: `make check` is a part of `make test`, and CI runs the whole."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from tests.deploy.image import ROOT

pytestmark = [
    pytest.mark.skipif(not (ROOT / "Makefile").exists(), reason="tests are away from the checkout"),
    pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here"),
]


def commands(target: str) -> list[str]:
    """What make would run for a target, with an environment that is there already."""
    options = ["VENV=.venv", "-o", ".venv/.test-installed", "-o", ".venv/.core-installed"]
    done = subprocess.run(["make", "-n", *options, target], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("tool", ["ruff check", "ruff format --check"])
def test_both_lanes_lint_the_same_sources(tool):
    (quick,), (whole,) = ([line for line in commands(target) if tool in line] for target in ("check", "test"))
    assert quick == whole


def test_check_runs_the_laws_and_the_smoke_tests_and_no_type_checker():
    laws, smoke = [line for line in commands("check") if "pytest" in line]
    assert smoke.endswith("-m smoke tests") and '-m "not gpu and not slow"' in laws
    named = re.findall(r"tests/\S+\.py", laws)
    assert len(named) >= 3 and all((ROOT / name).is_file() for name in named)
    assert not any("pyright" in line for line in commands("check"))


def test_test_runs_everything_that_needs_no_card():
    lines = commands("test")
    assert any("pyright" in line for line in lines)
    (tests,) = [line for line in lines if "pytest" in line]
    assert tests.endswith('-m "not gpu"') and "tests/" not in tests


def test_ci_runs_the_whole():
    assert (ROOT / ".ci/run").read_text().splitlines()[-1] == "exec make test"
