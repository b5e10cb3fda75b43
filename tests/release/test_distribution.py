"""What is shipped, and that it says what it stands on: typed, complete, every direct dependency with its licence."""

from __future__ import annotations

import configparser
import re
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
in_checkout = pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="tests are away from the checkout")


@pytest.mark.smoke
@pytest.mark.parametrize("package", ["geonode", "geonode_kernels", "geonode_runtime"])
def test_packages_say_that_they_are_typed(package):
    assert files(package).joinpath("py.typed").is_file()


@pytest.mark.smoke
def test_what_the_page_is_made_of_is_shipped():
    assert "slider" in files("geonode.report").joinpath("slider.js").read_text(encoding="utf-8")
    assert "figure" in files("geonode.report").joinpath("page.css").read_text(encoding="utf-8")


@pytest.fixture
def tools(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    yield
    for name in ("third_party", "pytest_settings"):
        sys.modules.pop(name, None)


@in_checkout
def test_every_direct_dependency_is_listed_with_its_licence(tools):
    import third_party

    asked = third_party.direct((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert asked["torch"] == ["core"] and "onnxruntime" in asked and "geodesic-node" not in asked
    text = (ROOT / "THIRD_PARTY.md").read_text(encoding="utf-8")
    own = text.split("## Brought along")[0]
    listed = {
        m[1]: (m[2].strip(), m[3].strip())
        for m in re.finditer(r"^\| ([\w.-]+) \|[^|]*\|([^|]*)\|([^|]*)\|$", own, re.M)
    }
    listed.pop("package")
    listed.pop("---", None)
    missing = sorted(set(asked) - set(listed))
    assert not missing, f"THIRD_PARTY.md lacks {missing}: run make licences"
    for name, parts in asked.items():
        licence, needed_by = listed[name]
        assert licence and licence.upper() not in ("UNKNOWN", "-"), (
            f"{name} has no licence: add it in tools/third_party.py"
        )
        assert needed_by == ", ".join(parts), f"{name}: run make licences"
    assert "UNKNOWN" not in text


@in_checkout
def test_licences_of_packages_by_hand(tools):
    import third_party

    installed = [
        {"Name": "Some_Package", "Version": "1.0+cpu", "License": "MIT\nwhole text"},
        {"Name": "other", "Version": "2", "License": "BSD | MIT"},
    ]
    text = third_party.page(installed, {"some-package": ["core", "test"], "jax": ["bench"]})
    assert "| some-package | 1.0 | MIT | core, test |" in text
    assert "| jax | not installed here | Apache Software License | bench |" in text
    assert "| other | 2 | BSD / MIT |" in text


@in_checkout
def test_every_dependency_has_a_lower_bound():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    every = [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]
    unbounded = [r for r in every if ">=" not in r and not r.startswith(project["name"])]
    assert not unbounded, f"make test-oldest cannot know the oldest of {unbounded}"


@in_checkout
def test_settings_of_copied_tests(tools):
    import pytest_settings

    text = pytest_settings.settings((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    parsed = configparser.ConfigParser()
    parsed.read_string(text)
    assert parsed["pytest"]["pythonpath"] == "." and "smoke:" in parsed["pytest"]["markers"]
    assert "--strict-markers" in parsed["pytest"]["addopts"]
