"""Pre-training: a short run lowers the loss on fresh assays, and goes on where it stopped."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from typer.testing import CliRunner

from geonode.cli import app
from geonode.errors import InputError
from geonode.prior.network import NetworkSize
from geonode.prior.settings import PretrainSettings, cpu_settings
from geonode.prior.stored import load_network
from geonode.prior.training import PretrainModule, pretrain


def tiny(steps: int, **changes) -> PretrainSettings:
    small = dataclasses.replace(cpu_settings(), size=NetworkSize(width=16, blocks=1, heads=2), tokens=6 * 10 * 16)
    return small.with_changes(
        **{"steps": steps, "wavelengths": 16, "anchors": 12, "validate_every": 10_000, "levels": {4: 1.0}, **changes}
    )


def test_a_short_training_lowers_the_loss_on_fresh_assays_of_known_and_of_left_out_families(tmp_path):
    settings = dataclasses.replace(cpu_settings(), lr=3e-3).with_changes(
        steps=120, levels={4: 1.0, 6: 1.0}, exclude=("hill",), validate_every=10_000
    )
    before = PretrainModule(settings).validate()
    after = pretrain(settings, tmp_path, accelerator="cpu").validate()
    for kind in ("known families", "families left out"):
        assert abs(before[kind]["truth"]) < 1e-3, "the start is the Gaussian process itself"
        assert after[kind]["surprise"] < before[kind]["surprise"] - 0.1, kind
        assert after[kind]["truth"] < -0.03, kind
        assert after[kind]["held out"] < -0.03, kind


def test_a_resumed_run_ends_where_an_uninterrupted_one_does(tmp_path):
    whole = pretrain(tiny(6), tmp_path / "whole", accelerator="cpu")
    pretrain(dataclasses.replace(tiny(6), steps=6), tmp_path / "part", accelerator="cpu", max_seconds=0.0)
    resumed = pretrain(tiny(6), tmp_path / "part", accelerator="cpu", resume=tmp_path / "part" / "last.ckpt")
    assert resumed.trainer.global_step == whole.trainer.global_step == 6
    for one, other in zip(whole.average.parameters(), resumed.average.parameters(), strict=True):
        assert torch.allclose(one, other, rtol=0.0, atol=1e-7)


def test_accumulated_batches_are_one_step(tmp_path):
    module = pretrain(tiny(3, accumulate=2), tmp_path, accelerator="cpu")
    assert module.trainer.global_step == 3
    assert module.seen > 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"steps": 0}, "steps must be at least 1"),
        ({"ema": 1.0}, "ema must lie between 0 and 1"),
        ({"levels": {}}, "levels must map"),
        ({"levels": {1: 1.0}}, "levels must map"),
    ],
)
def test_settings_out_of_range_are_refused(changes, said):
    with pytest.raises(InputError, match=said):
        dataclasses.replace(cpu_settings(), **changes)


def test_the_command_makes_weights_that_load(tmp_path):
    arguments = [
        "pretrain",
        "--out",
        str(tmp_path),
        "--steps",
        "2",
        "--width",
        "16",
        "--blocks",
        "1",
        "--tokens",
        "600",
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert load_network(tmp_path / "pretrained.safetensors").size.width == 16
    assert (tmp_path / "pretrained.json").is_file()


def test_the_command_refuses_a_checkpoint_that_is_not_there(tmp_path):
    result = CliRunner().invoke(app, ["pretrain", "--out", str(tmp_path), "--resume", str(tmp_path / "none.ckpt")])
    assert result.exit_code == 2
