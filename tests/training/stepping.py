"""Training taken apart: steps without the choice of the best state, and the same written plainly."""

from __future__ import annotations

import torch

from geonode.training import BatchSource
from geonode.training.loss import learning_rate, losses, parameter_groups
from geonode.training.steps import StackSteps


def last_state(problem, config, seed=4, ode=None, **options):
    """The stack after the last epoch, its best state not taken, and the outcome."""
    ode = problem.build_model(config, seed) if ode is None else ode
    steps = StackSteps(ode, BatchSource(problem, ode.table, config, seed), config, **options)
    steps.begin()
    for epoch in range(config.training.epochs):
        steps.epoch(epoch)
    return ode, steps.control.outcome()


def plainly(problem, config, seed):
    """The training as one would write it: torch's AdamW, the loss of each whole mega-batch, weights as numbers."""
    whole = config if config.all_pairs else config.replace(micro_batch=None)
    ode = problem.build_model(config, seed)
    source = BatchSource(problem, ode.table, whole, seed)
    optimizer = torch.optim.AdamW(parameter_groups(ode, config.training), weight_decay=config.training.weight_decay)
    for epoch in range(config.training.epochs):
        fraction = epoch / config.training.epochs
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"] * learning_rate(fraction)
        for step in range(source.steps_per_epoch):
            losses(ode, source.batch(epoch, step), config.loss.at(fraction))["total"].sum().backward()
            for group in optimizer.param_groups:
                clip(group["params"], getattr(config.training, f"{group['name']}_clip"))
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    return ode


def clip(parameters, limit):
    """Scale each model's gradient to a norm of at most ``limit``."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = torch.stack([g.reshape(len(g), -1).square().sum(1) for g in gradients]).sum(0).sqrt()
    scale = (limit / norm).clamp(max=1.0) if limit else torch.ones_like(norm)
    for gradient in gradients:
        gradient.mul_(scale.reshape(-1, *([1] * (gradient.ndim - 1))))
