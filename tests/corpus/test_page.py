"""The page of assays, and the page of the documentation that lists the shares."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from geonode.cli import app
from geonode.corpus.kinds import CHEMISTRY, DESIGNS, DETECTION, ERRORS, SPECTRA

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "corpus.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("arguments", [[], ["--families", "aggregation, acid_base"], ["--seed", "4"]])
def test_a_page_is_drawn(tmp_path, arguments):
    out = tmp_path / "page.png"
    done = CliRunner().invoke(app, ["corpus", "--show", "3", "--wavelengths", "30", "--out", str(out), *arguments])
    assert done.exit_code == 0, done.output
    assert out.read_bytes().startswith(b"\x89PNG") and "3 simulated assays" in done.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--families", "alchemy"], "alchemy"), (["--out", "page.txt"], "page.txt"), (["--families", ""], "families")],
)
def test_what_cannot_be_drawn_is_one_sentence(arguments, words):
    done = CliRunner().invoke(app, ["corpus", "--show", "1", *arguments])
    assert done.exit_code == 2 and words in done.output and "Traceback" not in done.output


def told(name: str) -> float:
    """The share that the page gives: a cell after the name, or a number after it in a sentence."""
    found = re.search(rf"`{name}`[^|`]*\| ([\d.]+) ?%? ?[a-z ]*\||`{name}`[^`]*? (\d+)[,\s]", TEXT)
    assert found, f"docs/corpus.md does not tell the share of {name}"
    return float(found[1] or found[2])


@pytest.mark.parametrize("registry", [CHEMISTRY, SPECTRA, DESIGNS], ids=["chemistry", "spectra", "designs"])
def test_the_documentation_tells_the_shares(registry):
    total = sum(kind.share for kind in registry.values())
    for name, kind in registry.items():
        if kind.share:
            assert abs(told(name) - 100 * kind.share / total) < 0.06, name


@pytest.mark.parametrize("emission", [False, True])
def test_the_documentation_tells_the_shares_of_detectors(emission):
    kinds = {name: kind for name, kind in DETECTION.items() if kind.emission == emission}
    total = sum(kind.share for kind in kinds.values())
    for name, kind in kinds.items():
        assert abs(told(name) - 100 * kind.share / total) < 0.06, name


def test_the_documentation_tells_how_common_errors_are():
    for name, kind in ERRORS.items():
        told_share = 100.0 if f"| `{name}` | all |" in TEXT else told(name)
        assert told_share == pytest.approx(100 * kind.share), name
