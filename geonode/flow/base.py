"""The contract of a flow, and the registry of all flows: how absorbance changes along a geodesic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from geonode.construction import FollowsForward, Recorded, build
from geonode.registry import Registry
from geonode_kernels import FlowUnits

if TYPE_CHECKING:
    from geonode.flow.config import FlowConfig
    from geonode.flow.path import FlowPath

FLOWS: Registry[type[Flow]] = Registry("flow", package=__package__)


class FlowPoint(NamedTuple):
    """Where B paths per model are, each at a time of its own, at each wavelength.

    position: u [M, B, W], the warp coordinate; for D ≥ 2 analytes [M, B, W, D] (or [M, B, 1, D] where every wavelength
        is at the same place).
    s_hat: ŝ [M, B, W], arc length of the full metric, scaled to [−1, 1] on the calibrated range. None for flows that
        say that they do not use it, and for D ≥ 2, where the whole plane has no such coordinate.
    velocity: du/dt, shaped like the position.
    speed: dŝ/dt [M, B, W], where ŝ is given.
    index: [W] numbers of the wavelengths; None for all.
    """

    position: Tensor
    s_hat: Tensor | None
    velocity: Tensor
    speed: Tensor | None
    index: Tensor | None = None


class FlowCoefficients(NamedTuple):
    """Tanh units at each wavelength: ω [M, H], β [M, W, H], a [M, W, H], a₀ [M, W], ν [M, H] or None."""

    omega: Tensor
    beta: Tensor
    a: Tensor
    a0: Tensor
    nu: Tensor | None


class Flow(Recorded, FollowsForward, nn.Module):
    """How absorbance changes along a path: dA/dt at a `FlowPoint`. Subclasses give ``forward``.

    All else follows from ``forward``: `integral` is its quadrature, and what a class adds (a kernel, a potential, a
    fused loss) holds for that class's ``forward`` alone: a subclass that overrides ``forward`` without overriding these
    as well falls back to the defaults here.

    What a flow is like is said by flags: ``path_independent``, the change depends on the ends alone, so that all pairs
    are differences of one potential; ``still_at_rest``, nothing changes where nothing moves (the library's law);
    ``uses_arc_length``, it reads ŝ and dŝ/dt (they cost something); ``several_analytes``, it is for D ≥ 2;
    ``needs_training``, it has parameters that are trained on each assay's standards.

    A constructor may take ``wavelengths`` (W), ``grid`` ([W], scaled to [−1, 1]), ``models`` (M), ``seed``, ``dim``
    (D), ``hidden`` and ``embedding``; each is given by name. All parameters and buffers lead with the model axis M,
    except for those that all models share.
    """

    derived = ("integral", "misfit", "potential", "tanh_units", "kernel_units", "path_independent")
    path_independent: ClassVar[bool] = False
    still_at_rest: ClassVar[bool] = True
    uses_arc_length: ClassVar[bool] = True
    several_analytes: ClassVar[bool] = False
    needs_training: ClassVar[bool] = True

    @classmethod
    def from_config(cls, config: FlowConfig, context: Mapping[str, Any]) -> Self:
        """A flow of this class with the settings of ``config``.

        Args:
            config: whose name is this class's.
            context: ``wavelengths``, ``grid``, ``models``, ``seed`` and ``dim``.

        Raises:
            InputError: an option that the class does not take, or an argument that it needs and nobody gives.
        """
        settings = {"hidden": config.hidden, "embedding": config.embedding}
        return build(FLOWS, config.name, context, settings, config.options)  # type: ignore[return-value]

    def forward(self, point: FlowPoint) -> Tensor:
        """dA/dt [M, B, W] at ``point``, differentiable to any order in the parameters and the point's tensors."""
        raise NotImplementedError

    def integral(self, path: FlowPath, nodes: int = 16) -> Tensor:
        """The change of absorbance along a closed-form path [M, B, W], by Gauss–Legendre quadrature of ``forward``.

        Args:
            path: from its start to its end.
            nodes: of the quadrature.
        """
        total = None
        for point, weights in path.points(nodes, self.uses_arc_length):
            for weight, rate in zip(weights, self(point).tensor_split(len(weights), 1), strict=True):
                total = weight * rate if total is None else total + weight * rate
        assert total is not None
        return total

    def misfit(self, path: FlowPath, change: Tensor, share: Tensor, nodes: int = 16) -> Tensor | None:
        """Σ share (integral − change)² [M] in fused form, with its gradients; None where there is none.

        Args:
            path: closed-form paths of B pairs.
            change: [M, B, W] measured change of absorbance; it gets no gradient.
            share: [M, B] weights of the pairs; they get no gradient.
            nodes: of the quadrature.
        """
        return None

    def potential(self, position: Tensor, index: Tensor | None = None) -> Tensor | None:
        """H [M, B, W], of which ``forward`` is the derivative along the path; None for flows that have none.

        Args:
            position: warp coordinates of D ≥ 2 analytes [M, B, D].
            index: [K] numbers of the wavelengths; None for all.
        """
        return None

    def tanh_units(self, index: Tensor | None = None) -> FlowCoefficients | None:
        """The flow as dŝ/dt times a sum of tanh units of ŝ (`FlowCoefficients`), for export; None for other flows.

        ``index`` [K] picks wavelengths; None takes all of them.
        """
        return None

    def kernel_units(self, index: Tensor | None = None) -> FlowUnits | str:
        """The flow as the kernels that integrate the coupled ODE hold it: tanh units of u, du/dt and λ; or why not.

        ``index`` [K] picks wavelengths; None takes all of them.
        """
        return f"{type(self).__name__} is no single layer of tanh units of position, velocity and wavelength"

    def start_from(self, points: Tensor, targets: Tensor, weight: Tensor) -> None:
        """Start near given spectra, before the training; by default nothing is done.

        Args:
            points: [M, P] warp coordinates, or [M, P, D].
            targets: [M, P, W] spectra there, in the units of the training.
            weight: [M, P] of each; zero for padding, which must not count.
        """

    def place(self, device: torch.device | str, dtype: torch.dtype) -> Self:
        """Move parameters and buffers to a ``device``, in ``dtype``."""
        return self.to(device=device, dtype=dtype)
