"""docs/architecture.md tells of packages and names that exist."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import tree  # noqa: E402

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `([^`]+)` \| (\d+) \| (\d+) \| (.+) \|$", PAGE, re.MULTILINE)
NAMES = sorted(set(re.findall(r"`(geonode(?:_runtime|_kernels)?\.[A-Za-z_.]+)`", PAGE)))


def test_the_tree_names_every_package_and_what_it_is() -> None:
    assert [(name, what) for name, _, _, what in ROWS] == [(name, what) for name, _, _, what in tree.tree()]


def test_the_sizes_are_those_of_the_code_within_a_quarter() -> None:
    now = {name: size for name, _, size, _ in tree.tree()}
    for name, _, size, _ in ROWS:
        assert abs(int(size) - now[name]) <= 0.25 * now[name] + 150, f"{name}: run python tools/tree.py"


@pytest.mark.parametrize("name", NAMES)
def test_every_dotted_name_exists(name: str) -> None:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return
    raise AssertionError(name)
