"""The stages of a draw: samples and their nominal concentrations, chemistry, spectra, detection.

Every stage shares the batch out among its kinds in blocks of rows (`blocks`) and leaves its rows in that order; the
next one takes them in a random order, so that kinds of different stages meet by chance alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from geonode.corpus.blocks import by_block, consecutive, in_blocks, inverse, labels, sizes
from geonode.corpus.departures import depart
from geonode.corpus.kinds import CHEMISTRY, DESIGNS, DETECTION, ERRORS, SPECIES, SPECTRA, Axis, Design
from geonode.corpus.lab import Counts, Lab
from geonode.corpus.numbers import Numbers, Source, constant
from geonode.corpus.spectra.bands import profile
from geonode.corpus.unknowns import draw_kinds, is_rough

FAMILIES = tuple(sorted(CHEMISTRY.names()))
SPECTRUM_KINDS = tuple(sorted(SPECTRA.names()))
DETECTIONS = tuple(sorted(DETECTION.names()))
DESIGN_NAMES = tuple(sorted(DESIGNS.names()))
ERROR_NAMES = tuple(sorted(ERRORS.names()))

_EMISSION = 0.45  # of the assays whose spectrum may be a fluorophore's
_COLUMNS = 256  # random numbers of an assay in each stage; a kind that takes more gets an error


def plan(source: Source, counts: Counts, families: Sequence[str], care: tuple[float, float]) -> tuple[Lab, list[slice]]:
    """Samples and nominal concentrations; rows are in blocks, one for each of ``families``; ``care`` as in `draw`."""
    kinds = [CHEMISTRY[name] for name in families]
    blocks = consecutive(sizes(counts.assays, [kind.share for kind in kinds], source.host()))
    numbers = source.table(64, torch.float64)
    place, design, serial = _places(source, counts, kinds, blocks)

    def axis(i: int, rows: slice) -> Tensor:
        mine, window = numbers[rows], kinds[i].window
        if window is None:
            low = place[rows, :1]
            return torch.cat([low, torch.ones_like(low), torch.ones_like(low), torch.zeros_like(low)], 1)
        lowest, highest, narrow, wide, step = window
        wide = min(wide, highest - lowest, step * (counts.levels - 1))
        span = mine.log_uniform(min(narrow, 0.7 * wide), wide)
        low = lowest + (highest - lowest - span) * mine.uniform(0.0, 1.0)
        return torch.cat([low, low + span, torch.zeros_like(low), mine.log_uniform(*kinds[i].error)], 1)

    low, high, amount, setting = by_block(blocks, axis).split(1, 1)
    amount = amount > 0.5
    levels = torch.where(amount, place, low + (high - low) * place)
    wavelength = torch.arange(counts.wavelengths, dtype=torch.float32, device=source.device)
    wavelength = (wavelength + 0.5) / counts.wavelengths
    numbers = source.table(16 + 8 * counts.queries + 12 * counts.unknowns, torch.float64)
    queries = _elsewhere(numbers, levels, low, high, amount, counts.queries, beyond=0.15)
    unknowns = _elsewhere(numbers, levels, low, high, amount, counts.unknowns, beyond=0.25)
    kind = draw_kinds(numbers, counts.unknowns)
    family = labels(blocks, [FAMILIES.index(name) for name in families], source.device)
    rough = torch.ones(counts.assays, counts.standards + counts.queries, dtype=torch.float32, device=source.device)
    repeats = numbers.choice((0.6, 0.1, 0.25, 0.0, 0.05), counts.unknowns) + 1
    more = torch.where(is_rough(kind), numbers.log_uniform(3, 10, counts.unknowns), 1.0) / repeats.sqrt()
    rough = torch.cat([rough, more.float()], 1)
    numbers = source.table(16)
    lab = Lab(
        source,
        counts,
        wavelength,
        family,
        design,
        low,
        high,
        amount,
        setting,
        serial,
        levels,
        queries,
        unknowns,
        kind,
        repeats,
        shared=numbers.chance(0.5),
        care=numbers.log_normal(*care),
        rough=rough,
        order=rough,
    )
    return _ordered(lab), blocks


def _places(source: Source, counts: Counts, kinds: Sequence, blocks: Sequence[slice]) -> tuple[Tensor, Tensor, Tensor]:
    """Where levels lie [B, n] (0 to 1), the design's index [B], and whether it is serial [B, 1]."""
    designs: list[type[Design]] = [DESIGNS[name] for name in DESIGN_NAMES]
    parts = []
    for spanning in (False, True):  # amounts take any design, other axes those that span them
        rows = torch.cat(
            [
                torch.arange(block.start, block.stop, device=source.device)
                for kind, block in zip(kinds, blocks, strict=True)
                if (kind.window is not None) == spanning
            ]
            or [torch.zeros(0, dtype=torch.int64, device=source.device)]
        )
        if not len(rows):
            continue
        shares = [design.share * (design.spans or not spanning) for design in designs]
        shared, order = in_blocks(source, len(rows), shares)
        numbers = source.table(counts.levels + 8, torch.float64)
        place = by_block(shared, lambda i, block, numbers=numbers: designs[i]().levels(numbers[block], counts.levels))
        name = labels(shared, list(range(len(designs))), source.device)
        parts.append((rows[order], place, name))
    back = inverse(torch.cat([rows for rows, _, _ in parts]))
    place, design = torch.cat([p for _, p, _ in parts])[back], torch.cat([name for _, _, name in parts])[back]
    serial = torch.zeros_like(design, dtype=torch.bool)
    for i, kind in enumerate(designs):
        if kind.serial:
            serial = serial | (design == i)
    return place, design, serial[:, None]


