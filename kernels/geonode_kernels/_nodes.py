"""Where a function of one variable is asked for when it is wanted all along a path; plain numbers, no Triton.

Γ(·, λ) is analytic, and a path covers a known range of c: its values at a few Chebyshev nodes of that range determine
it, with every derivative by the weights, to rounding. `_along` has the formulas.
"""

from __future__ import annotations

NODES = 12
PADDED = 16  # columns of a tile of nodes
# An error of ρ**−NODES: ρ is the sum of the half axes of the ellipse, about the range, in which the function is
# analytic, and ``NEEDED`` its half axis across, in half ranges.
_RHO = 10.0 ** (7.0 / NODES)
NEEDED = 0.5 * (_RHO - 1.0 / _RHO)


def nodes_for(evaluations: int) -> int:
    """How many nodes stand in for this many evaluations along a path; 0: none, for they would save too little."""
    return NODES if evaluations >= 2 * NODES else 0
