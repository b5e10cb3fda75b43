"""pytest.ini for tests that were copied away from the checkout: the markers and options of pyproject.toml, no paths to
sources, so that what is tested is what is installed."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def settings(pyproject: str) -> str:
    """The text of pytest.ini."""
    options = tomllib.loads(pyproject)["tool"]["pytest"]["ini_options"]
    lines = [
        "[pytest]",
        "pythonpath = .",
        f"addopts = {' '.join(options['addopts'])}",
        f"timeout = {options['timeout']}",
    ]
    lines += ["markers =", *(f"    {marker}" for marker in options["markers"])]
    return "\n".join(lines)


if __name__ == "__main__":
    print(settings(Path(sys.argv[1]).read_text(encoding="utf-8")))
