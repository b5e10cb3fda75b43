"""`geonode.adapt`: the pre-trained flow fine-tuned to an instrument's own earlier calibrations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from geonode.adaptation.judgement import Judgement, judge
from geonode.adaptation.lowrank import layer_names
from geonode.adaptation.series import Series, gather_series
from geonode.adaptation.tuning import AdaptSettings, Tuned, tune
from geonode.device import resolve_device
from geonode.errors import InputError
from geonode.prior.network import Network
from geonode.prior.stored import load_network, save_network, weights_path, weights_record
from geonode_runtime.given_paths import as_path
from geonode_runtime.wording import argument


@dataclass(frozen=True)
class Adapted:
    """Adapted weights and what speaks for them.

    Attributes:
        network: the weights, adapters merged.
        judgement: error and coverage on series left out, before and after.
        tuned: the tuning to all series, with its loss before and after.
        card: what the model card says.
    """

    network: Network
    judgement: Judgement
    tuned: Tuned
    card: dict[str, Any]

    @property
    def helped(self) -> bool:
        """Whether adapting helped on series left out."""
        return self.judgement.helped

    def save(self, path: str | Path, *, anyway: bool = False) -> Path:
        """Write the weights to ``path`` (.safetensors) and their card beside them (.json), each whole or not at all.

        Args:
            path: what ``geonode.fit(…, weights=path)`` takes afterwards.
            anyway: write also what did not help.

        Raises:
            InputError: adapting did not help, another suffix, or a folder that is not there.
        """
        path = as_path(path, "the file of weights")
        if path.suffix != ".safetensors":
            raise InputError(f"{path}: weights are written as .safetensors; give such a name.")
        if not path.absolute().parent.is_dir():
            raise InputError(f"The folder {path.parent} does not exist; create it first.")
        self.require_helped(anyway)
        return save_network(self.network, self.card, path.parent, path.stem)

    def require_helped(self, anyway: bool = False) -> None:
        """Refuse weights that did not help.

        Args:
            anyway: let them pass.

        Raises:
            InputError: adapting did not help.
        """
        if not (self.helped or anyway):
            raise InputError(
                f"{self.judgement.sentence()}. So nothing was written: fit with {self.card['base']['name']} as it is, "
                f"give more series of this instrument, or say {argument('anyway', True)} to have these weights all "
                "the same."
            )


def adapt(
    series: Any,
    out: str | Path | None = None,
    *,
    weights: str | Path | None = None,
    settings: AdaptSettings | None = None,
    names: Sequence[str] | None = None,
    preprocessing: Any = None,
    device: str = "auto",
    progress: Callable[[str, int, int], None] | None = None,
    anyway: bool = False,
) -> Adapted:
    """Fine-tune the pre-trained flow to an instrument's own earlier calibrations, and say whether that helps.

    Low-rank adapters (LoRA) on the last block and the heads are trained on levels left out of each series. Series left
    out as a whole judge: up to six one at a time, more in six groups. What is kept was adapted to all of them.

    Args:
        series: two or more calibrations, each what `geonode.fit` takes as standards: a file, a data set, a DataFrame.
            Of four levels or more, one analyte, the same instrument and kind of assay.
        out: file to write (.safetensors), with its model card beside it; None writes nothing, see `Adapted.save`.
        weights: to begin with, a name or a file of `geonode pretrain`; None for those that come with geonode.
        settings: None for the default ones.
        names: of the series, one for each; None for those of their files.
        preprocessing: steps applied to every series, as `geonode.fit` takes them; the same are to be used there.
        device: ``auto``, ``cpu`` or ``cuda``.
        progress: called as ``progress(what, done, total)``.
        anyway: write ``out`` also where adapting did not help.

    Raises:
        InputError: too few series or levels, the same series twice, weights that are not there, are none of this
            network or are adapted already; or ``out`` is given and adapting did not help.
    """
    settings = settings or AdaptSettings()
    base = weights_path(weights)
    network, record = load_network(base), weights_record(base)
    if "base" in record:
        raise InputError(
            f"{base} is adapted already (from {record['base']}), so no series it has seen could judge; adapt "
            f"{record['base']} to all series at once."
        )
    found = gather_series(series, names, preprocessing)
    where = _device(device)
    judgement = judge(network, found, settings, where, progress)
    report = None if progress is None else lambda done, total: progress("adapting to all series", done, total)
    tuned = tune(network, found, settings, where, report)
    card = _card(record, network, settings, found, judgement, tuned)
    adapted = Adapted(tuned.network, judgement, tuned, card)
    if out is not None:
        adapted.save(out, anyway=anyway)
    return adapted


def _device(name: str) -> torch.device:
    """Where it is trained.

    Raises:
        InputError: a device without float64.
    """
    found = resolve_device(name)
    if found.type != "mps":
        return found
    if name == "auto":
        return torch.device("cpu")
    raise InputError(f"Adapting needs float64, which mps does not have; choose {argument('device', 'cpu')}.")


def _card(
    record: dict[str, str],
    network: Network,
    settings: AdaptSettings,
    series: Sequence[Series],
    judgement: Judgement,
    tuned: Tuned,
) -> dict[str, Any]:
    from geonode import __version__

    return {
        "what": "pre-trained geodesic flow, adapted to the calibrations of one instrument",
        "base": record,
        "adapters": {**settings.as_dict(), "layers": layer_names(network), "merged": True},
        "series": [one.record() for one in series],
        "loss on these series": {"before": tuned.before, "after": tuned.after},
        "judgement": judgement.as_dict(),
        "geonode": __version__,
    }
