"""THIRD_PARTY.md: what geonode stands on and under which licences, as the installed packages say (by pip-licenses).

    python tools/third_party.py .venv/bin/python > THIRD_PARTY.md

Run by `make licences`. pip-licenses reads the environment of the given interpreter; pyproject.toml says which packages
geonode asks for itself.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Asked for by extras that are not installed beside the tests (a GPU, other software of clusters): as their sources say.
ELSEWHERE = {
    "deepspeed": "Apache Software License",
    "diffrax": "Apache Software License",
    "jax": "Apache Software License",
    "torchode": "MIT License",
    "nvidia-ml-py": "BSD License",
    "pre-commit": "MIT License",
    "pytest-cov": "MIT License",
    "build": "MIT License",
    "wandb": "MIT License",
}
# What the metadata of a release leaves out and its sources say.
BY_HAND: dict[str, str] = {}


def canonical(name: str) -> str:
    """A package's name as PEP 503 writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def direct(pyproject: str) -> dict[str, list[str]]:
    """Packages that pyproject.toml asks for, with the parts that do: "core" or names of extras."""
    project = tomllib.loads(pyproject)["project"]
    parts = {"core": project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, list[str]] = {}
    for part, requirements in parts.items():
        for requirement in requirements:
            name = canonical(re.match(r"[\w.-]+", requirement)[0])  # type: ignore[index]
            if name != canonical(project["name"]):
                found.setdefault(name, []).append(part)
    return dict(sorted(found.items()))


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """A Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return [f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines]


def page(installed: list[dict[str, str]], asked: dict[str, list[str]]) -> str:
    """The text of THIRD_PARTY.md from what pip-licenses found and pyproject.toml asks for."""
    by_name = {canonical(package["Name"]): package for package in installed}
    rows = []
    for name, parts in asked.items():
        package = by_name.get(name)
        licence = licence_of(package) if package else ELSEWHERE[name]
        version = package["Version"].partition("+")[0] if package else "not installed here"
        rows.append((name, version, licence, ", ".join(parts)))
    others = [
        (name, package["Version"], licence_of(package))
        for name, package in sorted(by_name.items())
        if name not in asked and name not in ("geodesic-node", "pip", "setuptools", "wheel")
    ]
    lines = ["# Third-party software", ""]
    lines += ["Written by `make licences`; geonode ships none of these, they are installed beside it.", ""]
    lines += ["## Asked for by geonode", "", *table(("package", "version", "licence", "needed by"), rows), ""]
    lines += ["## Brought along by those", "", *table(("package", "version", "licence"), others), ""]
    return "\n".join(lines)


def licence_of(package: dict[str, str]) -> str:
    """One line; a licence's whole text is cut to its first."""
    name = canonical(package["Name"])
    text = BY_HAND.get(name) or package["License"]
    return text.strip().splitlines()[0][:120]


def main(python: str) -> None:
    """Print the page for the environment of ``python``."""
    command = [sys.executable, "-m", "piplicenses", f"--python={python}", "--from=mixed", "--format=json"]
    installed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    print(page(installed, direct((ROOT / "pyproject.toml").read_text(encoding="utf-8"))), end="")


if __name__ == "__main__":
    main(sys.argv[1])
