"""Simulated unknowns to train the posterior on: assays of :mod:`geonode.corpus`, their unknowns and left-out levels."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from geonode.bundle import write_tensors
from geonode.calibration.posterior.reading import Reading
from geonode.corpus import UNKNOWNS, Assays, common_levels, draw
from geonode_runtime.posterior.cells import CELLS, Cells, unknown_cells
from geonode_runtime.posterior.network import ABOVE, BELOW, NONE

UNKNOWNS_EACH = 10
BATCH = 32
_WIDTHS = (32, 48, 64, 96, 160, 320)
LEFT_OUT = len(UNKNOWNS)
"""Kind of an unknown that is a replicate of a level left out."""
LEFT_OUT_WEIGHT = 3.0
"""Of all replicates of a level left out together."""
FEW = 0.2
"""Share of the assays that have four or five levels, one of which is left out, beside those that are as common: with so
few standards nothing of the assay itself says how far off an estimate is."""
BLANK_WEIGHT = 5.0
"""Times the standard uncertainty of a blank as a share of the range, at most 1: how much an unknown that is a blank
counts where zero is compared with other concentrations. A tenth of the unknowns are drawn as blanks, and how many are
in a laboratory no corpus can say. Weighed so, a blank is as probable beforehand as concentrations within half an
uncertainty of zero, as if zero were a one-sided test's (ISO 11843-1), however fine the assay is; with a fixed share the
finer assay would ask for the larger multiple of its uncertainty (Lindley 1957, Biometrika 44, 187)."""
NOISE_WEIGHT = 0.5
"""Of the spectrum of noise alone that every assay has besides."""


@dataclass(frozen=True)
class Examples:
    """E unknowns; the first six attributes are those of :class:`~geonode_runtime.posterior.cells.Cells`.

    Attributes:
        edges: ``[E, CELLS + 1]`` as shares of the calibrated range from its low end. truth: ``[E]`` likewise, NaN for
            none. label: ``[E]`` cell or class. kind: ``[E]`` of `UNKNOWNS` or `LEFT_OUT`.
        weight: ``[E]``. among: ``[E]`` how much of it counts where concentrations are compared (`BLANK_WEIGHT`).
        family, levels: ``[E]``. noise: ``[E]`` of the assay (:class:`~geonode.corpus.Assays`). assay: ``[E]`` number.
        estimates: ``[E, 7]`` as shares.
    """

    values: Tensor
    whole: Tensor
    base: Tensor
    odd: Tensor
    stray: Tensor
    edges: Tensor
    estimates: Tensor
    truth: Tensor
    label: Tensor
    weight: Tensor
    among: Tensor
    kind: Tensor
    family: Tensor
    levels: Tensor
    noise: Tensor
    assay: Tensor

    def __len__(self) -> int:
        return len(self.label)

    def __getitem__(self, rows: Tensor | slice) -> Examples:
        """Some of them."""
        return Examples(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    @property
    def even(self) -> Tensor:
        """``[E, CELLS]`` each cell's share of the searched range."""
        width = self.edges.diff(dim=1)
        return width / width.sum(1, keepdim=True)


def joined(parts: Sequence[Examples]) -> Examples:
    """One behind the other."""
    return Examples(**{f.name: torch.cat([getattr(p, f.name) for p in parts]) for f in fields(Examples)})


def examples(
    batches: int,
    *,
    seed: int,
    families: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
    keep: Path | None = None,
) -> Examples:
    """``batches`` of `BATCH` assays with `UNKNOWNS_EACH` unknowns and the replicates of at most one left-out level.

    The same arguments give the same examples.

    Args:
        seed: of the draw. families, exclude: as for :func:`geonode.corpus.draw`.
        progress: called as ``progress(done, batches)``.
        keep: folder for what is drawn, a file a batch, from which a later call with the same seed and families goes on.
    """
    found = []
    for step in range(batches):
        path = None if keep is None else keep / f"{_of_draw(seed, families, exclude)}-{step}.safetensors"
        if path is not None and path.is_file():
            found.append(Examples(**load_file(path)))
        else:
            found.append(_drawn(seed, step, families, exclude))
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_tensors(path, vars(found[-1]), {})
        if progress is not None:
            progress(step + 1, batches)
    return joined(found)


def _of_draw(*arguments: object) -> str:
    """Another name for every draw, so that no batch of another one is taken for its own."""
    return hashlib.sha256(repr(arguments).encode()).hexdigest()[:12]


def _drawn(seed: int, step: int, families: Sequence[str] | None, exclude: Sequence[str]) -> Examples:
    """One batch of assays."""
    rng = np.random.default_rng([seed, step])
    few = rng.random() < FEW
    levels = int(rng.integers(4, 6)) if few else common_levels(seed, step) + 1
    assays = draw(
        BATCH,
        levels,
        int(rng.choice(_WIDTHS)),
        queries=0,
        unknowns=UNKNOWNS_EACH,
        seed=seed,
        step=step,
        families=families,
        exclude=exclude,
        dtype=torch.float64,
    )
    found = []
    for row in range(BATCH):
        left_out = int(rng.integers(levels)) if rng.random() < 0.75 or few or levels < 5 else None
        found.append(_of_assay(assays, row, left_out, step * BATCH + row, rng))
    return joined(found)


