"""How far a figure may move when nothing changed, estimated from process restarts.

A figure is the median over R processes of each process's median. Its deviation between processes is badly known
from R = 3, so each case's variance is shrunk towards the typical one of the run (4 degrees of freedom, as in Smyth's
moderated t). The noise reported is the largest relative difference of two such figures to expect in 95 % of pairs of
runs whose cases scatter alike. Where ten cases scatter by 0.3 % and nine by 12 %, as graph replays and calls led by the
host do, it covers 90 % of all differences with R = 2 and 94 % with R = 3, but of the nine's 79 % and 88 %.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

PRIOR = 4.0
# two-sided 95 % points of Student's t by degrees of freedom
_T95 = {4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 12: 2.179, 15: 2.131, 20: 2.086}
_MEDIAN = 1.25  # the median of a few numbers scatters by this more than their mean


def figure(process_medians: Sequence[float]) -> float:
    """The headline: the median over processes."""
    return statistics.median(process_medians)


def relative_variance(process_medians: Sequence[float]) -> float:
    """Variance of the logarithms between processes."""
    return statistics.variance(math.log(x) for x in process_medians) if len(process_medians) > 1 else 0.0


def noise(process_medians: Sequence[Sequence[float]], resolution: float = 0.002) -> list[float | None]:
    """Relative noise of each case from its process medians; None where there was one process alone.

    ``resolution`` is the least noise claimed: clocks and events resolve no better.
    """
    several = [relative_variance(m) for m in process_medians if len(m) > 1]
    if not several:
        return [None] * len(process_medians)
    typical = max(statistics.median(several), (0.25 * resolution) ** 2)
    result: list[float | None] = []
    for medians in process_medians:
        r = len(medians)
        if r < 2:
            result.append(None)
            continue
        freedom = r - 1 + PRIOR
        variance = ((r - 1) * relative_variance(medians) + PRIOR * typical) / freedom
        spread = _t95(freedom) * _MEDIAN * math.sqrt(2.0 * variance / r)
        result.append(max(resolution, spread))
    return result


def _t95(freedom: float) -> float:
    known = [k for k in _T95 if k <= freedom]
    return _T95[max(known)] if known else _T95[4]