def _elsewhere(numbers, levels: Tensor, low: Tensor, high: Tensor, amount: Tensor, count: int, beyond: float) -> Tensor:
    """Concentrations [B, count] anywhere in the range, some beyond its ends.

    A third even along the axis, a third between two random neighbours, a sixth even in the logarithm (where the axis is
    an amount), and the rest beyond: up to 1.4 times the range above its low end, or down to zero.
    """
    n = levels.shape[1]
    width = high - low
    even = low + width * numbers.uniform(0.0, 1.0, count)
    gap = (numbers.uniform(0.0, 1.0, count) * (n - 1)).long().clamp(0, n - 2)
    left, right = levels.gather(1, gap), levels.gather(1, gap + 1)
    between = left + (right - left) * numbers.uniform(0.0, 1.0, count)
    first = levels[:, 1:2]  # the lowest may be zero
    fraction = numbers.uniform(0.0, 1.0, count)
    logarithmic = torch.exp(torch.log(first * 0.3) * (1.0 - fraction) + torch.log(high) * fraction)
    below = low - width * 0.2 * numbers.uniform(0.0, 1.0, count)
    below = torch.where(amount, below.clamp_min(0.0), below)
    above = high + width * 0.4 * numbers.uniform(0.0, 1.0, count)
    kind = numbers.choice((0.36, 0.36, 0.28 - beyond, 0.4 * beyond, 0.6 * beyond), count)
    middle = torch.where(kind == 0, even, between)
    middle = torch.where((kind == 2) & amount, logarithmic, middle)
    return torch.where(kind == 3, below, torch.where(kind == 4, above, middle))


def _ordered(lab: Lab) -> Lab:
    """The order of measurement: ascending in two of three assays, descending in some, else random; unknowns at last."""
    counts, numbers = lab.counts, lab.numbers(4)
    step = torch.arange(counts.levels, device=lab.low.device, dtype=torch.float32) / max(1, counts.levels - 1)
    standards = lab.of_levels(step.expand(counts.assays, -1))
    queries = (lab.queries[..., None] > lab.levels[:, None]).sum(-1).float() / counts.levels
    unknowns = 1.0 + 0.3 * lab.source.uniform(counts.unknowns)
    known = torch.cat([standards, queries], 1)
    kind = numbers.choice((0.65, 0.1, 0.25))
    random = lab.source.uniform(*known.shape[1:])
    known = torch.where(kind == 0, known, torch.where(kind == 1, 1.0 - known, random))
    return replace(lab, order=torch.cat([known, unknowns], 1))


def prepare(lab: Lab) -> Tensor:
    """True concentrations of the measured samples [B, M], float64, after all errors of preparation."""
    c = lab.nominal()
    for name in ERROR_NAMES:
        changed = ERRORS[name]().concentration(lab, c)
        c = c if changed is None else changed
    return c


