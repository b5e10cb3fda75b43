"""Compare two outcomes of `ddp_run.py`: python compare_runs.py ONE TWO → JSON with the largest differences."""

from __future__ import annotations

import json
import sys

from geonode.training import SafetensorsIO

if __name__ == "__main__":
    one, two = (SafetensorsIO().load_checkpoint(path) for path in sys.argv[1:])
    losses = [abs(b[k] / a[k] - 1.0) for a, b in zip(one["history"], two["history"], strict=True) for k in a if a[k]]
    weights = [float((two["weights"][k].cpu() - v.cpu()).abs().max()) for k, v in one["weights"].items()]
    print(json.dumps({"epochs": len(one["history"]), "loss": max(losses), "weights": max(weights)}))
