"""An editable installation is found from every folder: also from one that holds folders called like the packages."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"geonode": ROOT, "geonode_kernels": ROOT / "kernels", "geonode_runtime": ROOT / "runtime"}

pytestmark = pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="tests are away from the checkout")


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The interpreter of a fresh environment with geonode installed as `pip install --editable` does it, without a
    network: the backend makes the editable wheel, pip puts it there."""
    place = tmp_path_factory.mktemp("editable")
    code = f"from hatchling.build import build_editable; print(build_editable({str(place)!r}))"
    built = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert built.returncode == 0, built.stderr
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place / "venv")], check=True, timeout=120)
    found = place / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(found), "install", "--quiet", "--no-deps", "--no-index"]
    wheel = str(place / built.stdout.split()[-1])
    done = subprocess.run([*pip, wheel], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return found


def origin(python: Path, folder: Path, package: str) -> str:
    """The file that ``package`` comes from where Python is started in ``folder``."""
    code = f"import importlib.util as u; print(u.find_spec({package!r}).origin)"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run([python, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("package", PACKAGES)
def test_a_folder_of_the_same_name_is_not_taken_for_the_package(package, python, tmp_path):
    (tmp_path / package / "docs").mkdir(parents=True)
    assert origin(python, tmp_path, package) == str(PACKAGES[package] / package / "__init__.py")


def test_the_folder_that_holds_a_clone_of_that_name(python, tmp_path):
    (tmp_path / "geonode").symlink_to(ROOT, target_is_directory=True)
    assert origin(python, tmp_path, "geonode") == str(ROOT / "geonode" / "__init__.py")


@pytest.mark.parametrize("folder", [".", "kernels", "runtime", "tests", "geonode"])
def test_the_folders_of_the_clone_itself(folder, python):
    assert origin(python, ROOT / folder, "geonode") == str(ROOT / "geonode" / "__init__.py")


@pytest.mark.parametrize("project", [".", "runtime"])
def test_the_backend_is_pinned_like_every_other_package(project):
    asked = tomllib.loads((ROOT / project / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    (name,) = (requirement.partition(">=")[0] for requirement in asked)
    assert any(line.startswith(f"{name}==") for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines())


@pytest.mark.parametrize("file", ["Makefile", "deploy/Dockerfile"])
def test_installations_of_the_project_pin_the_backend(file):
    """pip passes its option --constraint to no build: the variables do."""
    lines = (ROOT / file).read_text("utf-8").splitlines()
    ours = [line for line in lines if "pip install" in line and ("--editable" in line or '".[' in line)]
    assert ours and all("$(PINNED) " in line or "PIP_BUILD_CONSTRAINT=constraints.txt " in line for line in ours)
