"""What was learned on simulated assays: a step of its pre-training, spectra by the flow, and concentrations by the
learned posterior."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from geonode.bench.case import Case, Checked, Setting, Size, Work, register
from geonode.bench.cases.common import sizes
from geonode.bench.problem import error
from geonode.data import simulate_assay
from geonode.model import fit

STANDARDS = 6
STEPS = 3  # of a call on a CPU: Lightning's own start is in it


def _watch(after: Callable[[], bool]) -> Any:
    """A callback that calls back after each step, and stops where the answer is False."""
    import lightning  # here: it takes longer to load than all else that a worker loads, and one case needs it

    class Watch(lightning.Callback):
        def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
            if not after():
                trainer.should_stop = True

    return Watch()


def _settings(setting: Setting) -> Any:
    """Of a pre-training whose every batch has as many standards, and with them as many assays."""
    from geonode.prior import PretrainSettings, cpu_settings

    base = PretrainSettings() if setting.device == "cuda" else cpu_settings()
    return base.with_changes(steps=STEPS, levels={STANDARDS: 1.0}, validate_every=10**9, seed=setting.seed)


def _batches(setting: Setting) -> list[Size]:
    """Assays of a step, and their wavelengths."""
    from geonode.prior.feed import sized

    shape = sized(_settings(setting), STANDARDS)
    return [Size(shape.batch, shape.wavelengths)]


def _pretrain(setting: Setting, size: Size) -> Work:
    """`geonode.prior.pretrain`: ``size.pairs`` assays a step, at ``size.wavelengths``."""
    from geonode.prior import pretrain

    few, assays = _settings(setting), size.pairs

    def trained(steps: int, after: Callable[[], bool] | None = None) -> Any:
        callbacks = [] if after is None else [_watch(after)]
        settings = few.with_changes(steps=steps)
        with tempfile.TemporaryDirectory() as folder:
            return pretrain(settings, folder, accelerator=setting.device, callbacks=callbacks)

    cuda = setting.device == "cuda"
    steps = 1 if cuda else STEPS
    return Work(
        lambda i: trained(STEPS), lambda: _starts_as_its_process(setting, few),
        {"assays": steps * assays, "samples": steps * assays * STANDARDS, "gradient_steps": steps},
        drive=(lambda after: trained(20_000, after)) if cuda else None,
        notes=f"geonode.prior.pretrain, its own loop: {assays} fresh assays of {STANDARDS} standards a step, drawn on "
        f"the device{'' if cuda else f'; {STEPS} steps a call, with the start of the loop; the small network'}",
    )  # fmt: skip


@torch.no_grad()
def _starts_as_its_process(setting: Setting, settings: Any) -> list[Checked]:
    """A fresh network adds nothing to the Gaussian process it starts from: their errors are the same."""
    from geonode.prior.feed import make, sized
    from geonode.prior.loss import errors
    from geonode.prior.network import Network

    batch = make(sized(settings, STANDARDS), seed=1, step=0, device=setting.device)
    network = Network(settings.size).to(setting.device)
    e = errors(batch.features, network(batch.features, settings.anchors), batch.examples)
    apart = (e.truth - e.start_truth).abs().max().item()
    return [Checked("log error of a fresh network less that of its start", apart, 1e-3)]


def _predict(setting: Setting, size: Size) -> Work:
    """`predict_spectra` of ``size.pairs`` concentrations by the default flow, on the device."""
    grid = np.linspace(350.0, 950.0, size.wavelengths).tolist()
    model = fit(simulate_assay(wavelengths=grid))
    sets = [np.linspace(*model.calibrated_range, size.pairs) + 0.1 * i / size.pairs for i in range(4)]
    sets = [np.clip(c, *model.calibrated_range) for c in sets]
    on_host = [np.asarray(x) for x in model.predict_spectra(sets[0])]
    truth = np.asarray(simulate_assay(sets[0].tolist(), wavelengths=grid, noise=0.0).spectra)
    model.to(setting.device)

    def check() -> list[Checked]:
        model.predict_spectra(sets[0])  # what is measured comes after the first call, which records the graph
        found = [np.asarray(x) for x in model.predict_spectra(sets[0])]
        off = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(found, on_host, strict=True))
        return [
            Checked("mean and band against those of the CPU", off, 1e-9),
            Checked("mean against the noiseless spectra", error(found[0], truth), 0.05),
        ]

    return Work(
        lambda i: model.predict_spectra(sets[i]), check, {"samples": size.pairs, "odes": size.trajectories},
        rotations=4, latency=True,
        notes="GeodesicModel.predict_spectra, mean and band as labelled arrays on the host; on a GPU a graph a call",
    )  # fmt: skip


def _posterior(setting: Setting, size: Size) -> Work:
    """`geonode.fit` of six standards, and what it says of ``size.pairs`` unknowns at once."""
    grid = np.linspace(350.0, 950.0, size.wavelengths).tolist()
    model = fit(simulate_assay(wavelengths=grid), device=setting.device)
    truth = np.linspace(3.0, 55.0, size.pairs)
    sets = [np.asarray(simulate_assay(truth.tolist(), wavelengths=grid, seed=7 + i).spectra) for i in range(2)]

    def run(i: int) -> Any:
        return model.quantify(sets[i], grid, method="posterior")

    def check() -> list[Checked]:
        answers = run(0)
        missed = sorted(abs(a.nearest - c) / 60.0 for a, c in zip(answers, truth, strict=True))
        silent = sum(a.verdict != "quantified" for a in answers) / size.pairs
        return [
            Checked("median error of the estimates, of the range", missed[len(missed) // 2], 0.02),
            Checked("share of unknowns that are not quantified", silent, 0.1),
        ]

    return Work(
        run, check, {"samples": size.pairs}, latency=True,
        notes=f"model.quantify(method='posterior') of {size.pairs} unknowns; computed on the host on every device",
    )  # fmt: skip


register(Case("predict-spectra", "spectra by the pre-trained flow", _predict, sizes([Size(50, 601)], [Size(50, 601)])))
register(Case("pretrain-step", "a step of pre-training", _pretrain, _batches, window=lambda size: 5.0))
register(
    Case("quantify-posterior", "unknowns by the learned posterior", _posterior, sizes([Size(96, 601)], [Size(96, 601)]))
)
