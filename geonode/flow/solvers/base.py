"""The contract of a solver, what it is given, and the registry of all solvers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

from torch import Tensor, nn

from geonode.construction import Recorded, build, describe
from geonode.errors import InputError
from geonode.geodesic.config import PathConfig
from geonode.registry import Registry

if TYPE_CHECKING:
    from geonode.flow.base import Flow
    from geonode.flow.path import FlowPath

SOLVERS: Registry[type[Solver]] = Registry("solver", package=__package__)


class Transport(Protocol):
    """B spectra per model to be carried along geodesics: what a coupled ODE gives a solver. Formed where asked for."""

    source: Tensor
    """Spectra at the starts."""
    flow: Flow

    def path(self) -> FlowPath:
        """The paths from closed forms."""
        ...

    def potential_change(self) -> Tensor:
        """What the flow's potential gains from the starts to the ends, shaped like the source."""
        ...

    def initial_state(self) -> Tensor:
        """The coupled state [N, S] at t = 0: position, velocity, absorbance, a row for every pair and wavelength."""
        ...

    def right_hand_side(self, by_parameters: bool) -> nn.Module:
        """``rhs(t, state)`` → dstate/dt [N, S]; ``by_parameters``: it computes everything from its parameters."""
        ...

    def fixed_steps(self, steps: int) -> Tensor | None:
        """Spectra at the ends by ``steps`` steps of classical Runge–Kutta, where they need not be taken one by one."""
        ...

    def spectra(self, state: Tensor) -> Tensor:
        """The spectra in the state at t = 1, shaped like the source; NaN where no geodesic was found."""
        ...


class Solver(Recorded):
    """Carries spectra from the starts of paths to their ends. Subclasses give `integrate`, or `transport` itself.

    What a solver needs and does is said by flags: ``closed_form`` solvers take paths and arc length from closed forms
    and never integrate the state; ``needs_potential`` ones take differences of the flow's potential; ``adaptive`` ones
    choose their steps by looking at values (no CUDA graph can record them); ``by_parameters`` ones differentiate with
    respect to the parameters of the right-hand side alone.

    The arguments of a constructor that are called like settings of `PathConfig` (``nodes``, ``ode_steps``, ``rtol``,
    ``atol``, …) come from there; others are given as its ``options``.
    """

    closed_form: ClassVar[bool] = False
    needs_potential: ClassVar[bool] = False
    adaptive: ClassVar[bool] = False
    by_parameters: ClassVar[bool] = False

    @property
    def steps_at_once(self) -> bool:
        """True where `Transport.fixed_steps` is this solver, so that its steps need not be taken one by one."""
        return False

    def transport(self, problem: Transport) -> Tensor:
        """Spectra at the ends, shaped like the problem's source."""
        rhs = problem.right_hand_side(self.by_parameters)
        return problem.spectra(self.integrate(rhs, problem.initial_state()))

    def integrate(self, rhs: nn.Module, state: Tensor) -> Tensor:
        """The state [N, S] at t = 1.

        Args:
            rhs: called as ``rhs(t, state)``, gives the derivative of the state [N, S].
            state: at t = 0.
        """
        raise NotImplementedError

    @classmethod
    def of(cls, path: PathConfig, which: Solver | str | None = None) -> Solver:
        """A solver object.

        Args:
            path: settings of paths, the solver's among them.
            which: a solver, which is given back as it is, or the name of one; None for the one that ``path`` names.

        Raises:
            InputError: an unknown name, or options that the solver does not take.
        """
        if isinstance(which, Solver):
            return which
        if which is not None and not isinstance(which, str):
            raise InputError(f"solver={which!r} must be a geonode.flow.Solver or the name of one.")
        name = which or path.solver
        general = {key: getattr(path, key) for key in PathConfig.names() if key not in ("name", "solver", "options")}
        return build(SOLVERS, name, {}, general, path.options if name == path.solver else {})

    @staticmethod
    def settings(solver: Solver | type[Solver]) -> dict[str, object]:
        """Settings of `PathConfig` that name ``solver`` and what it was made with.

        Raises:
            InputError: its class is not registered, or an argument cannot be written down as JSON.
        """
        names = {key: key for key in PathConfig.names() if key not in ("name", "solver", "options")}
        found = describe(SOLVERS, solver, names, ())
        return {"solver": found.pop("name"), **found}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self.arguments.items())})"
