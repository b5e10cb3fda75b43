"""The search for block sizes: only a lack of resources passes a candidate over, and nothing else is swallowed."""

from __future__ import annotations

import json

import pytest
import torch

pytest.importorskip("triton")
from triton.runtime.errors import OutOfResources

from geonode_kernels import _blocks


class _Event:
    """A CUDA event of a card on which a block of 32 takes 2 ms and any other 1 ms."""

    def __init__(self, enable_timing=True):
        pass

    def record(self):
        pass

    def synchronize(self):
        pass

    def elapsed_time(self, other):
        return 2.0 if _blocks.options("adamw")["BLOCK"] == 32 else 1.0


@pytest.fixture
def card(monkeypatch, tmp_path):
    """Enough of a CUDA device to time candidates, and a cache folder of its own."""
    monkeypatch.setenv("GEONODE_CACHE", str(tmp_path))
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "Event", _Event)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "no card")
    yield tmp_path
    _blocks.use_table()


CANDIDATES = [{"BLOCK": 4096}, {"BLOCK": 32}, {"BLOCK": 64}]


def test_a_candidate_without_resources_is_passed_over_and_the_fastest_kept(card):
    def run():
        if _blocks.options("adamw")["BLOCK"] == 4096:
            raise OutOfResources(300_000, 232_448, "shared memory")

    assert _blocks.tune("adamw", CANDIDATES, run)["BLOCK"] == 64
    kept = json.loads(_blocks.cache_file("no card").read_text())
    assert kept["adamw"]["BLOCK"] == 64


@pytest.mark.parametrize("error", [ValueError("wrong shape"), RuntimeError("illegal memory access")])
def test_any_other_error_is_raised_and_leaves_the_table(card, error):
    def run():
        if _blocks.options("adamw")["BLOCK"] == 32:
            raise error

    with pytest.raises(type(error), match=str(error)):
        _blocks.tune("adamw", CANDIDATES, run)
    assert _blocks.options("adamw")["BLOCK"] == _blocks.TABLE["adamw"]["BLOCK"]
    assert not _blocks.cache_file("no card").exists()


def test_where_no_candidate_runs_the_table_stays(card):
    def run():
        raise OutOfResources(1, 0, "registers")

    with pytest.raises(RuntimeError, match="No candidate block size of adamw"):
        _blocks.tune("adamw", CANDIDATES, run)
    assert _blocks.options("adamw")["BLOCK"] == _blocks.TABLE["adamw"]["BLOCK"]
