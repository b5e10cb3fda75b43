"""The pre-trained flow fine-tuned to an instrument's own earlier calibrations, and whether that helped.

    import geonode

    adapted = geonode.adapt(["monday.csv", "tuesday.csv", "friday.csv"])
    print(adapted.judgement.table())
    model = geonode.fit("today.csv", weights=adapted.save("ours.safetensors"))

Low-rank corrections of the network's last block and of its heads are trained by the loss of pre-training, on levels
left out of each calibration; calibrations that are left out as a whole judge. The names load on first use (PEP 562).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from geonode._bootstrap import lazily

# Public name → the module that defines it.
_PUBLIC = {
    "AdaptSettings": ".tuning",
    "Adapted": ".adapted",
    "Judgement": ".judgement",
    "LeftOut": ".judgement",
    "LowRank": ".lowrank",
    "Series": ".series",
    "adapt": ".adapted",
    "adapters": ".lowrank",
    "gather_series": ".series",
    "judge": ".judgement",
    "merged": ".lowrank",
    "tune": ".tuning",
    "with_adapters": ".lowrank",
}

if TYPE_CHECKING:
    from geonode.adaptation.adapted import Adapted, adapt
    from geonode.adaptation.judgement import Judgement, LeftOut, judge
    from geonode.adaptation.lowrank import LowRank, adapters, merged, with_adapters
    from geonode.adaptation.series import Series, gather_series
    from geonode.adaptation.tuning import AdaptSettings, tune

__all__ = [
    "AdaptSettings",
    "Adapted",
    "Judgement",
    "LeftOut",
    "LowRank",
    "Series",
    "adapt",
    "adapters",
    "gather_series",
    "judge",
    "merged",
    "tune",
    "with_adapters",
]


__getattr__, __dir__ = lazily(__name__, _PUBLIC)
