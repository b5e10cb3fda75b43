"""What a recorded run foretells for an A100: laws of the arithmetic, the command, and what is refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from geonode.bench import on_paper
from geonode.bench.__main__ import main

RECORDS = sorted((Path(__file__).parents[2] / "benchmarks" / "results").glob("bench-NVIDIA-*.json"))


def record(share=0.5, binding="fp16", ms=10.0, factor=2.0):
    """One row of a card that is ``factor`` times an A100 in all."""
    floor = {"ms": share * ms, "binding": binding, "share": share, "by_ceiling_ms": {binding: share * ms}}
    row = {"case": "x", "label": "1×1", "title": "work", "status": "green", "ms": ms, "floor": floor}
    ceilings = {name: factor * limit for name, limit in on_paper.LIMITS.items()}
    return {"ceilings": ceilings, "rows": [row], "device": {"card": "a card"}}


@pytest.mark.parametrize("share", [0.02, 0.3, 1.0])
@pytest.mark.parametrize("factor", [1.0, 2.5])
def test_a_card_that_is_an_a100_several_times_takes_as_many_times_less(share, factor):
    (row,) = on_paper.foretold(record(share=share, factor=factor))
    assert row["a100_ms"] == pytest.approx(10.0 * factor)


@pytest.mark.parametrize("binding", ["copy", "fp16", "special"])
def test_only_the_binding_ceilings_share_follows_that_ceiling(binding):
    one = record(share=0.25, binding=binding)
    one["ceilings"][binding] *= 3.0
    (row,) = on_paper.foretold(one)
    others = 6.0 if binding == "special" else 2.0
    assert row["a100_ms"] == pytest.approx(10.0 * (0.25 * 6.0 + 0.75 * others))


def test_what_the_host_paces_is_named_and_not_foretold():
    one = record()
    one["rows"] += [dict(one["rows"][0], case=name) for name in ("slow", "uncounted", "red")]
    one["rows"][1] = {**one["rows"][1], "floor": {**one["rows"][1]["floor"], "share": 0.001}}
    one["rows"][2] = {**one["rows"][2], "floor": None}
    one["rows"][3] = {**one["rows"][3], "status": "red"}
    assert [r["case"] for r in on_paper.foretold(one)] == ["x"]
    assert on_paper.left_out(one) == ["slow 1×1", "uncounted 1×1"]
    assert "slow 1×1, uncounted 1×1" in on_paper.lines(one)[-1]


@pytest.mark.parametrize("path", RECORDS, ids=lambda p: p.stem)
def test_the_command_shows_an_arithmetic_that_holds(path, capsys):
    assert main(["--on-a100", str(path)]) == 0
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if " · (" in line]
    assert len(rows) >= 5
    for _, measured, _, arithmetic, foretold in rows:
        value = eval(arithmetic.replace("·", "*"))  # digits and signs of our own
        assert value == pytest.approx(float(foretold.split()[0]), rel=0.02)
        assert value > float(measured.split()[0])  # no recorded card is slower than an A100


def test_a_run_on_a_cpu_is_refused_by_name(tmp_path, capsys):
    one = copy.deepcopy(json.loads(RECORDS[0].read_text(encoding="utf-8")))
    one["setting"]["device"] = "cpu"
    path = tmp_path / "cpu.json"
    path.write_text(json.dumps(one), encoding="utf-8")
    assert main(["--on-a100", str(path)]) == 2
    assert main(["--on-a100", str(tmp_path / "none.json")]) == 2
    said = capsys.readouterr().err
    assert "was recorded on a CPU; name a run on a GPU" in said and "--on-a100" in said and "none.json" in said
