"""The commit that a record names is that of the code that was measured, or "unknown"; never another repository's."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from geonode.bench import host

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")


def git(folder: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", str(folder), *who, *arguments], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout.strip()


def sources(root: Path) -> Path:
    """geonode's sources in ``root``, as far as the commit is concerned."""
    for name in ("geonode/bench/host.py", "kernels/a.py", "runtime/b.py", "pyproject.toml"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    shutil.copyfile(host.__file__, root / "geonode/bench/host.py")
    return root


def committed(folder: Path) -> str:
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return git(folder, "rev-parse", "HEAD")


def commit_of(root: Path) -> str:
    spec = importlib.util.spec_from_file_location("host_of_another_place", root / "geonode/bench/host.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.commit()


@pytest.fixture(autouse=True)
def untold(monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # it would be a change of the checkout
    for name in list(os.environ):
        if name == "GEONODE_COMMIT" or name.startswith("GIT_"):
            monkeypatch.delenv(name)


def installed_in_a_project(place: Path) -> Path:
    """In an environment inside somebody's repository, which ignores it."""
    (place / ".gitignore").write_text(".venv\n")
    root = sources(place / ".venv/lib/python3.12/site-packages")
    committed(place)
    return root


def installed_beside_a_project(place: Path) -> Path:
    """Nowhere near a repository, but started from one."""
    root = sources(place / "site-packages")
    (place / "project").mkdir()
    (place / "project/x").write_text("")
    committed(place / "project")
    os.chdir(place / "project")
    return root


def kept_by_a_project(place: Path) -> Path:
    """A copy that somebody's repository tracks as a part of itself."""
    root = sources(place / "vendored/geonode-0.1")
    committed(place)
    return root


def at_the_top_of_an_environment_that_is_a_repository(place: Path) -> Path:
    """The repository's top is where the package lies, but the package is none of its files."""
    (place / "notes").write_text("")
    committed(place)
    return sources(place)


def without_a_commit(place: Path) -> Path:
    root = sources(place)
    git(place, "init", "-q")
    git(place, "add", "-A")
    return root


@pytest.mark.parametrize(
    "place",
    [
        installed_in_a_project,
        installed_beside_a_project,
        kept_by_a_project,
        at_the_top_of_an_environment_that_is_a_repository,
        without_a_commit,
    ],
)
def test_a_commit_that_is_not_geonodes_is_not_written(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert commit_of(place(tmp_path)) == "unknown"


def test_the_checkouts_own_commit_whatever_the_caller_says_of_repositories(tmp_path, monkeypatch):
    own = committed(sources(tmp_path / "own"))
    (tmp_path / "other").mkdir()
    (tmp_path / "other/x").write_text("")
    committed(tmp_path / "other")
    monkeypatch.chdir(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    assert commit_of(tmp_path / "own") == own


@pytest.mark.parametrize(
    ("name", "differs"),
    [
        ("kernels/a.py", True),
        ("runtime/b.py", True),
        ("pyproject.toml", True),
        ("geonode/new.py", True),  # never added
        ("demo/table.txt", False),  # not a source
    ],
)
def test_sources_that_differ_from_the_commit_are_said(name, differs, tmp_path):
    own = committed(sources(tmp_path))
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("changed")
    assert commit_of(tmp_path) == own + ("+changes" if differs else "")


def test_without_git_it_is_unknown_and_what_is_told_counts(tmp_path, monkeypatch):
    own = committed(sources(tmp_path))
    monkeypatch.setenv("GEONODE_COMMIT", "told")
    assert commit_of(tmp_path) == "told"
    monkeypatch.delenv("GEONODE_COMMIT")
    assert commit_of(tmp_path) == own
    monkeypatch.setenv("PATH", "")
    assert commit_of(tmp_path) == "unknown"