def react(lab: Lab, blocks: Sequence[slice], families: Sequence[str], c: Tensor, departures: float) -> Tensor:
    """Amounts of species [B, S, `SPECIES`], float32, of samples with true concentrations c [B, S].

    The last of them are the measured samples; ``departures`` as in `draw`.
    """
    numbers, extra, whole = lab.source.table(64, torch.float64), lab.source.table(2, torch.float64), lab.axis
    able = constant(tuple(not CHEMISTRY[name].fixed for name in FAMILIES), torch.bool, c.device)[lab.family][:, None]
    # without departures no random number is taken for them: such a draw is what it was before there were any
    apart = depart(lab, c, departures, able) if departures else None

    def amounts(i: int, rows: slice) -> Tensor:
        axis, kind = Axis(*(part[rows] for part in whole)), CHEMISTRY[families[i]]()
        acting = c[rows] if apart is None else apart.concentration[rows]
        found = kind.amounts(numbers[rows], acting, axis)
        added = reagent(extra[rows], c[rows]) if kind.window is None else None
        if apart is not None:
            found, further = found * apart.factor[rows, :, : found.shape[-1]], apart.further[rows]
            added = further if added is None else torch.where(further > 0.0, further, added)
        if added is not None and found.shape[-1] < SPECIES:
            found = torch.cat([found, added], -1)
        return torch.nn.functional.pad(found, (0, SPECIES - found.shape[-1])).float()

    return by_block(blocks, amounts)


def reagent(numbers: Numbers, c: Tensor) -> Tensor:
    """A species [b, S, 1] that what is added brings along, in proportion: salt, buffer, excess dye, in one of six."""
    return (numbers.uniform(0.0, 1.0) * numbers.chance(1 / 6) * c)[..., None]


def absorb(
    lab: Lab, blocks: Sequence[slice], families: Sequence[str], amounts: Tensor
) -> tuple[Tensor, Tensor, Tensor, tuple[int, int]]:
    """Optical density [B, S, W], its kind [B] and the row of the batch it belongs to [B]; emitters first, signed last.

    Returns also how many rows may be a fluorophore's, and how many are not signed.
    """
    source, device = lab.source, lab.source.device
    kinds = [SPECTRA[name] for name in SPECTRUM_KINDS]
    rows: dict[str, list[Tensor]] = {name: [] for name in SPECTRUM_KINDS}
    free: dict[bool, list[Tensor]] = {False: [], True: []}
    for family, block in zip(families, blocks, strict=True):
        own, chemistry = torch.arange(block.start, block.stop, device=device), CHEMISTRY[family]
        (free[chemistry.fixed] if chemistry.spectra is None else rows[chemistry.spectra]).append(own)
    for fixed, own in free.items():
        if not own:
            continue
        together = torch.cat(own)
        shared, order = in_blocks(source, len(together), [kind.share * (not (fixed and kind.moves)) for kind in kinds])
        for name, block in zip(SPECTRUM_KINDS, shared, strict=True):
            rows[name].append(together[order[block]])
    order = sorted(range(len(kinds)), key=lambda i: kinds[i].signed - kinds[i].emits)
    none = torch.zeros(0, dtype=torch.int64, device=device)
    parts = [torch.cat(rows[SPECTRUM_KINDS[i]] or [none]) for i in order]
    taken = consecutive([len(part) for part in parts])
    where = torch.cat(parts)
    numbers, amounts = source.table(_COLUMNS), amounts[where]
    density = by_block(
        taken, lambda i, block: kinds[order[i]]().density(numbers[block], lab.wavelength, amounts[block])
    )
    emitting = sum(len(part) for i, part in zip(order, parts, strict=True) if kinds[i].emits)
    unsigned = sum(len(part) for i, part in zip(order, parts, strict=True) if not kinds[i].signed)
    return density, labels(taken, order, device), where, (emitting, unsigned)


