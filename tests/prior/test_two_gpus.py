"""Two GPUs take the steps of one: captured, averaged by DDP, each drawing a batch of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from tests.prior.test_processes import ENVIRONMENT, ROOT, TORCHRUN, _weights


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_two_gpus_take_the_steps_of_one(tmp_path):
    """Twenty steps of two batches: weights within 1e-6, the captured step taken by both.

    In float64: AdamW moves a weight whose gradient is but rounding by as much as any other."""
    script = str(ROOT / "tests" / "prior" / "two_gpus_run.py")
    running = {
        name: subprocess.Popen(
            [*launcher, script, str(tmp_path / name)],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name, launcher in {"one": [sys.executable], "two": TORCHRUN}.items()
    }
    for process in running.values():
        said, complained = process.communicate(timeout=300)
        assert process.returncode == 0, complained[-3000:]
        assert "done 20" in said and "captured True" in said
    one, two = _weights(tmp_path / "one"), _weights(tmp_path / "two")
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, rtol=0, atol=1e-6, msg=lambda said, name=name: f"{name}: {said}")
