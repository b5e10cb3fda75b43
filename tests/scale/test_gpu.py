"""On a CUDA device: nothing is copied between host and device from one epoch to the next."""

from __future__ import annotations

import pytest
import torch

from geonode.training import SpectralDataModule, build_problem, train, train_module

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here"),
]


def copies(action) -> int:
    """Copies between host and device while ``action`` runs."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        action()
        torch.cuda.synchronize()
    names = [event.name for event in profiler.events()]
    return sum("Memcpy HtoD" in name or "Memcpy DtoH" in name for name in names)


@pytest.mark.parametrize("backend", ["auto", "torch"])
@pytest.mark.parametrize("flow", ["path_independent", "velocity"])
def test_the_stacked_loop_copies_nothing_inside_an_epoch(folds, assay, small, backend, flow):
    config = small.replace(precision="32-true", wavelengths_per_step=7, flow=flow)
    problem = build_problem(folds, assay.wavelengths, config).to("cuda", torch.float32)

    def run(epochs):
        return lambda: train(problem, config.replace(epochs=epochs), backend=backend)

    run(2)()
    short, long = copies(run(5)), copies(run(25))
    print(f"{backend} {flow}: {(long - short) / 20} copies an epoch, {short} in 5 epochs with their start")
    assert long == short


def test_under_lightning_an_epoch_copies_no_more_than_its_log(assay, small):
    config = small.replace(precision="32-true", wavelengths_per_step=7)
    data = SpectralDataModule(assay, config)

    def run(epochs):
        return lambda: train_module(data, config.replace(epochs=epochs), "cuda")

    run(2)()
    per_epoch = (copies(run(25)) - copies(run(5))) / 20
    print(f"lightning: {per_epoch} copies an epoch")
    assert per_epoch <= 8  # losses of the history (four, at the end), a look every fifth epoch, Lightning's own
