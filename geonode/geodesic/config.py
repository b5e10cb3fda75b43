"""`PathConfig`: how geodesics are found, and how the coupled state is integrated along them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from geonode.christoffel import RULES
from geonode.settings import Settings, check_choice, options_field, setting

PATHS = ("arc_length", "shooting")


@dataclass(frozen=True)
class PathConfig(Settings):
    """Settings of paths.

    Args:
        name: ``arc_length`` (closed form) or ``shooting`` (boundary-value problems by Newton's method).
        solver: a registered solver of the coupled ODE (`geonode.flow.SOLVERS`).
        christoffel: a rule of `geonode.christoffel` by name: what shooting and the integrators take Γ from.
        newton_steps: of shooting.
        ode_steps: of rk4 and of shooting; the most that dopri5 and adjoint take.
        nodes: Gauss–Legendre nodes of the closed form, for explicit pairs.
        interval_nodes: the same for each interval between adjacent points, where every pair is a difference of
            potentials.
        rtol, atol: tolerances of the adaptive integrators.
        options: further arguments of the solver's class, by name.

    Raises:
        InputError: an unknown path or rule, or a value of another kind or out of range. Solvers are checked by who has
            them: `geonode.GeodesicConfig` and `geonode.CoupledSpectralODE`.
    """

    component: ClassVar[str] = "path"

    name: str = setting("arc_length", choices=PATHS)
    solver: str = "quadrature"
    christoffel: str = "exact"
    newton_steps: int = setting(10, minimum=1)
    ode_steps: int = setting(20, minimum=1)
    nodes: int = setting(16, minimum=1)
    interval_nodes: int = setting(4, minimum=1)
    rtol: float = setting(1e-5, minimum=0.0)
    atol: float = setting(1e-7, minimum=0.0)
    options: Mapping[str, Any] = options_field()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("christoffel", self.christoffel, tuple(RULES))
