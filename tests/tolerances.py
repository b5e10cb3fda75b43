"""The one table of numerical tolerances, by dtype and by what is compared.

``value``: the same arithmetic in another order or on another device. ``gradient``: derivatives, one order looser.
``solver``: results of a discretised path compared with a closed form or with another discretisation; the step count,
not the dtype, usually sets the error there.

Use as ``torch.testing.assert_close(actual, expected, **tolerance(torch.float32, "gradient"))``.
"""

from __future__ import annotations

import torch

TOLERANCES: dict[torch.dtype, dict[str, dict[str, float]]] = {
    torch.float64: {
        "value": {"rtol": 1e-12, "atol": 1e-13},
        "gradient": {"rtol": 1e-10, "atol": 1e-11},
        "solver": {"rtol": 1e-8, "atol": 1e-9},
    },
    torch.float32: {
        "value": {"rtol": 1e-5, "atol": 1e-6},
        "gradient": {"rtol": 1e-4, "atol": 1e-5},
        "solver": {"rtol": 1e-4, "atol": 1e-5},
    },
    torch.bfloat16: {
        "value": {"rtol": 1.6e-2, "atol": 1e-2},
        "gradient": {"rtol": 3e-2, "atol": 2e-2},
        "solver": {"rtol": 3e-2, "atol": 2e-2},
    },
}


def tolerance(dtype: torch.dtype, kind: str = "value") -> dict[str, float]:
    """``{"rtol": …, "atol": …}`` for a dtype and a kind of comparison (value, gradient, solver)."""
    return dict(TOLERANCES[dtype][kind])
