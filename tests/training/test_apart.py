"""Products and sums model by model: the same numbers as batched ones, and none that knows how large the stack is."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from geonode.calibration import GeodesicGP
from geonode.training import BatchSource, build_problem, train
from geonode.training.apart import _Apart, rounded_alone
from geonode.training.captured import StackSteps
from geonode.training.chunks import select, select_model

MODELS = 6
# may round by the size of the whole; of mm and sums see the recorder
SUSPECTS = {"bmm", "baddbmm", "addmm", "addbmm", "mv", "dot", "linalg_vector_norm", "var", "logsumexp", "prod"}


class Recorder(TorchDispatchMode):
    """Notes name and outcome of every operation; underneath `_Apart` it sees what is really done."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.seen.append((func._schema.name.split("::")[1], func._overloadname, args, result))
        return result


def test_products_and_sums_apart_are_the_batched_ones_with_their_gradients():
    generator = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()  # noqa: E731
    bias, left, right, shared = draw(3, 1, 4), draw(3, 5, 6), draw(3, 4, 6), draw(6, 7)

    def run():
        first = torch.baddbmm(bias, left, right.mT)
        value = (first @ right @ shared.expand(3, -1, -1)).square()
        value = torch.stack([value.mean((0, 2)).sum(), value.sum(1, keepdim=True).mean(-1).prod(), value.sum([])])
        return [value, *torch.autograd.grad(value.sum(), [bias, left, right, shared])]

    batched = run()
    with Recorder() as recorder, _Apart():
        apart = run()
    shapes = [tuple(args[0].shape) for name, _, args, _ in recorder.seen if name == "mm"]
    assert shapes.count((5, 6)) >= 6 and (15, 6) not in shapes  # three models' product with right, and with shared
    for a, b in zip(batched, apart, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("flow", ["path_independent", "velocity", "free"])
def test_no_operation_of_a_step_knows_how_many_models_there_are(folds, assay, small, flow):
    config = small.replace(flow=flow, precision="64-true", wavelengths_per_step=7)
    config = config.replace(batch_size=8) if flow == "path_independent" else config
    problem = build_problem(folds * (MODELS // 3), assay.wavelengths, config)

    def steps(rows, seed):
        ode = rows.build_model(config, seed)
        with Recorder() as recorder, _Apart():
            taken = StackSteps(ode, BatchSource(rows, ode.table, config), config, capture=False)
            for number in range(2):
                taken.take(0, number % taken.source.steps_per_epoch)
        return recorder.seen, ode

    together, stack = steps(problem, config.seed)
    alone, ode = steps(select(problem, 4, 1), config.seed + 4)
    names = {name for name, *_ in together}
    assert not names & SUSPECTS
    for seen in (together, alone):
        for name, overload, args, _ in seen:
            # whole sums have one value for all models, whose gradient is a constant
            assert name not in ("sum", "mean") or overload == "default" or args[0].numel() == 0
    rows = [
        {tuple(map(tuple, (args[0].shape, args[1].shape))) for n, _, args, _ in s if n == "mm"}
        for s in (together, alone)
    ]
    assert rows[0] == rows[1] and rows[0]  # the very same products
    for (name, parameter), (_, own) in zip(stack.named_parameters(), ode.named_parameters(), strict=True):
        assert name.startswith("warp.") or torch.equal(parameter[4], own[0]), name


def test_sums_apart_of_every_kind_are_those_of_torch():
    """Counts of what is true, sums of nothing, other dtypes, and every way to name dimensions."""
    true, numbers = torch.arange(24).reshape(2, 3, 4) % 3 > 0, torch.arange(24.0, dtype=torch.float64).reshape(2, 3, 4)
    values = [true, numbers, numbers.float(), numbers.long(), numbers[:, :0]]

    def sums():
        found = [
            value.sum(d, keepdim=keep) for value in values for d in (0, -1, (0, 2), (-1, 1)) for keep in (False, True)
        ]
        return [
            *found,
            numbers.mean((0, -1)),
            numbers.mean(1, keepdim=True),
            numbers[0, 0, 0].sum([]),
            true.sum(),
            numbers[:0].mean(0),
        ]

    with _Apart():
        apart = sums()
    for ours, theirs in zip(apart, sums(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-15, atol=0, equal_nan=True)


@pytest.mark.parametrize("models", [3, 17])  # 17 divides the rows of the table's own constant product
def test_a_stacks_table_is_that_of_each_alone_to_the_bit(folds, assay, small, models):
    problem = build_problem((folds * 6)[:models], assay.wavelengths, small)
    ode = problem.build_model(small, 5)
    part = select_model(ode, select(problem, 1, 2), 1)
    for m in range(models):
        one = select(problem, m, 1).build_model(small, 5 + m)
        for table, row in ((ode.table, m), *(((part.table, m - 1),) if m in (1, 2) else ())):
            assert torch.equal(table.series, one.table.series)
            assert torch.equal(table.phi_one[row], one.table.phi_one[0])
            assert torch.equal(table.phi_nodes[row], one.table.phi_nodes[0])


def test_how_a_model_starts_does_not_depend_on_how_many_points_its_neighbours_have(assay, small):
    levels, means = assay.levels, assay.level_means()
    keep = [np.delete(np.arange(6), i) for i in ([0], [2], [1, 5])]
    gps = [GeodesicGP().fit_levels(levels[k], means[k]) for k in keep]
    targets = [np.delete(levels, k) for k in keep]
    whole = build_problem(gps, assay.wavelengths, small, targets)
    counts = [int((weight > 0).sum()) for weight in whole.weight]
    assert len(set(counts)) > 1  # padded
    config = small.replace(epochs=10)
    together = train(whole, config)
    for m, gp in enumerate(gps):
        own = build_problem([gp], assay.wavelengths, config, [targets[m]])
        assert own.points.shape[1] == counts[m]
        alone = train(own, config, ode=own.build_model(config, m))
        for (name, ours), (_, theirs) in zip(together.named_parameters(), alone.named_parameters(), strict=True):
            assert name.startswith("warp.") or (ours[m] - theirs[0]).abs().max() <= 1e-9, name


def test_in_float32_nothing_changes():
    with rounded_alone(torch.zeros(1)) as mode:
        assert mode is None
