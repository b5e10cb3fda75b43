"""What the model of the cost of several processes foretells."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def scaling():
    spec = importlib.util.spec_from_file_location("scaling", ROOT / "benchmarks" / "pretraining_scaling.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_more_processes_never_shorten_a_step_and_one_pays_nothing(scaling):
    for link, (bandwidth, latency) in scaling.LINKS.items():
        steps = [scaling.foretold(0.04, 4_000_000, count, link) for count in (1, 2, 4, 8, 64, 512)]
        assert steps[0] == 0.04 and steps == sorted(steps)
        # two processes: each sends and receives the gradient once, and waits two hops
        assert steps[1] - 0.04 == pytest.approx(4_000_000 / bandwidth + 2 * latency)


def test_the_page_shows_what_the_record_foretells(scaling):
    import json

    record = json.loads((ROOT / "benchmarks" / "results" / "pretraining_scaling-NVIDIA-H200-1.json").read_text())
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    for row in scaling.table(record).splitlines()[2:]:
        processes, _, step, efficiency, _ = (cell.strip() for cell in row.strip("|").split("|"))
        if processes != "4":
            assert f"| {processes} |" in page and f"| {step} | {efficiency.replace('%', ' %')} |" in page, row
