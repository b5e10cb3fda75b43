"""Whether adapting helped: series are left out as a whole, and predicted by weights that never saw them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.special import stdtr, stdtrit

from geonode.adaptation.series import Series
from geonode.adaptation.tuning import AdaptSettings, tune
from geonode.calibration.gp.geodesic_gp import GeodesicGP
from geonode.prior.flow import AssayFlow
from geonode.prior.network import Network

MOST_FOLDS = 6
"""Up to so many series each is left out by itself, more are left out in so many groups."""
BAND = 0.8
_WORTH = 0.99
_BAND_ERROR = 0.15
_ONE_ERROR = float(stdtr(1e6, 1.0))  # what lies below one standard error of a normal distribution: 84 %


@dataclass(frozen=True)
class LeftOut:
    """One series as weights predicted it that were adapted to others.

    Attributes:
        name: of the series. seen: names of the series that these weights were adapted to.
        levels: how many levels were left out of it, one at a time.
        before, after: root mean square error of a left-out level's spectrum, units of the signal, geometric mean over
            levels; by the weights as they were and as they were adapted.
        coverage_before, coverage_after: share of left-out measured values inside the 80 % bands.
    """

    name: str
    seen: tuple[str, ...]
    levels: int
    before: float
    after: float
    coverage_before: float
    coverage_after: float

    @property
    def ratio(self) -> float:
        """Error after ÷ error before."""
        return self.after / self.before


@dataclass(frozen=True)
class Judgement:
    """What adapting does on series that it has not seen.

    Attributes:
        rows: one a series, in the order given.
    """

    rows: tuple[LeftOut, ...]

    @property
    def ratio(self) -> float:
        """Geometric mean over the series of error after ÷ error before: below 1, adapting helps."""
        return math.exp(float(np.mean(self._logs)))

    @property
    def factor(self) -> float:
        """The factor that is one standard error of `ratio`."""
        return math.exp(float(np.std(self._logs, ddof=1)) / math.sqrt(len(self.rows)))

    @property
    def fell(self) -> bool:
        """Whether the error fell by 1 % and by one standard error, wider with few series as Student's t is."""
        wide = float(stdtrit(len(self.rows) - 1, _ONE_ERROR))
        return self.ratio < _WORTH and self.ratio * self.factor**wide < 1.0

    @property
    def bands_hold(self) -> bool:
        """Whether the bands hold what they should to 15 points, or are no further from it than before."""
        before, after = self.coverage
        return abs(after - BAND) <= max(abs(before - BAND), _BAND_ERROR)

    @property
    def helped(self) -> bool:
        """Whether the error fell and the bands still hold."""
        return self.fell and self.bands_hold

    @property
    def better(self) -> int:
        """In how many series the error fell."""
        return sum(row.ratio < 1.0 for row in self.rows)

    @property
    def coverage(self) -> tuple[float, float]:
        """Share of left-out measured values inside the 80 % bands, before and after, every series counting alike."""
        pairs = [(row.coverage_before, row.coverage_after) for row in self.rows]
        before, after = np.mean(pairs, axis=0).tolist()
        return before, after

    def sentence(self) -> str:
        """In one line."""
        before, after = self.coverage
        verdict = "adapting helped" if self.helped else "adapting did not help"
        return (
            f"{verdict}: on series left out the error is {self.ratio:.2f} of what it was (one standard error: × "
            f"{self.factor:.2f}; lower in {self.better} of {len(self.rows)}), and {BAND:.0%} bands hold {after:.0%} of "
            f"what was measured there, before {before:.0%}"
        )

    def table(self) -> str:
        """A line a series: its levels, error before and after, their ratio, and coverage before and after."""
        width = max(len("left out"), *(len(row.name) for row in self.rows))
        lines = [f"{'left out':<{width}}  levels  error before      after  ratio  in bands before  after"]
        lines += [
            f"{row.name:<{width}}  {row.levels:>6}  {row.before:>12.4g}  {row.after:>9.4g}  {row.ratio:>5.2f}"
            f"  {row.coverage_before:>15.0%}  {row.coverage_after:>5.0%}"
            for row in self.rows
        ]
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """For a model card."""
        before, after = self.coverage
        return {
            "helped": self.helped,
            "error after ÷ before": self.ratio,
            "factor of one standard error": self.factor,
            "coverage of 80 % bands before": before,
            "coverage of 80 % bands after": after,
            "series left out": [asdict(row) | {"ratio": row.ratio} for row in self.rows],
        }

    @property
    def _logs(self) -> list[float]:
        return [math.log(row.ratio) for row in self.rows]


def judge(
    network: Network,
    series: Sequence[Series],
    settings: AdaptSettings | None = None,
    device: torch.device | str = "cpu",
    progress: Callable[[str, int, int], None] | None = None,
) -> Judgement:
    """Leave series out in turn, adapt to the others, and predict each left-out series one level at a time.

    Args:
        network: the weights to begin with.
        series: two or more.
        settings, device: of `geonode.adaptation.tune`.
        progress: called as ``progress(what, done, total)``.
    """
    rows: dict[int, LeftOut] = {}
    folds = [list(fold) for fold in np.array_split(np.arange(len(series)), min(len(series), MOST_FOLDS))]
    for fold in folds:
        others = [one for position, one in enumerate(series) if position not in fold]
        what = f"without {', '.join(series[i].name for i in fold)}"
        report = None if progress is None else partial(progress, what)
        adapted = tune(network, others, settings, device, report).network
        for i in fold:
            rows[int(i)] = compare(network, adapted, series[i], [one.name for one in others])
    return Judgement(tuple(rows[i] for i in range(len(series))))


def compare(network: Network, adapted: Network, one: Series, seen: Sequence[str]) -> LeftOut:
    """How two networks predict the levels left out of ``one`` series, as a fit on the other levels would.

    Args:
        network, adapted: before and after. seen: names of the series that ``adapted`` was adapted to.
    """
    errors, inside = np.empty((2, len(one.left_out))), np.empty((2, len(one.left_out)))
    floor = 1e-9 * float(np.ptp(one.means))  # exact data would have no logarithm
    for column, (level, variance) in enumerate(zip(one.left_out, one.variances, strict=True)):
        kept, measured = one.kept(int(level)), one.means[level]
        gp = GeodesicGP().fit_levels(one.levels[kept], one.means[kept])
        for row, weights in enumerate((network, adapted)):
            flow = AssayFlow(weights, one.levels[kept], one.means[kept], variance, gp=gp)
            found = flow.predict(one.levels[[level]])
            low, high = found.interval(BAND)
            errors[row, column] = float(np.sqrt(np.mean((found.mean[0] - measured) ** 2)))
            inside[row, column] = float(np.mean((low[0] <= measured) & (measured <= high[0])))
    before, after = np.exp(np.log(errors + floor).mean(1)).tolist()
    covered = inside.mean(1).tolist()
    return LeftOut(one.name, tuple(seen), len(one.left_out), before, after, *covered)