def dilution(lab: Lab, c: Tensor) -> Tensor:
    """What is left [B, S, 1] of all that absorbs in a cuvette to which a stock is added: 1/(1 + d c), in one titration
    of six.

    d, the volume added at the highest level over that at the start, is 0.01 to 0.5. Standards on a straight line are
    made apart, and other axes than amounts are not added to.

    Args:
        lab: rows in the order of c.
        c: concentrations relative to the highest level [B, S].
    """
    titrated = constant(tuple(float(not CHEMISTRY[name].fixed) for name in FAMILIES), torch.float32, c.device)
    numbers = lab.numbers(2)
    added = numbers.log_uniform(0.01, 0.5) * numbers.chance(1 / 6) * lab.amount * titrated[lab.family][:, None]
    return (1.0 / (1.0 + added * c.clamp_min(0.0).float()))[..., None]


def add_matrix(lab: Lab, density: Tensor) -> Tensor:
    """Density with the matrix's own (solvent, buffer, cuvette), largest 1 over the standards; rows in lab's order.

    Half of the assays have none, being measured against a blank; else it is 0.02 to 3 of the largest change.
    """
    n, numbers = lab.counts.levels, lab.numbers(24)
    largest = density[:, :n].abs().amax((1, 2), keepdim=True).clamp_min(1e-12)
    x = lab.wavelength
    tail = ((numbers.uniform(-0.1, 0.5, 1, 1) - x) / numbers.log_uniform(0.02, 0.3, 1, 1)).exp().clamp_max(50.0)
    tail = 3.0 * (1.0 - torch.exp(-tail / 3.0))  # levels off, as no detector shows more
    nothing = torch.zeros_like(tail[..., :1])
    hump = profile(x, numbers.uniform(0.0, 1.0, 1, 1), numbers.log_uniform(0.05, 0.6, 1, 1), nothing, nothing)
    matrix = numbers.uniform(0.0, 1.0, 1, 1) * tail / 3.0 + numbers.uniform(0.0, 1.0, 1, 1) * hump
    matrix = matrix + numbers.uniform(0.0, 0.5, 1, 1)
    size = numbers.log_uniform(0.02, 3.0, 1, 1) * numbers.chance(0.5, 1, 1)
    density = density / largest + size * matrix / matrix.amax(-1, keepdim=True).clamp_min(1e-12)
    return density / density[:, :n].abs().amax((1, 2), keepdim=True).clamp_min(1e-12)


def detect(lab: Lab, density: Tensor, relative: Tensor, ends: tuple[int, int]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Signal [B, S, W], its kind [B], its arbitrary unit [B] and the row it belongs to [B].

    Args:
        lab: rows in the order of density.
        density: [B, S, W], largest 1 over the standards.
        relative: concentration relative to the highest level [B, S], constant where the axis is no amount.
        ends: rows before the first may be a fluorophore's, rows from the second on are signed.
    """
    source, kinds = lab.source, [DETECTION[name] for name in DETECTIONS]
    emission, absorption = (sum(kind.share for kind in kinds if kind.emission == emits) for emits in (True, False))
    groups = (
        (0, ends[0], [k.share * (_EMISSION / emission if k.emission else (1 - _EMISSION) / absorption) for k in kinds]),
        (ends[0], ends[1], [k.share * (not k.emission) for k in kinds]),
        (ends[1], lab.counts.assays, [k.share * k.signed for k in kinds]),
    )
    parts: list[list[Tensor]] = [[] for _ in kinds]
    for start, stop, shares in groups:
        if start == stop:
            continue
        shared, order = in_blocks(source, stop - start, shares)
        for part, block in zip(parts, shared, strict=True):
            part.append(order[block] + start)
    where = torch.cat([rows for part in parts for rows in part])
    taken = consecutive([sum(len(rows) for rows in part) for part in parts])
    numbers, density, relative = source.table(64), density[where], relative[where]
    signal = by_block(
        taken,
        lambda i, block: kinds[i]().detect(numbers[block], density[block], relative[block], lab.wavelength),
    )
    numbers = source.table(2)
    unit = by_block(taken, lambda i, block: numbers[block].log_uniform(*kinds[i].unit)[:, 0])
    return signal, labels(taken, list(range(len(kinds))), source.device), unit, where


def path(lab: Lab) -> Tensor:
    """Factor of the optical path of each measured sample [B, M, 1], positive."""
    total = torch.zeros_like(lab.rough)
    for name in ERROR_NAMES:
        part = ERRORS[name]().path(lab)
        total = total if part is None else total + part
    return (1.0 + total).clamp_min(math.exp(-2.0))[..., None]
