"""What the container holds, tried where there is no container: a wheel from the copied files alone, in an environment
in which nothing else of geonode can be found."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.deploy.image import DOCKERFILE, ROOT, copy_context, instructions, sent

PACKAGES = {
    "geonode": "geonode",
    "geonode_kernels": "kernels/geonode_kernels",
    "geonode_runtime": "runtime/geonode_runtime",
}

pytestmark = pytest.mark.skipif(not DOCKERFILE.exists(), reason="tests are away from the checkout")


def wheel_of(folder: Path, dockerfile: str | None = None) -> Path:
    """The wheel that `pip install .` would build in the image."""
    copy_context(folder / "src", dockerfile)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run(
        [*command, "--wheel-dir", str(folder), str(folder / "src")], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


def files_of(package: str) -> set[str]:
    """What of a package belongs into a wheel, under the names it has there."""
    root = ROOT / PACKAGES[package]
    found = (file for file in root.rglob("*") if file.is_file() and file.suffix != ".pyc")
    return {f"{package}/{file.relative_to(root).as_posix()}" for file in found}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return wheel_of(tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="module")
def geonode(wheel, tmp_path_factory):
    """`geonode ARGUMENTS` of the wheel, in a fresh environment that borrows the packages geonode depends on.

    They are named in a .pth file: folders named there have no .pth files of their own read, so that an editable
    installation of geonode among them stays unseen.
    """
    place = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place / "venv")], check=True, timeout=120)
    python = place / "venv" / "bin" / "python"
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip())
    borrowed = dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    (site / "borrowed.pth").write_text("\n".join(borrowed) + "\n")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    # what is borrowed may hold geonode too, as an editable installation, which must stay as it is
    done = subprocess.run([*install, "--ignore-installed", str(wheel)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    environment |= {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}

    def run(*arguments: str) -> str:
        command = [str(python.with_name("geonode")), *arguments]
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run.folder, run.python, run.site, run.environment = place, python, site, environment
    return run


@pytest.mark.parametrize("package", PACKAGES)
def test_the_wheel_of_the_image_holds_every_file_of(package, wheel):
    missing = files_of(package) - set(zipfile.ZipFile(wheel).namelist())
    assert not missing


@pytest.mark.parametrize(("folder", "package"), [("kernels", "geonode_kernels"), ("runtime", "geonode_runtime")])
def test_a_folder_that_is_not_copied_is_missed(folder, package, tmp_path):
    """The check itself: a Dockerfile that forgets a folder builds, and what it lacks is seen."""
    text = DOCKERFILE.read_text().replace(f"COPY {folder} {folder}\n", "")
    (tmp_path / "src" / folder).mkdir(parents=True)
    lacking = set(zipfile.ZipFile(wheel_of(tmp_path, text)).namelist())
    assert not files_of(package) & lacking and files_of("geonode") <= lacking


def test_the_packages_of_the_image_come_from_the_wheel_alone(geonode):
    code = "import geonode, geonode_kernels, geonode_runtime, importlib.metadata\n"
    code += "print(geonode.__file__, geonode_kernels.__file__, geonode_runtime.__file__)\n"
    code += "assert importlib.metadata.version('geodesic-node')"
    done = subprocess.run(
        [geonode.python, "-c", code], cwd=geonode.folder, env=geonode.environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert all(path.startswith(str(geonode.site)) for path in done.stdout.split()) and len(done.stdout.split()) == 3


def test_the_commands_of_the_image_run(geonode):
    from geonode.data import simulate_assay

    assay = simulate_assay(wavelengths=[300.0 + 10.0 * k for k in range(41)])
    heads = ",".join(["wavelength", *(f"{c}" for c in assay.concentrations)])
    columns = zip(assay.wavelengths, assay.spectra.T, strict=True)
    rows = [",".join([f"{w:g}", *(f"{v:.6f}" for v in column)]) for w, column in columns]
    (geonode.folder / "standards.csv").write_text("\n".join([heads, *rows]) + "\n")
    truth = assay.truth([25.0]).double().numpy()[0]
    unknown = [f"{w:g},{v:.6f}" for w, v in zip(assay.wavelengths, truth, strict=True)]
    (geonode.folder / "unknown.csv").write_text("\n".join(["wavelength,unknown", *unknown]) + "\n")
    geonode("fit", "standards.csv", "--out", "m.bundle", "--device", "cpu")
    geonode("quantify", "m.bundle", "unknown.csv", "--json", "answer.json")
    (entry,) = json.loads((geonode.folder / "answer.json").read_text())["unknowns"]
    assert entry["estimate"] == pytest.approx(25.0, abs=2.0)


@pytest.mark.parametrize(
    ("name", "reaches"),
    [
        ("geonode/cli.py", True),
        ("runtime/geonode_runtime/py.typed", True),
        ("geonode/__pycache__/cli.cpython-312.pyc", False),
        ("tests/conftest.py", False),
        (".git/HEAD", False),
    ],
)
def test_what_reaches_the_build(name, reaches):
    assert sent(name, (ROOT / ".dockerignore").read_text()) is reaches


def test_one_name_of_the_image_everywhere():
    """The one that the Dockerfile says how to build, the one that the cluster starts, and the release."""
    text = DOCKERFILE.read_text()
    built = re.search(r"docker build .*-t (\S+)", text)[1]
    started = re.search(r"docker run .* (\S+) fit", text)[1]
    documents = list(yaml.safe_load_all((ROOT / "deploy/kubernetes-job.yaml").read_text()))
    job = next(d for d in documents if d["kind"] == "Job")
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)[1]
    images = {c["image"] for c in job["spec"]["template"]["spec"]["containers"]}
    assert {built, started} | images == {f"geonode:{version}"}
    user = re.search(r"useradd --uid (\d+)", text)[1]
    assert next(a for n, a in instructions() if n == "USER") == user
    assert job["spec"]["template"]["spec"]["securityContext"]["runAsUser"] == int(user)


def test_every_volume_of_the_job_is_made_or_said_how_to_make():
    text = (ROOT / "deploy/kubernetes-job.yaml").read_text()
    documents = list(yaml.safe_load_all(text))
    made = {(d["kind"], d["metadata"]["name"]) for d in documents}
    job = next(d for d in documents if d["kind"] == "Job")
    for volume in job["spec"]["template"]["spec"]["volumes"]:
        if "persistentVolumeClaim" in volume:
            assert ("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]) in made
        else:
            assert f"kubectl create configmap {volume['configMap']['name']} " in text
    claim = next(d for d in documents if d["kind"] == "PersistentVolumeClaim")
    # several pods, perhaps on several nodes, write to it at once
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"] and claim["spec"]["resources"]["requests"]["storage"]
