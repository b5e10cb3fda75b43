"""The choice among methods by their inner scores: ties are ties, and go to the plainest.

With two training levels linear interpolation, PCHIP, the natural cubic spline and the straight line are one method, and
rounding in the sixteenth digit would name the winner. Scores that agree to rounding are therefore one score, the
plainest method of those that share it is taken, and that the choice rests on nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PLAINEST_FIRST = ("nearest", "line", "linear", "quadratic", "isotherm", "pchip", "cubic", "gp")
NEURAL = ("untrained", "pretrained", "node")
"""They come last; methods that others registered stand before them."""
SAME_SCORE = 1e-9
"""Scores that differ by less than this fraction of the smaller one, and …"""
ROUNDING = 1e-12
"""… this fraction of the largest signal, are one score."""


@dataclass(frozen=True)
class Choice:
    """What inner validation chose.

    Attributes:
        name: the method, None where no method has a score.
        alike: all methods with the same best score, plainest first; the choice rests on the data where it is the only.
    """

    name: str | None
    alike: tuple[str, ...] = ()

    @property
    def rests_on_nothing(self) -> bool:
        """Whether other methods have the very same score."""
        return len(self.alike) > 1

    def sentence(self) -> str:
        """What must be said of the choice; empty where it rests on the scores."""
        if not self.rests_on_nothing:
            return ""
        return (
            f"the choice rests on nothing: {len(self.alike)} methods are alike here ({', '.join(self.alike)}), and the "
            "plainest of them was taken"
        )


def choose(scores: Mapping[str, float | None], signal: float) -> Choice:
    """The method of the smallest score; of several with the same one the plainest.

    Args:
        scores: by method, None where a method has none.
        signal: largest absolute value of the spectra, in the unit of the scores.
    """
    usable = {name: score for name, score in scores.items() if score is not None}
    if not usable:
        return Choice(None)
    best = min(usable.values())
    limit = best + SAME_SCORE * best + ROUNDING * signal
    alike = sorted((name for name, score in usable.items() if score <= limit), key=_rank)
    return Choice(alike[0], tuple(alike))


def _rank(name: str) -> int:
    order = (*PLAINEST_FIRST, "", *NEURAL)
    return order.index(name) if name in order else len(PLAINEST_FIRST)