def standards_of(assays: Assays, row: int, left_out: int | None) -> Reading:
    """The standards of one assay, perhaps without one level."""
    keep = [i for i in range(assays.concentration.shape[1]) if i != left_out]
    means, counts = assays.spectra[row].numpy()[keep], assays.count[row].numpy()[keep].astype(float)
    deviations = None
    if counts.sum() > len(keep):
        single = assays.replicates[row].numpy()
        deviations = np.concatenate([single[i, : int(r)] - m for i, r, m in zip(keep, counts, means, strict=True)])
    return Reading(assays.concentration[row].numpy()[keep], means, counts, deviations)


def unknowns_of(
    assays: Assays, row: int, left_out: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Spectra ``[U, W]``, how many each is the mean of, true concentrations (NaN: none) and kinds."""
    spectra, count = assays.unknown_spectra[row].numpy(), assays.unknown_count[row].numpy()
    truth, kind = assays.unknown_concentration[row].numpy(), assays.unknown_kind[row].numpy()
    if left_out is not None:
        own = assays.replicates[row, left_out, : min(int(assays.count[row, left_out]), 3)].numpy()
        spectra, count = np.concatenate([spectra, own]), np.concatenate([count, np.ones(len(own))])
        truth = np.concatenate([truth, np.full(len(own), float(assays.concentration[row, left_out]))])
        kind = np.concatenate([kind, np.full(len(own), LEFT_OUT)])
    return spectra, count.astype(float), truth, kind


def noise_alone(assays: Assays, row: int, rng: np.random.Generator) -> tuple[np.ndarray, bool]:
    """A spectrum ``[W]`` of noise as large as that of an assay's unknowns, and whether a measured blank is no more than
    that."""
    levels, means = assays.concentration[row].numpy(), assays.spectra[row].numpy()
    # the median square of second differences of white noise is 6 · 0.455 of its variance
    rough = np.median(np.diff(assays.unknown_spectra[row, 0].numpy(), n=2) ** 2)
    noise = np.sqrt(rough / (6.0 * 0.455)) * rng.standard_normal(means.shape[1])
    return noise, bool(levels[0] == 0.0 and np.sqrt((means[0] ** 2).mean()) < 3.0 * noise.std())


def _of_assay(assays: Assays, row: int, left_out: int | None, number: int, rng: np.random.Generator) -> Examples:
    reading = standards_of(assays, row, left_out)
    spectra, count, truth, kind = unknowns_of(assays, row, left_out)
    noise, is_blank = noise_alone(assays, row, rng)
    spectra, count = np.concatenate([spectra, noise[None]]), np.append(count, 1.0)
    truth, kind = np.append(truth, np.nan), np.append(kind, UNKNOWNS.index("nothing"))
    cells = unknown_cells(reading.known, spectra, count)
    label = labels(cells, truth)
    own = kind == LEFT_OUT
    weight = np.where(own, LEFT_OUT_WEIGHT / max(int(own.sum()), 1), 1.0)
    # noise that no one could tell from a blank is neither one thing nor the other
    weight[-1] = 0.0 if is_blank else NOISE_WEIGHT
    weight[(kind == UNKNOWNS.index("nothing")) & (cells.odd < -2.5)] = 0.0
    share_of_zero = np.ones(len(truth))
    if reading.known.floor:
        at_zero = np.hypot(1.0 / max(reading.known.slope[0] * reading.span, 1e-9), reading.known.doubt[0])
        share_of_zero[truth == 0.0] = min(BLANK_WEIGHT * float(at_zero), 1.0)
    scale = reading.levels[0], reading.span

    def share(c: np.ndarray) -> Tensor:
        return torch.from_numpy((c - scale[0]) / scale[1])

    of_all = torch.ones(len(label))
    return Examples(
        values=torch.from_numpy(cells.values).half(),
        whole=torch.from_numpy(cells.whole).float(),
        base=torch.from_numpy(cells.base).float(),
        odd=torch.from_numpy(cells.odd).float(),
        stray=torch.from_numpy(cells.stray).float(),
        edges=share(cells.edges),
        estimates=share(cells.estimates),
        truth=share(truth),
        label=torch.from_numpy(label),
        weight=torch.from_numpy(weight).float(),
        among=torch.from_numpy(share_of_zero).float(),
        kind=torch.from_numpy(kind),
        family=assays.family[row] * of_all.long(),
        levels=len(reading.levels) * of_all.long(),
        noise=assays.noise[row].float() * of_all,
        assay=number * of_all.long(),
    )


def labels(cells: Cells, truth: np.ndarray) -> np.ndarray:
    """Cell that holds each true concentration ``[U]``, or the class."""
    found = np.array([np.searchsorted(e, t, side="right") - 1 for e, t in zip(cells.edges, truth, strict=True)])
    found = np.clip(found, 0, CELLS - 1)
    found = np.where(truth < cells.edges[:, 0], BELOW, np.where(truth > cells.edges[:, -1], ABOVE, found))
    return np.where(np.isnan(truth), NONE, found)
