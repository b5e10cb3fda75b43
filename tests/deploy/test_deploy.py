"""Templates that deploy: parsed, dry-run against stand-ins for the cluster's programs, and held to what they call."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.deploy.image import ROOT, instructions
from tests.forks import python

DEPLOY = ROOT / "deploy"
pytestmark = pytest.mark.skipif(not DEPLOY.is_dir(), reason="tests are away from the checkout")


def options_of(command: str) -> set[str]:
    """Options that a geonode command takes."""
    from typer.main import get_command

    from geonode.cli import app

    return {o for p in get_command(app).commands[command].params for o in p.opts}  # type: ignore[attr-defined]


def test_dockerfile_pins_copies_what_exists_and_does_not_run_as_root():
    lines = instructions()
    names = [name for name, _ in lines]
    assert names[0] == "FROM" and re.fullmatch(r"\S+:\d+\.\d+\.\d+-\S+", lines[0][1])  # a release, not latest
    assert set(names) <= {"FROM", "ENV", "RUN", "WORKDIR", "COPY", "USER", "ENTRYPOINT", "CMD"}
    copied = set()
    for name, arguments in lines:
        if name == "COPY":
            *sources, _ = arguments.split()
            copied |= set(sources)
            assert all((ROOT / source).exists() for source in sources), arguments
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert copied == kept  # what is copied reaches the build, and nothing else does
    for name, arguments in lines:
        if name == "RUN":
            assert subprocess.run(["bash", "-n", "-c", arguments], capture_output=True).returncode == 0
            if "apt-get install" in arguments:
                assert "--no-install-recommends" in arguments and "rm -rf /var/lib/apt/lists" in arguments
    install = next(arguments for name, arguments in lines if "pip install" in arguments)
    extras = re.search(r"\.\[([\w,-]+)\]", install)[1].split(",")
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras) <= set(known) and "PIP_CONSTRAINT=constraints.txt" in install
    user = max(i for i, name in enumerate(names) if name == "USER")
    assert "root" not in lines[user][1] and user < names.index("ENTRYPOINT")


@pytest.mark.skipif(not shutil.which("docker"), reason="Docker is not installed")
def test_docker_itself_accepts_the_dockerfile():
    done = subprocess.run(
        ["docker", "build", "--check", "-f", "deploy/Dockerfile", "."],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode and re.search(r"daemon|buildx|resolve|network|unknown flag|dial", done.stderr):
        pytest.skip(f"Docker cannot check here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["slurm-array.sh", "slurm-ddp.sh", "slurm-pretrain.sh"])
def test_slurm_scripts_parse_and_refuse_missing_arguments(name):
    path = DEPLOY / name
    assert subprocess.run(["bash", "-n", str(path)], capture_output=True).returncode == 0
    lines = path.read_text().splitlines()
    assert lines[0] == "#!/usr/bin/env bash" and "set -euo pipefail" in lines
    directives = [i for i, line in enumerate(lines) if line.startswith("#SBATCH")]
    first_command = next(i for i, line in enumerate(lines) if line and not line.startswith("#"))
    assert directives and max(directives) < first_command  # SLURM stops reading at the first command
    done = subprocess.run(["bash", str(path)], capture_output=True, text=True)
    assert done.returncode == 2 and "usage" in done.stderr


def _dry_run(path: Path, arguments: list[str], folder: Path, **environment: str) -> list[str]:
    """The geonode command line a script ends in, with stand-ins for geonode and srun."""
    (folder / "geonode").write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$RECORD"\n')
    (folder / "srun").write_text('#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nexec "$@"\n')
    for name in ("geonode", "srun"):
        (folder / name).chmod(0o755)
    record = folder / "record"
    everything = {"PATH": f"{folder}:{os.environ['PATH']}", "RECORD": str(record), **environment}
    done = subprocess.run(["bash", str(path), *arguments], env=everything, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return record.read_text().splitlines()


def test_the_array_gives_each_task_its_shard(tmp_path):
    called = [
        _dry_run(
            DEPLOY / "slurm-array.sh",
            ["my sweep.yaml", "out"],
            tmp_path,
            SLURM_ARRAY_TASK_ID=str(task),
            SLURM_ARRAY_TASK_MIN="1",
            SLURM_ARRAY_TASK_COUNT="3",
        )
        for task in (1, 2, 3)
    ]
    assert [line[line.index("--shard") + 1] for line in called] == ["0/3", "1/3", "2/3"]
    assert called[0][:2] == ["sweep", "my sweep.yaml"]
    assert {word for word in called[0] if word.startswith("--")} <= options_of("sweep")


def test_ddp_under_slurm_calls_fit_with_options_it_has(tmp_path):
    called = _dry_run(DEPLOY / "slurm-ddp.sh", ["a.csv", "b.bundle", "run"], tmp_path)
    assert called[:2] == ["fit", "a.csv"] and "--resume" in called
    assert {word for word in called if word.startswith("--")} <= options_of("fit")


def test_pretraining_under_slurm_begins_and_goes_on_when_requeued(tmp_path):
    script, folder = DEPLOY / "slurm-pretrain.sh", tmp_path / "my weights"
    begun = _dry_run(script, [str(folder), "100"], tmp_path)
    assert begun == ["pretrain", "--out", str(folder), "--steps", "100"]
    folder.mkdir()
    (folder / "last.ckpt").touch()
    assert _dry_run(script, [str(folder), "100"], tmp_path) == [*begun, "--resume", str(folder / "last.ckpt")]
    assert {word for word in begun if word.startswith("--")} <= options_of("pretrain")


def test_kubernetes_job_is_whole_and_calls_sweep_with_options_it_has():
    documents = yaml.safe_load_all((DEPLOY / "kubernetes-job.yaml").read_text())
    (job,) = (document for document in documents if document["kind"] == "Job")
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    spec = job["spec"]
    assert spec["completionMode"] == "Indexed"
    pod = spec["template"]["spec"]
    assert pod["restartPolicy"] in ("Never", "OnFailure")  # a Job takes no other
    (container,) = pod["containers"]
    words = shlex.split(container["args"][0])
    assert words[:3] == ["exec", "geonode", "sweep"]
    assert {word for word in words if word.startswith("--")} <= options_of("sweep")
    assert words[words.index("--shard") + 1] == f"$JOB_COMPLETION_INDEX/{spec['completions']}"
    assert {m["name"] for m in container["volumeMounts"]} == {v["name"] for v in pod["volumes"]}
    assert not container["image"].endswith("latest") and ":" in container["image"]


@pytest.mark.skipif(importlib.util.find_spec("accelerate") is None, reason="Accelerate is not installed")
def test_the_accelerate_example_trains_as_lightning_does():
    from geonode.config import GeodesicConfig
    from geonode.data import simulate_assay
    from geonode.training import SpectralDataModule, train_module

    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    done = python(ROOT / "examples/accelerate/train.py", "--epochs", "8", env=environment)
    assert done.returncode == 0, done.stderr
    first, last = map(float, re.search(r"loss (\S+) at first, (\S+) after 8 epochs", done.stdout).groups())
    config = GeodesicConfig(flow="path_independent", epochs=8)
    data = SpectralDataModule(simulate_assay(wavelengths=[300.0 + 4.0 * k for k in range(101)]), config)
    history = train_module(data, config, "cpu").history
    # Accelerate's example sums over the two members, the history is their mean
    assert first == pytest.approx(2 * history[0]["total"], rel=0.01)
    assert last == pytest.approx(2 * history[-1]["total"], rel=0.01)
