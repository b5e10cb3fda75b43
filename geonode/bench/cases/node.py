"""The coupled neural ODE: forward, training steps by every solver, the fused step, one-spectrum latency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

import geonode_kernels as kernels
from geonode.bench.case import Case, Checked, Setting, Size, Work, register
from geonode.bench.cases.common import EPOCH, MEGA, TANH, sizes
from geonode.bench.correctness import compare
from geonode.config import GeodesicConfig
from geonode.flow import CoupledSpectralODE

if TYPE_CHECKING:
    from geonode.training.batches import PairsBatch

SOLVERS = ("closed-form", "rk4", "dopri5", "adjoint")
# float32 against the float64 quadrature: rounding, and for the adaptive ones rtol = 1e-5 of the state
LIMITS = {"closed-form": 1e-5, "rk4": 1e-5, "dopri5": 2e-4, "adjoint": 2e-4}
GRADIENT_LIMITS = {"closed-form": 1e-4, "rk4": 1e-4, "dopri5": 5e-3, "adjoint": 5e-3}
CHECK = Size(7, 23)
RECORDED = ("closed-form", "rk4")  # their steps depend on no value, so that a CUDA graph holds them
STILL = {"metric_lr": 1e-9, "flow_lr": 1e-9}  # thousands of steps on random spectra would lead out of any range


def build_ode(size: Size, device: str, dtype: torch.dtype, config: GeodesicConfig | None = None, models: int = 1):
    """A `CoupledSpectralODE` whose metric differs from the warp: its last layer is drawn, not zero."""
    config = config or GeodesicConfig(flow="path_independent")
    ode = CoupledSpectralODE(torch.linspace(350.0, 950.0, size.wavelengths), config, models=models, seed=0)
    network: Any = ode.metric  # of the default recipe: a network
    last = network.network.mlp.weights[-1]
    with torch.no_grad():
        last.copy_(0.3 * torch.randn(last.shape, generator=torch.Generator().manual_seed(0)))
    return in_precision(ode, dtype).to(device)


def in_precision(ode: CoupledSpectralODE, dtype: torch.dtype) -> CoupledSpectralODE:
    """The same object with parameters and wavelengths in ``dtype``; the arc-length table stays float64."""
    for parameter in ode.parameters():
        parameter.data = parameter.data.to(dtype)
    for module in (ode, ode.flow):
        wavelength = getattr(module, "wavelength", None)
        if isinstance(wavelength, Tensor):
            module.wavelength = wavelength.to(dtype)
    return ode


def batch(setting: Setting, size: Size, rotation: int = 0, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """source, target [B, W], start, end [B] in the unit range."""
    generator = torch.Generator().manual_seed(1 + setting.seed + 1000 * rotation)
    spectra = torch.rand(2, size.pairs, size.wavelengths, generator=generator)
    ends = torch.rand(2, size.pairs, generator=generator, dtype=torch.float64)
    return [*spectra.to(setting.device, dtype), *ends.to(setting.device)]


def ends(ode: CoupledSpectralODE, data: list[Tensor]) -> list[Tensor]:
    """What `batch` draws as `CoupledSpectralODE.transport` takes it: sources, and both ends in the warp coordinate."""
    source, _, start, end = data
    return [source[None], ode.to_u(start[None]), ode.to_u(end[None])]


def pairs_batch(data: list[Tensor]) -> PairsBatch:
    """What `batch` draws as one model's training batch, every pair weighing one."""
    from geonode.training.batches import PairsBatch

    source, target, start, end = data
    weight = torch.ones_like(start[None], dtype=source.dtype)
    return PairsBatch(2.0 * start[None] - 1.0, 2.0 * end[None] - 1.0, source[None], target[None], weight)


def _solver(name: str) -> str:
    return "quadrature" if name == "closed-form" else name


