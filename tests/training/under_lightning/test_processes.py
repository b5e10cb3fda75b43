"""Several processes train as one does: same losses, same weights, no sample twice, one reduction a step."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.main import get_command

from geonode.cli import app
from geonode.errors import DeviceError, InputError
from geonode.training import BatchSource, SafetensorsIO, SpectralDataModule, build_problem, train_module
from geonode.training.batches import shard
from geonode.training.launch import launched
from geonode.training.lightning.strategies import sharded_settings, trainer_settings
from geonode.training.problem import Problem
from tests.forks import python
from tests.training.under_lightning import ddp_run

HERE = Path(__file__).resolve().parent


FLOWS = ["path_independent", "velocity"]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """By processes, words and flow, the outcome of `ddp_run.py`: two processes start once, for that is what costs."""
    found = {}

    def keep(processes: int, words: str, out: Path, counts: list[dict[str, Any]]) -> None:
        for flow, count in zip(FLOWS, counts, strict=True):
            kept = SafetensorsIO().load_checkpoint(ddp_run.of_flow(out, flow))
            found[processes, words, flow] = {**kept, **count}

    for words, options in (("", {}), ("unclipped", {"unclipped": True})):
        out = tmp_path_factory.mktemp("ddp") / "run.ckpt"
        keep(1, words, out, _this_process(out, options))
    out = tmp_path_factory.mktemp("ddp") / "run.ckpt"
    counts = _two_processes(out, "ddp,fsdp")
    for strategy, part in (("ddp", counts[:2]), ("fsdp", counts[2:])):
        keep(2, strategy, ddp_run.of_flow(out, strategy), part)
    return found


def _this_process(out: Path, options: dict[str, Any]) -> list[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Problem, "build_model", Problem.build_model)  # so that it is put back
        ddp_run.start_away()
        return [ddp_run.main(ddp_run.of_flow(out, flow), flow, "cpu", **options) for flow in FLOWS]


def _two_processes(out: Path, strategies: str) -> list[dict[str, Any]]:
    command = ["-m", "tests.torchrun", 2, HERE / "ddp_run.py", out, ",".join(FLOWS), "cpu", strategies]
    done = python(*command, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.mark.slow
@pytest.mark.parametrize("one, two", [("", "ddp"), ("unclipped", "fsdp")], ids=["ddp", "fsdp"])
@pytest.mark.parametrize("flow", FLOWS)
def test_two_gloo_processes_have_the_loss_curve_and_weights_of_one(outcomes, flow, one, two):
    one, two = outcomes[1, one, flow], outcomes[2, two, flow]
    assert len(one["history"]) == len(two["history"]) == 6
    for a, b in zip(one["history"], two["history"], strict=True):
        assert a.keys() == b.keys()
        for name in a:
            assert b[name] == pytest.approx(a[name], rel=1e-6, abs=1e-12), name
    for name, value in one["weights"].items():
        torch.testing.assert_close(two["weights"][name], value, rtol=0, atol=1e-6, msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("flow", FLOWS)
def test_gradients_are_reduced_once_a_step(outcomes, flow):
    # velocity: 30 pairs in micro-batches of 4, two to a step: 8 micro-batches and 4 reductions an epoch, not 8
    steps = 6 * (4 if flow == "velocity" else 1)
    assert outcomes[2, "ddp", flow]["reduced"] == steps
    assert outcomes[1, "", flow]["reduced"] == 0


def test_ranks_share_a_step_without_overlap_and_their_mean_is_the_whole(folds, assay, small):
    from geonode.training import losses

    config = small.replace(wavelengths_per_step=7)
    problem = build_problem(folds, assay.wavelengths, config).to("cpu", torch.float64)
    ode = problem.build_model(config, 0)
    whole = BatchSource(problem, ode.table, config, 3)
    parts = [BatchSource(problem, ode.table, config, 3, rank, 3) for rank in range(3)]
    batches = [part.batch(2, 0) for part in parts]
    assert torch.equal(torch.cat([b.index for b in batches]).sort()[0], whole.batch(2, 0).index.sort()[0])
    weights = config.loss.at(1.0)
    expected = losses(ode, whole.batch(2, 0), weights)
    shared = [losses(ode, batch, weights) for batch in batches]
    for name, value in expected.items():
        mean = sum(part.share * terms[name] for part, terms in zip(parts, shared, strict=True)) / 3
        torch.testing.assert_close(mean, value, rtol=1e-10, atol=1e-16, msg=name)


def test_a_program_of_the_tests_ends_as_python_ends_it(tmp_path):
    """Arguments, folder, environment, streams and exit codes; and what it loads lies in no other."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\nimport geonode\nassert __name__ == '__main__' and not hasattr(geonode, 'seen')\n"
        "geonode.seen = True\nprint(sys.argv[1:], os.getcwd(), os.environ['WORD'])\n"
        "print('\\xe9', file=sys.stderr)\nsys.exit({'a': None, 'b': 3, 'c': 'said'}[sys.argv[1]])\n"
    )
    for word, code, said in (("a", 0, ""), ("b", 3, ""), ("c", 1, "said\n")):
        done = python(script, word, env={**os.environ, "WORD": "x"}, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (code, f"['{word}'] {tmp_path} x\n")
        assert done.stderr == "é\n" + said
    done = python(script, "d", env={**os.environ, "WORD": "x"})
    assert done.returncode == 1 and done.stderr.rstrip().endswith("KeyError: 'd'")


def test_more_processes_than_wavelengths_are_refused():
    with pytest.raises(InputError, match="2 wavelengths, fewer than the 3 processes"):
        shard(torch.arange(2), 0, 3)


def test_launchers_are_read_from_the_environment(monkeypatch, small):
    for name in ("WORLD_SIZE", "RANK", "LOCAL_WORLD_SIZE", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_NTASKS_PER_NODE"):
        monkeypatch.delenv(name, raising=False)
    assert launched() is None
    assert trainer_settings("auto", "cpu", small) == {"strategy": "auto", "devices": 1, "num_nodes": 1}
    monkeypatch.setenv("SLURM_NTASKS", "8")
    assert launched() is None  # an allocation, but not started by srun
    monkeypatch.setenv("SLURM_PROCID", "3")
    monkeypatch.setenv("SLURM_NTASKS_PER_NODE", "4")
    assert launched() == (3, 8, 4)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="RANK"):
        launched()
    monkeypatch.setenv("RANK", "1")
    assert launched() == (1, 2, 2)
    assert trainer_settings("auto", "cpu", small) == {"strategy": "ddp", "devices": 2, "num_nodes": 1}


def test_torchrun_lets_the_options_of_fit_through():
    from torch.distributed.run import get_args_parser

    options = {name for p in get_command(app).commands["fit"].params for name in p.opts if name.startswith("--")}
    given = ["geonode", "fit", "a.csv", *sorted(options - {"--log"})]
    parsed = get_args_parser().parse_args(["--nproc-per-node", "2", "-m", *given])
    assert "--log-dir" in options and [parsed.training_script, *parsed.training_script_args] == given


def test_strategies_that_cannot_work_are_refused_in_one_sentence(small):
    with pytest.raises(InputError, match="choose one of auto, ddp, fsdp"):
        trainer_settings("horovod", "cpu", small)
    with pytest.raises(DeviceError, match="needs CUDA"):
        trainer_settings("deepspeed_stage_2", "cpu", small)
    with pytest.raises(InputError, match="metric_clip=0"):
        trainer_settings("fsdp", "cuda", small)
    free = small.replace(metric_clip=0.0, flow_clip=0.0)
    with pytest.raises(InputError, match="in 32-true or 64-true, not bf16-mixed"):
        trainer_settings("fsdp", "cuda", free.replace(precision="bf16-mixed"))
    with pytest.raises(InputError, match="in 32-true, not 64-true"):
        sharded_settings("deepspeed_stage_3", free.replace(precision="64-true"))


@pytest.mark.parametrize(
    "options, said",
    [
        ({"strategy": "fsdp", "checkpoint": "kept"}, "'fsdp' keeps no checkpoints here"),
        ({"strategy": "fsdp", "resume": "kept/epoch-000005.ckpt"}, "'fsdp' keeps no checkpoints here"),
        ({"strategy": "FSDP", "checkpoint": "kept"}, "choose one of auto, ddp, fsdp"),
        ({"strategy": "fsdp", "precision": "16-mixed"}, "in 32-true or 64-true, not 16-mixed"),
    ],
    ids=str,
)
def test_what_a_strategy_cannot_do_is_refused_before_anything_is_written(
    assay, small, tmp_path, monkeypatch, options, said
):
    monkeypatch.chdir(tmp_path)
    options = dict(options)
    precision = options.pop("precision", "64-true")
    config = small.replace(metric_clip=0.0, flow_clip=0.0, precision=precision)
    with pytest.raises(InputError, match=said):
        train_module(SpectralDataModule(assay, config), config, "cpu", **options)
    assert not list(tmp_path.iterdir())
