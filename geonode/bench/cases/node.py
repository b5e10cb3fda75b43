"""The coupled neural ODE: forward, training steps by every solver, the fused step, one-spectrum latency."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

import geonode_kernels as kernels
from geonode.bench.case import Case, Checked, Setting, Size, Work, register
from geonode.bench.cases.common import EPOCH, MEGA, TANH, sizes
from geonode.bench.correctness import compare
from geonode.config import GeodesicConfig
from geonode.flow import CoupledSpectralODE, SpectralFlow

if TYPE_CHECKING:
    from geonode.training.batches import PairsBatch

SOLVERS = ("closed-form", "rk4", "dopri5", "adjoint")
# float32 against the float64 quadrature: rounding, and for the adaptive ones rtol = 1e-5 of the state
LIMITS = {"closed-form": 1e-5, "rk4": 1e-5, "dopri5": 2e-4, "adjoint": 2e-4}
GRADIENT_LIMITS = {"closed-form": 1e-4, "rk4": 1e-4, "dopri5": 5e-3, "adjoint": 5e-3}
CHECK = Size(7, 23)


def build_ode(size: Size, device: str, dtype: torch.dtype, config: GeodesicConfig | None = None, models: int = 1):
    """A `CoupledSpectralODE` whose metric differs from the warp: its last layer is drawn, not zero."""
    config = config or GeodesicConfig()
    ode = CoupledSpectralODE(torch.linspace(350.0, 950.0, size.wavelengths), config, models=models, seed=0)
    assert ode.metric is not None
    last = ode.metric.network.mlp.weights[-1]
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
        sets = [batch(setting, size, i) for i in range(2)]

        @torch.no_grad()
        def transport(model: CoupledSpectralODE, data: list[Tensor], solver: str) -> Tensor:
            return model(data[0], data[2], data[3], solver=solver) - data[0]

        def check() -> list[Checked]:
            data, doubles = batch(setting, CHECK), batch(setting, CHECK, dtype=torch.float64)
            ours = transport(build_ode(CHECK, setting.device, torch.float32), data, _solver(name))
            exact = transport(build_ode(CHECK, setting.device, torch.float64), doubles, "quadrature")
            return compare([ours], [exact], ["change of absorbance"], LIMITS[name])

        n = size.trajectories
        special = {"special": 1.5 * 16 * 64 * n} if name == "closed-form" else {}
        return Work(
            lambda i: transport(ode, sets[i], _solver(name)),
            check,
            {"samples": size.pairs, "odes": n},
            special,
            8.0 * n,
        )

    return build


def step_case(name: str):
    """Builder of a training step (loss, backward, clipping, AdamW) by one solver, as the library runs it."""

    def build(setting: Setting, size: Size) -> Work:
        from geonode.training.loss import build_optimizer, clip_gradients, losses

        config = GeodesicConfig(solver=_solver(name), batch_size=size.pairs)  # type: ignore[arg-type]
        weights = config.loss.at(0.0)

        ode = build_ode(size, setting.device, torch.float32, config)
        optimizer = build_optimizer(ode)
        sets = [pairs_batch(batch(setting, size, i)) for i in range(2)]

        def run(i: int) -> Tensor:
            total = losses(ode, sets[i], weights)["total"].sum()
            total.backward()
            for group in optimizer.param_groups:
                clip_gradients(group["params"], 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
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
            8.0 * size.trajectories, notes="step by step from Python, torch's AdamW",
        )  # fmt: skip

    return build


class FusedStep:
    """The default flow's training step as `geonode_kernels` fuses it: loss, all gradients, clipping and AdamW."""

    def __init__(self, setting: Setting, size: Size, dtype: torch.dtype = torch.float32, rotations: int = 2) -> None:
        self.ode = build_ode(size, setting.device, dtype)
        flow, table = self.ode.flow, self.ode.table
        assert self.ode.metric is not None and isinstance(flow, SpectralFlow)  # the default recipe has both
        mlp = self.ode.metric.network.mlp
        new = lambda t: torch.nn.Parameter(t.detach().clone())  # noqa: E731
        self.metric = [new(t) for pair in zip(mlp.weights, mlp.biases, strict=True) for t in pair]
        weight = torch.cat([flow.beta_weight, flow.a_weight, flow.a0_weight[..., None]], -1)
        bias = torch.cat(
            [flow.beta_bias, torch.zeros_like(flow.beta_bias), torch.zeros_like(flow.beta_bias[:, :1])], -1
        )
        self.flow = [new(t) for t in (flow.omega, flow.embedding, weight, bias)]
        nodes, wavelength = table.nodes.to(dtype), self.ode.wavelength
        shape = (1, table.size, size.wavelengths)
        self.u = nodes[:, :, None].expand(shape).reshape(1, -1).contiguous()
        self.wavelength = wavelength.expand(shape).reshape(1, -1).contiguous()
        self.sets = [self._inputs(batch(setting, size, i, dtype)) for i in range(rotations)]
        self.weight = torch.full((1, size.pairs), 1.0 / size.trajectories, dtype=dtype, device=setting.device)

    def _inputs(self, data: list[Tensor]) -> tuple[Tensor, Tensor]:
        source, target, start, end = data
        one = torch.ones(1, dtype=torch.float64, device=start.device)
        points = torch.cat([2.0 * start - 1.0, 2.0 * end - 1.0, one])[None]
        return self.ode.table.phi(points).to(source.dtype), (target - source)[None]

    def loss(self, i: int, backend: str = "auto") -> Tensor:
        """Mean squared error over pairs and wavelengths, [1]."""
        phi, target = self.sets[i]
        return kernels.default_flow_loss(
            self.metric, self.flow, self.u, self.wavelength, phi, target, self.weight, backend=backend
        )

    def gradients(self, i: int, backend: str = "auto") -> tuple[Tensor, tuple[Tensor, ...]]:
        """Loss and its gradient by every parameter."""
        loss = self.loss(i, backend)
        return loss.detach(), torch.autograd.grad(loss.sum(), [*self.metric, *self.flow])


