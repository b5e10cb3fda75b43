"""Train geonode's coupled neural ODE under Hugging Face Accelerate: the nn.Module and its loss are plain PyTorch.

python examples/accelerate/train.py
accelerate launch --num_processes 2 --cpu examples/accelerate/train.py
"""

from __future__ import annotations

import argparse

import torch
from accelerate import Accelerator

from geonode import GeodesicConfig
from geonode.data import simulate_assay
from geonode.flow import CoupledSpectralODE
from geonode.training import BatchSource, PairsBatch, PointsBatch, SpectralDataModule, losses
from geonode.training.loss import build_optimizer, learning_rate


class LossOf(torch.nn.Module):
    """A model whose forward pass is its loss, so that a wrapper sees every gradient it must reduce."""

    def __init__(self, ode: CoupledSpectralODE, config: GeodesicConfig) -> None:
        super().__init__()
        self.ode, self.config = ode, config

    def forward(self, batch: PointsBatch | PairsBatch, progress: float) -> torch.Tensor:
        return losses(self.ode, batch, self.config.loss.at(progress))["total"].sum()


def main(epochs: int = 20) -> list[float]:
    """Losses of every epoch."""
    accelerator = Accelerator()
    config = GeodesicConfig(flow="path_independent", epochs=epochs)
    data = SpectralDataModule(simulate_assay(wavelengths=[300.0 + 4.0 * k for k in range(101)]), config)
    problem = data.problem.to(accelerator.device, torch.float32)
    ode = problem.build_model(config, seed=0)
    ode.warp.requires_grad_(False)
    optimizer = build_optimizer(ode, config.training)  # before the model is wrapped: parameters move into its buffer
    rates = optimizer.rates.clone()
    source = BatchSource(problem, ode.table, config, 0, accelerator.process_index, accelerator.num_processes)
    model = accelerator.prepare(LossOf(ode, config))
    history = []
    for epoch in range(epochs):
        optimizer.rates.copy_(rates * learning_rate(epoch / epochs))
        for step in range(source.steps_per_epoch):
            loss = source.share * model(source.batch(epoch, step), epoch / epochs)
            accelerator.backward(loss)
            optimizer.step([torch.zeros_like(p) if p.grad is None else p.grad for p in optimizer.parameters])
            model.zero_grad()
        history.append(float(accelerator.reduce(loss.detach(), reduction="mean")))
    accelerator.print(f"loss {history[0]:.3e} at first, {history[-1]:.3e} after {epochs} epochs")
    accelerator.end_training()
    return history


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=20)
    main(parser.parse_args().epochs)
