"""The answer for one unknown: see :mod:`geonode_runtime.verdicts`, where verdicts are made and said."""

from geonode_runtime.verdicts import (
    AMBIGUOUS_SHARE,
    FEWEST_CHECKED,
    MEANING,
    UNDETERMINED,
    VERDICT_LEVEL,
    VERDICTS,
    Quantification,
    VerdictRules,
    scale_component,
    verdict,
)

__all__ = [
    "AMBIGUOUS_SHARE",
    "FEWEST_CHECKED",
    "MEANING",
    "UNDETERMINED",
    "VERDICTS",
    "VERDICT_LEVEL",
    "Quantification",
    "VerdictRules",
    "scale_component",
    "verdict",
]