def forward_case(name: str):
    """Builder of the forward pass by one solver."""

    def build(setting: Setting, size: Size) -> Work:
        ode = build_ode(size, setting.device, torch.float32)
        sets = [ends(ode, batch(setting, size, i)) for i in range(2)]

        @torch.no_grad()
        def transport(model: CoupledSpectralODE, data: list[Tensor], solver: str) -> Tensor:
            return (model.transport(*data, solver=solver) - data[0])[0]

        def check() -> list[Checked]:
            data, doubles = batch(setting, CHECK), batch(setting, CHECK, dtype=torch.float64)
            single, double = (build_ode(CHECK, setting.device, dtype) for dtype in (torch.float32, torch.float64))
            ours = transport(single, ends(single, data), _solver(name))
            exact = transport(double, ends(double, doubles), "quadrature")
            return compare([ours], [exact], ["change of absorbance"], LIMITS[name])

        n = size.trajectories
        special = {"special": 1.5 * 16 * 64 * n} if name == "closed-form" else {}
        return Work(
            lambda i: transport(ode, sets[i], _solver(name)),
            check,
            {"samples": size.pairs, "odes": n},
            special,
            8.0 * n,
            capture=name in RECORDED,
            notes="CoupledSpectralODE.transport, recorded as predictions on a GPU are" if name in RECORDED else "",
        )

    return build


def step_case(name: str):
    """Builder of a training step (loss, backward, clipping, AdamW) by one solver, as the library runs it."""

    def build(setting: Setting, size: Size) -> Work:
        from geonode.training.loss import build_optimizer, losses

        config = GeodesicConfig(solver=_solver(name), batch_size=size.pairs, **STILL)  # type: ignore[arg-type]
        weights = config.loss.at(0.0)

        ode = build_ode(size, setting.device, torch.float32, config)
        optimizer = build_optimizer(ode, config.training)
        sets = [pairs_batch(batch(setting, size, i)) for i in range(2)]

        def run(i: int) -> Tensor:
            total = losses(ode, sets[i], weights)["total"].sum()
            parameters = optimizer.parameters
            optimizer.step(torch.autograd.grad(total, parameters, allow_unused=True, materialize_grads=True))
            return total.detach()

        def gradients(dtype: torch.dtype, solver: str) -> list[Tensor]:
            model = build_ode(CHECK, setting.device, dtype, config.replace(solver=solver))
            total = losses(model, pairs_batch(batch(setting, CHECK, dtype=dtype)), weights)["total"].sum()
            parts = torch.autograd.grad(total, list(model.parameters()))
            return [total.detach(), torch.cat([p.flatten() for p in parts])]

        def check() -> list[Checked]:
            ours, exact = gradients(torch.float32, _solver(name)), gradients(torch.float64, "quadrature")
            return compare(ours, exact, ("loss", "gradient"), GRADIENT_LIMITS[name])

        return Work(
            run, check, {"samples": size.pairs, "odes": size.trajectories, "gradient_steps": 1}, {},
            8.0 * size.trajectories, capture=name == "rk4", state=optimizer.state_tensors(),
            notes="as training records it" if name == "rk4" else "step by step from Python",
        )  # fmt: skip

    return build


