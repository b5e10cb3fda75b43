"""Block sizes: one fixed table.

Sums are reduced in an order that depends on the block sizes, so that a search for them would cost equal bits.
"""

from typing import Any

# op → launch options. Measured on an H100; right everywhere, fast there.
TABLE: dict[str, dict[str, Any]] = {
    "metric_forward": {"BLOCK": 64, "num_warps": 4, "per_sm": 4},
    "metric_backward": {"BLOCK": 32, "num_warps": 4, "per_sm": 2},
    "rk4_forward": {"BLOCK": 64, "num_warps": 4, "maxnreg": None},
    "rk4_reverse": {"num_warps": 1},
    "shoot": {"BLOCK": 64, "num_warps": 4},
    "coupled_forward": {"BLOCK": 128},
    "coupled_backward": {"BLOCK": 128, "per_program": 2},
    "flow_forward": {"BLOCK": 32, "num_warps": 4},
    "flow_backward": {"BLOCK": 8, "num_warps": 4, "per_program": 512},
    "velocity_loss": {"BLOCK": 8, "num_warps": 2, "per_program": 512},
    "path_points": {"BLOCK": 32, "num_warps": 4},
    "path_points_backward": {"BLOCK": 32, "num_warps": 1},
    "arc_length": {"BLOCK_P": 32, "BLOCK_W": 64, "num_warps": 4},
    "adamw": {"BLOCK": 2048, "num_warps": 16},
    "elementwise": {"BLOCK": 1024, "num_warps": 4},
}


def options(op: str) -> dict[str, Any]:
    """Launch options of one op; entries of None are left to the compiler."""
    return {k: v for k, v in TABLE[op].items() if v is not None}