def _fused(setting: Setting, size: Size) -> Work:
    step = FusedStep(setting, size)
    rate = {"lr": 1e-3, "clip": 1.0}
    optimizer = kernels.FlatAdamW([{"params": step.metric, **rate}, {"params": step.flow, **rate}])

    def run(i: int) -> Tensor:
        loss, gradients = step.gradients(i)
        optimizer.step(gradients)
        return loss

    def check() -> list[Checked]:
        small = FusedStep(setting, CHECK, rotations=1)
        exact = FusedStep(setting, CHECK, torch.float64, rotations=1)
        loss, ours = small.gradients(0)
        exact_loss, theirs = exact.gradients(0, "torch")
        source, target, start, end = batch(setting, CHECK, dtype=torch.float64)
        through_ode = (exact.ode(source, start, end) - target).square().mean()[None]
        flat = [torch.cat([g.flatten() for g in part]) for part in (ours, theirs)]
        rows = compare([loss, flat[0]], [exact_loss, flat[1]], ("loss", "gradient"), 1e-4)
        return [*rows, *compare([loss], [through_ode.detach()], ["loss against CoupledSpectralODE"], 1e-4)]

    n, w = size.trajectories, size.wavelengths
    counts = {"samples": size.pairs, "odes": n, "gradient_steps": 1, "epochs": 1}
    # m_θ on the table forward and backward; every flow unit's tanh at 16 nodes: two exponentials, a reciprocal a pair
    operations = {"fp16": 3.0 * 3 * 0.5 * 4 * 64**2 * 64 * w, "special": 1.5 * 16 * 64 * n + 1.5 * TANH * 64 * w}
    return Work(
        run, check, counts, operations if setting.device == "cuda" else {}, 4.0 * (n + 2 * size.pairs * 64), 2,
        capture=True, state=optimizer.state_tensors(),
        notes="m_θ and flow together, fused loss and AdamW; an epoch is this batch once",
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