def _fused(setting: Setting, size: Size) -> Work:
    from geonode.training.loss import losses

    def built(of: Size, dtype: torch.dtype) -> tuple[CoupledSpectralODE, list[torch.nn.Parameter]]:
        ode = build_ode(of, setting.device, dtype)
        return ode, [p for p in ode.parameters() if p.requires_grad]

    def with_phi(ode: CoupledSpectralODE, data: PairsBatch) -> PairsBatch:
        """As a training batch has it: Φ at its ends, formed once for a problem's points."""
        return data._replace(phi=ode.table.phi(torch.cat([data.start, data.end], 1)).to(data.source))

    def gradients(ode: CoupledSpectralODE, parameters: list[torch.nn.Parameter], data: PairsBatch) -> list[Tensor]:
        total = losses(ode, data, {"reconstruction": 1.0})["total"]
        return [total.detach(), *torch.autograd.grad(total.sum(), parameters)]

    ode = built(size, torch.float32)[0]
    sets = [with_phi(ode, pairs_batch(batch(setting, size, i))) for i in range(2)]
    assert ode.metric is not None
    parts = [list(module.parameters()) for module in (ode.metric, ode.flow)]
    optimizer = kernels.FlatAdamW([{"params": part, "lr": 1e-3, "clip": 1.0} for part in parts])

    def run(i: int) -> Tensor:
        loss, *found = gradients(ode, optimizer.parameters, sets[i])
        optimizer.step(found)
        return loss

    def check() -> list[Checked]:
        values: list[list[Tensor]] = []
        for dtype in (torch.float32, torch.float64):
            one, own = built(CHECK, dtype)
            loss, *found = gradients(one, own, with_phi(one, pairs_batch(batch(setting, CHECK, dtype=dtype))))
            values.append([loss, torch.cat([g.flatten() for g in found])])
        source, target, start, end = batch(setting, CHECK, dtype=torch.float64)
        through_ode = (built(CHECK, torch.float64)[0](source, start, end) - target).square().mean()[None]
        rows = compare(values[0], values[1], ("loss", "gradient"), 1e-4)
        return [*rows, *compare(values[0][:1], [through_ode.detach()], ["loss against CoupledSpectralODE"], 1e-4)]

    n, w = size.trajectories, size.wavelengths
    counts = {"samples": size.pairs, "odes": n, "gradient_steps": 1, "epochs": 1}
    # m_θ on the table forward and backward; every flow unit's tanh at 16 nodes: two exponentials, a reciprocal a pair
    operations = {"fp16": 3.0 * 3 * 0.5 * 4 * 64**2 * 64 * w, "special": 1.5 * 16 * 64 * n + 1.5 * TANH * 64 * w}
    return Work(
        run, check, counts, operations if setting.device == "cuda" else {}, 4.0 * (n + 2 * size.pairs * 64), 2,
        capture=True, state=optimizer.state_tensors(),
        notes="the library's loss of explicit pairs, gradients, clipping and AdamW, recorded as training records it; "
        "an epoch is this batch once",
    )  # fmt: skip


def _infer(setting: Setting, size: Size) -> Work:
    ode = build_ode(size, setting.device, torch.float32).eval()
    sets = [batch(setting, size, i) for i in range(4)]

    @torch.no_grad()
    def predict(model: CoupledSpectralODE, data: list[Tensor]) -> Tensor:
        return model(data[0], data[2], data[3])

    def check() -> list[Checked]:
        exact = predict(build_ode(size, setting.device, torch.float64), batch(setting, size, dtype=torch.float64))
        return compare([predict(ode, sets[0])], [exact], ["spectrum"], 1e-5)

    return Work(
        lambda i: predict(ode, sets[i]), check, {"samples": size.pairs, "odes": size.trajectories}, {},
        8.0 * size.trajectories, 4, latency=True,
        notes="CoupledSpectralODE from Python, wall clock with synchronisation",
    )  # fmt: skip


for _name in ("closed-form", "rk4", "dopri5"):
    register(
        Case(
            f"node-forward-{_name}", f"coupled NODE forward, {_name}", forward_case(_name),
            sizes([EPOCH if _name == "closed-form" else Size(10, 61)], [EPOCH]),
        )
    )  # fmt: skip
register(
    Case(
        "node-step-fused", "training step, closed form, fused", _fused, sizes([EPOCH], [EPOCH, MEGA]),
        sweep=sizes(
            [Size(1, 601), Size(8, 601)], [Size(1, 601), Size(8, 601), Size(128, 601), Size(512, 601), Size(2048, 601)],
            [Size(8192, 601)],
        ),
    )
)  # fmt: skip
for _name in SOLVERS:
    register(
        Case(
            f"node-step-{_name}", f"training step, {_name}", step_case(_name),
            sizes([EPOCH if _name == "closed-form" else Size(10, 21)], [EPOCH]),
        )
    )  # fmt: skip
register(Case("infer-one", "inference latency of one spectrum", _infer, sizes([Size(1, 601)], [Size(1, 601)])))
