"""Under Lightning: the same weights as the plain loop, resuming to the bit, precision, logs, checkpoints."""

from __future__ import annotations

import pytest
import torch

from geonode.config import GeodesicConfig
from geonode.data import simulate_assay
from geonode.errors import DeviceError, InputError
from geonode.training import (
    GeodesicSpectralModule,
    SpectralDataModule,
    build_trainer,
    train,
    train_module,
)
from geonode.training.chunks import select


def _weights(module: GeodesicSpectralModule) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in module.ode.named_parameters()}


@pytest.mark.smoke
@pytest.mark.parametrize("flow, limit", [("path_independent", 1e-12), ("velocity", 1e-10)])
def test_lightning_and_the_plain_loop_give_the_same_weights(assay, small, one_thread, flow, limit):
    config = small.replace(wavelengths_per_step=7, flow=flow)
    data = SpectralDataModule(assay, config)
    module = GeodesicSpectralModule(data.problem, config)
    build_trainer(config, 6, "cpu").fit(module, data)
    plain = dict(train(data.problem.to("cpu", torch.float64), config, config.seed).named_parameters())
    for name, value in _weights(module).items():
        torch.testing.assert_close(value, plain[name].detach(), rtol=0, atol=limit)


@pytest.mark.parametrize("flow", ["path_independent", "velocity"])
def test_under_lightning_too_a_model_of_a_stack_trains_as_alone(assay, small, one_thread, flow):
    config = small.replace(flow=flow, members=12)  # from a few models on, batched products round otherwise
    data = SpectralDataModule(assay, config)
    together = GeodesicSpectralModule(data.problem, config)
    build_trainer(config, 10, "cpu").fit(together, data)
    alone = GeodesicSpectralModule(select(data.problem, 7, 1), config, seed=config.seed + 7)
    alone.seed = config.seed  # of what steps draw
    build_trainer(config, 10, "cpu").fit(alone, data)
    for name, value in _weights(alone).items():
        torch.testing.assert_close(_weights(together)[name][7:8], value, rtol=0, atol=1e-9, msg=name)


def test_a_model_starts_from_the_same_bits_wherever_its_memory_lies(small):
    assay = simulate_assay()
    whole = GeodesicSpectralModule(SpectralDataModule(assay, small).problem, small)
    for shift in (1, 3, 7):  # elsewhere in memory, at other alignments
        kept = [bytes(size * shift) for size in range(8, 4096, 24)]
        again = GeodesicSpectralModule(SpectralDataModule(assay, small).problem, small)
        for name, value in _weights(again).items():
            assert torch.equal(value, _weights(whole)[name]), (name, len(kept))


@pytest.mark.parametrize("flow", ["path_independent", "velocity"])
def test_a_resumed_run_equals_the_uninterrupted_one_to_the_bit(assay, small, tmp_path, one_thread, away, flow):
    config = small.replace(
        flow=flow, precision="32-true", wavelengths_per_step=5, batch_size=None if flow != "velocity" else 8, members=1
    )
    data = SpectralDataModule(assay, config)
    whole = GeodesicSpectralModule(data.problem, config)
    build_trainer(config, 6, "cpu").fit(whole, data)

    first = GeodesicSpectralModule(data.problem, config)
    trainer = build_trainer(config, 6, "cpu", log_dir=tmp_path, checkpoint_every=1, max_steps=-1)
    trainer.fit_loop.max_epochs = 2
    trainer.fit(first, data)
    checkpoint = tmp_path / "checkpoints" / "last.ckpt"
    assert checkpoint.is_file()

    second = GeodesicSpectralModule(data.problem, config)
    build_trainer(config, 6, "cpu").fit(second, data, ckpt_path=checkpoint)
    expected = _weights(whole)
    assert any(not torch.equal(value, expected[name]) for name, value in _weights(first).items())
    for name, value in _weights(second).items():
        assert torch.equal(value, expected[name]), name


def test_bf16_trains_and_keeps_parameters_in_float32(assay, small, away):
    config = small.replace(precision="bf16-mixed", epochs=8)
    module = train_module(SpectralDataModule(assay, config), config, device="cpu")
    assert all(p.dtype == torch.float32 for p in module.ode.parameters())
    assert module.history[-1]["reconstruction"] < 0.9 * module.history[0]["reconstruction"]


def test_fp16_on_a_cpu_is_refused_in_one_sentence(assay, small):
    config = small.replace(precision="16-mixed")
    with pytest.raises(DeviceError, match="needs a CUDA device"):
        train_module(SpectralDataModule(assay, config), config, device="cpu")


@pytest.mark.smoke
def test_logs_and_history(assay, small, tmp_path):
    config = small.replace(epochs=3)
    module = train_module(SpectralDataModule(assay, config), config, device="cpu", log_dir=tmp_path)
    assert len(module.history) == 3
    assert {"total", "reconstruction"} <= set(module.history[0])
    assert list(tmp_path.glob("csv/*/metrics.csv"))
    assert list(tmp_path.glob("tensorboard/*/events*"))


def test_blueprint_trains():
    """Mega-batches of all pairs in two micro-batches: the recipe's one loss, that of the data, falls every epoch."""
    assay = simulate_assay(wavelengths=[300.0, 380.0, 460.0, 540.0, 620.0, 700.0])
    config = GeodesicConfig.blueprint(
        precision="32-true",
        epochs=4,
        batch_size=30,
        micro_batch=15,
        newton_steps=3,
        ode_steps=6,
        metric_lr=0.02,
        flow_lr=0.02,
    )
    module = train_module(SpectralDataModule(assay, config), config, device="cpu")
    losses = [line["reconstruction"] for line in module.history]
    assert losses == sorted(losses, reverse=True) and losses[-1] < 0.9 * losses[0]


def test_several_analytes_and_too_few_levels_are_refused(assay):
    import numpy as np

    from geonode.data import SpectralDataset

    spectra = np.random.default_rng(0).normal(size=(4, 5))
    two = SpectralDataset(spectra, [[0, 0], [0, 1], [1, 0], [1, 1]], [1, 2, 3, 4, 5])
    with pytest.raises(InputError, match="2 analytes"):
        SpectralDataModule(two)
    few = SpectralDataset(spectra[:2], [0, 1], [1, 2, 3, 4, 5])
    with pytest.raises(InputError, match="at least 3"):
        SpectralDataModule(few)
