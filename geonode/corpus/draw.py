"""`draw`: simulated calibrations, made on the device, a function of (seed, step)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch

from geonode.corpus import measure, stages
from geonode.corpus.assays import Assays
from geonode.corpus.kinds import CHEMISTRY
from geonode.corpus.lab import Counts
from geonode.corpus.numbers import Source, key
from geonode.corpus.stages import FAMILIES
from geonode.errors import InputError

# levels of a calibration, and how common they are
LEVELS = {
    3: 0.05,
    4: 0.12,
    5: 0.18,
    6: 0.19,
    7: 0.09,
    8: 0.12,
    9: 0.06,
    10: 0.06,
    12: 0.05,
    16: 0.04,
    20: 0.02,
    24: 0.02,
}
CARE = (1.0, 0.9)  # careful and careless laboratories: median and spread of the factor on sizes of errors
REPLICATES = {1: 0.50, 2: 0.14, 3: 0.22, 4: 0.05, 5: 0.04, 6: 0.02, 8: 0.03}  # most of a draw, and its share


def draw(
    batch: int,
    levels: int,
    wavelengths: int,
    queries: int = 4,
    unknowns: int = 0,
    *,
    seed: int,
    step: int | torch.Tensor = 0,
    device: torch.device | str = "cpu",
    families: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    replicates: bool | int = True,
    care: tuple[float, float] = CARE,
    departures: float = 0.0,
    dtype: torch.dtype = torch.float32,
) -> Assays:
    """Draw simulated assays.

    The same arguments give the same assays, on any device to rounding. Families are shared out in their proportions
    within the batch, rows in random order; nothing waits for the device.

    Args:
        batch: assays B, at least 1.
        levels: standards' concentrations n of each, 3 to 50.
        wavelengths: W, at least 8.
        queries: held-out concentrations Q of each, 0 or more.
        unknowns: unknowns U of each, 0 or more.
        seed, step: integers that the draw is a function of; a training counts the steps. A step that is an int64 tensor
            [] on the device gives a draw that can be captured in a CUDA graph.
        device: where all of it is made.
        families: chemistry to draw from; None: all of `FAMILIES`.
        exclude: families left out, to validate on.
        replicates: True: 1 to 8, as common; False: one; a number: that many in most assays.
        care: median and logarithmic standard deviation of the laboratories' factor on all sizes of errors.
        departures: share of the assays that depart from the law of their chemistry (`geonode.corpus.departures`).
        dtype: of the tensors given back, float32 or float64; the simulation itself is float32 with a float64
            chemistry.

    Raises:
        InputError: a count, ``care`` or ``departures`` out of range, an unknown family, or no family left.
    """
    chosen = choose_families(families, exclude)
    for name, value, low, high in (
        ("batch", batch, 1, 1 << 24),
        ("levels", levels, 3, 50),
        ("wavelengths", wavelengths, 8, 100_000),
        ("queries", queries, 0, 10_000),
        ("unknowns", unknowns, 0, 10_000),
    ):
        if not low <= value <= high:
            raise InputError(f"{name}={value} cannot be drawn; choose from {low} to {high}.")
    check_care(care)
    check_departures(departures)
    source = Source(seed, step, batch, torch.device(device))
    counts = Counts(batch, levels, _repeats(source, replicates), queries, unknowns, wavelengths)
    lab, blocks = stages.plan(source, counts, chosen, care)
    prepared = stages.prepare(lab)
    c = torch.cat([lab.levels, lab.queries, prepared], 1)
    amounts = stages.react(lab, blocks, chosen, c, departures)
    density, spectrum, rows, ends = stages.absorb(lab, blocks, chosen, amounts)
    lab, prepared, c = lab.reorder(rows), prepared[rows], c[rows]
    density = stages.add_matrix(lab, density * stages.dilution(lab, c))
    density[:, levels + queries :] *= stages.path(lab)
    # a pH or a potential neither quenches nor absorbs: the same amount of everything at every place of such an axis
    relative = torch.where(lab.amount, c, 0.5).float()
    signal, detection, unit, rows = stages.detect(lab, density, relative, ends)
    shuffle = source.permutation(batch)
    rows = rows[shuffle]
    return measure.assays(
        lab.reorder(rows), signal[shuffle], prepared[rows], unit[shuffle], spectrum[rows], detection[shuffle], dtype
    )


def check_care(care: tuple[float, float]) -> None:
    """Refuse what is no median and spread of a factor.

    Raises:
        InputError: not above zero, or not finite.
    """
    if not (min(care) > 0.0 and math.isfinite(sum(care))):
        raise InputError(f"care must be a median and a spread above zero, but {care} was given.")


def check_departures(share: float) -> None:
    """Refuse what is no share.

    Raises:
        InputError: below 0 or above 1.
    """
    if not 0.0 <= share <= 1.0:
        raise InputError(f"departures is a share of the assays, 0 to 1, but {share} was given.")


def choose_families(families: Sequence[str] | None, exclude: Sequence[str]) -> list[str]:
    """Names of the families to draw from, in the order of `FAMILIES`.

    Raises:
        InputError: an unknown name, or none left.
    """
    for argument, names in (("families", families or ()), ("exclude", exclude)):
        for name in names:
            CHEMISTRY.check(name, argument)
    wanted = FAMILIES if families is None else families
    chosen = [name for name in FAMILIES if name in wanted and name not in exclude]
    if not chosen:
        raise InputError("No family of chemistry is left to draw from; name more in families or fewer in exclude.")
    return chosen


def _repeats(source: Source, replicates: bool | int) -> int:
    """Most replicates of this draw."""
    offset = source.host()
    if replicates is False:
        return 1
    if replicates is not True:
        if replicates < 1:
            raise InputError(f"replicates={replicates} cannot be drawn; choose 1 or more, True or False.")
        return replicates
    return _pick(REPLICATES, offset)


def _pick(shares: dict[int, float], fraction: float) -> int:
    edges = list(itertools.accumulate(shares.values()))
    return next(number for number, edge in zip(shares, edges, strict=True) if fraction * edges[-1] < edge)


def common_levels(seed: int, step: int) -> int:
    """A number of levels as calibrations have them, 3 to 24, a function of (seed, step)."""
    return _pick(LEVELS, Source(key(seed, len(LEVELS)), step, 0, torch.device("cpu")).host())
