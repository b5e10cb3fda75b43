"""`profile=` of a training: a trace that opens, small, of the epochs it says, whatever is trained."""

from __future__ import annotations

import json

import pytest

import geonode
from geonode.bench import step_trace


@pytest.mark.parametrize(
    ("flow", "epochs", "recorded"), [("path_independent", 1, 1), ("velocity", 3, 2), ("free", 5, 3)]
)
def test_the_trace_opens_and_holds_the_epochs_that_it_says(flow, epochs, recorded, assay, small, tmp_path):
    config = small.replace(flow=flow, epochs=epochs, members=1)
    geonode.fit(assay, config, device="cpu", profile=tmp_path / "p")
    trace = tmp_path / "p/profile.json"
    whole = json.loads(trace.read_text())
    assert trace.stat().st_size < 20e6
    timed = [event for event in whole["traceEvents"] if event.get("ph") == "X"]
    assert any("Backward" in event["name"] for event in timed) and all(event["dur"] >= 0 for event in timed)
    assert len([event for event in timed if event["name"].startswith("ProfilerStep")]) == recorded
    assert len(step_trace.read(trace)) == len(whole["traceEvents"])
    assert "aten::" in (tmp_path / "p/profile.txt").read_text()
    assert {path.name for path in (tmp_path / "p").iterdir()} == {"profile.json", "profile.txt"}
