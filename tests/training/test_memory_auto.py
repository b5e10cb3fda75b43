"""`batch="auto"`: the largest micro-batch or the fewest parts that fit, the same training, and again when it fails."""

from __future__ import annotations

import pytest
import torch

from geonode.errors import DeviceError, InputError
from geonode.training import SpectralDataModule, fitting, train_module
from geonode.training.fitting import fitted, smaller, with_micro_batch
from geonode.training.lightning import trainer
from geonode.training.problem import Problem


def _weights(module):
    return {name: p.detach() for name, p in module.ode.named_parameters() if name != "metric.network.mlp.biases.2"}


def _limit(monkeypatch, fits):
    tried = []

    def attempt(problem, config, recompute):
        tried.append((config.micro_batch, recompute))
        if not fits(config, recompute):
            raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(fitting, "_try", attempt)
    return tried


def test_micro_batches_divide_the_mega_batch_and_gradients_accumulate_to_it(assay, small, monkeypatch):
    config = small.replace(flow="velocity", batch_size=24)
    problem = SpectralDataModule(assay, config).problem
    assert fitted(problem, config, "cpu") == (config.replace(micro_batch=24), 0)
    _limit(monkeypatch, lambda c, _: c.micro_batch <= 10)
    found, parts = fitted(problem, config, "cpu")
    assert (found.batch_size, found.micro_batch, found.accumulate, parts) == (24, 8, 3, 0)
    _limit(monkeypatch, lambda *_: False)
    with pytest.raises(DeviceError, match="Not even"):
        fitted(problem, config, "cpu")


def test_where_there_are_no_micro_batches_wavelengths_are_taken_in_parts(assay, small, monkeypatch):
    problem = SpectralDataModule(assay, small).problem
    tried = _limit(monkeypatch, lambda _, parts: parts >= 4)
    assert fitted(problem, small, "cpu") == (small, 4)
    assert [parts for _, parts in tried] == [0, 2, 4]


def test_memory_that_runs_out_later_starts_anew_with_less_and_ends_as_one_that_did_not(assay, small, monkeypatch):
    data = SpectralDataModule(assay, small)
    whole = _weights(train_module(data, small, "cpu"))
    real, calls = trainer._train_once, []

    def hungry(data, config, device, seed, resume, checkpoint, compiled, recompute, **options):
        calls.append(recompute)
        if recompute < 4:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return real(data, config, device, seed, resume, checkpoint, compiled, recompute, **options)

    monkeypatch.setattr(trainer, "_train_once", hungry)
    with pytest.warns(UserWarning, match="Out of memory: anew with 4 parts"):
        parts = _weights(train_module(data, small, "cpu", batch="auto"))
    assert calls == [0, 2, 4]
    for name, value in whole.items():
        torch.testing.assert_close(parts[name], value, rtol=0, atol=1e-9, msg=name)


def test_the_loader_counts_the_micro_batches_that_were_found(assay, small, monkeypatch):
    config = small.replace(flow="velocity", batch_size=10, epochs=2)
    data = SpectralDataModule(assay, config)
    _limit(monkeypatch, lambda c, _: c.micro_batch <= 5)
    module = train_module(data, config, "cpu", batch="auto")
    assert module.config.micro_batch == 5 and data.config is config
    assert len(data.train_dataloader()) == 3 and module._source.steps_per_epoch == 6


def test_memory_that_runs_out_in_training_leaves_checkpoints_that_can_be_resumed(assay, small, tmp_path, monkeypatch):
    """Those of the micro-batch that was given up belong to no training any more."""
    config = small.replace(flow="velocity", batch_size=8, micro_batch=4, epochs=6)
    data = SpectralDataModule(assay, config)
    monkeypatch.setattr(trainer, "fitted", lambda problem, config, device: (config, 0))

    def hungry(done, total):
        if done == 5 and not met:  # after the epoch is written
            met.append(done)
            raise torch.OutOfMemoryError("out of memory")

    met = []
    with pytest.warns(UserWarning, match="Out of memory: anew with micro-batches of 2"):
        module = train_module(data, config, "cpu", batch="auto", checkpoint=tmp_path, progress=hungry, resume=True)
    assert met == [5] and module.config.micro_batch == 2
    assert train_module(data, module.config, "cpu", checkpoint=tmp_path, resume=True).config == module.config


def test_smaller_ends_in_a_sentence(small):
    assert smaller(small, 0, 6) == (small, 2) and smaller(small, 2, 6) == (small, 4)
    with pytest.raises(DeviceError, match="Not even one part"):
        smaller(small, 64, 6)
    config = with_micro_batch(small.replace(flow="velocity"), 24, 9)
    assert config.micro_batch == 8 and smaller(config, 0, 6)[0].micro_batch == 4
    with pytest.raises(DeviceError, match="Not even a batch of one"):
        smaller(config.replace(micro_batch=1), 0, 6)


def test_an_unknown_batch_is_refused(assay, small):
    with pytest.raises(InputError, match="batch='largest'"):
        train_module(SpectralDataModule(assay, small), small, "cpu", batch="largest")


def test_several_processes_do_not_each_find_their_own_micro_batch(assay, small, monkeypatch):
    for name, value in {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match="set micro_batch in the settings"):
        train_module(SpectralDataModule(assay, small), small, "cpu", batch="auto")


def _away(build):
    """`Problem.build_model` away from the least-squares optimum, where gradients are rounding, which Adam amplifies."""

    def away(self, *arguments):
        ode = build(self, *arguments)
        draws = torch.Generator().manual_seed(7)
        with torch.no_grad():
            for parameter in [*ode.metric.parameters(), *ode.flow.parameters()]:
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=draws, dtype=torch.float64).to(parameter))
        return ode

    return away


@pytest.mark.parametrize(
    "changes", [{"wavelengths_per_step": 7}, {"flow": "velocity", "batch_size": 8, "micro_batch": 4}]
)
def test_a_captured_step_under_lightning_trains_as_an_uncaptured_one(assay, small, monkeypatch, changes):
    from geonode.training.lightning import module as lightning_module

    monkeypatch.setattr(Problem, "build_model", _away(Problem.build_model))
    config = small.replace(**changes)
    data = SpectralDataModule(assay, config)
    plain = train_module(data, config, "cpu")
    monkeypatch.setattr(lightning_module, "use_captured", lambda *_: True)
    captured = train_module(data, config, "cpu")
    assert captured._captured and not plain._captured  # the same step, not by autograd through Lightning
    for name, value in _weights(plain).items():
        torch.testing.assert_close(_weights(captured)[name], value, rtol=0, atol=1e-10, msg=name)
    assert captured.history[-1]["total"] == pytest.approx(plain.history[-1]["total"], rel=1e-9)
