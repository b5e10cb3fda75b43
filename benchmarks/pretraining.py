"""How fast pre-training is on this GPU: assays a second and SM activity, corpus included, and equality of the steps.

    python benchmarks/pretraining.py                       # writes results/pretraining-<card>.json
    python benchmarks/pretraining.py --steps 400 --profile # and the kernels that take the time

*Equality*: loss and gradients of one batch of every number of standards, captured as one CUDA graph, against the same
computed step by step. *Speed*: `geonode.prior.pretrain` itself, Lightning, corpus, features, optimiser and averaging
included, after all shapes have been compiled and captured; SM activity by NVML's GPM over the same time.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from geonode.bench.activity import TITLES, Monitor  # noqa: E402
from geonode.prior.captured import CapturedLoss  # noqa: E402
from geonode.prior.examples import Examples, Shape, draw_examples  # noqa: E402
from geonode.prior.feed import sized  # noqa: E402
from geonode.prior.flat import FlatNetwork  # noqa: E402
from geonode.prior.settings import PretrainSettings  # noqa: E402
from geonode.prior.stored import load_network  # noqa: E402
from geonode.prior.training import loss_of, pretrain  # noqa: E402
from geonode_runtime.files import write_text  # noqa: E402


def equality(settings: PretrainSettings, half: bool) -> dict[str, dict[str, float]]:
    """Difference of the loss and relative one of the gradients, captured against step by step, float32 or bfloat16."""
    network = FlatNetwork(load_network()).cuda()
    loss_at, parameters = partial(loss_of, settings), list(network.parameters())
    shapes = [dataclasses.replace(sized(settings, levels), batch=64) for levels in sorted(settings.levels)]
    examples = [[draw_examples(shape, seed=1, step=step, device="cuda") for shape in shapes] for step in range(2)]
    found: dict[str, dict[str, float]] = {}
    with torch.autocast("cuda", torch.bfloat16, enabled=half):
        captured = CapturedLoss(loss_at, network, examples[1])  # it must not remember the batches of the capture
        for batch in examples[0]:
            loss, _ = captured(batch)
            plain, _ = loss_at(network, batch)
            mine, theirs = (torch.autograd.grad(value, parameters) for value in (loss, plain))
            one, other = (torch.cat([gradient.flatten() for gradient in part]) for part in (mine, theirs))
            apart = float((one - other).norm() / other.norm())
            differences = {"loss": float((loss - plain).detach().abs()), "gradients": apart}
            found[f"{batch.levels.shape[1]} standards"] = differences
    return found


def speed(settings: PretrainSettings, monitor: Monitor, warm: int) -> dict[str, Any]:
    """Assays a second of `pretrain` after ``warm`` steps, and the activity of the same time."""
    lines: list[tuple[float, dict[str, Any]]] = []
    started = time.monotonic()

    def report(line: dict[str, Any]) -> None:
        torch.cuda.synchronize()
        lines.append((time.monotonic(), line))

    with tempfile.TemporaryDirectory() as folder:
        pretrain(settings, folder, accelerator="cuda", start=load_network(), report=report)
    logged = [(at, line) for at, line in lines if "validation" not in line]
    (begin, first), (end, last) = next(row for row in logged if row[1]["step"] >= warm), logged[-1]
    seen = last["assays"] - first["assays"]
    activity = monitor.window(begin, end)
    return {
        "assays/s": seen / (end - begin),
        "steps/s": (last["step"] - first["step"]) / (end - begin),
        "seconds": end - begin,
        "seconds before": begin - started,
        "memory GiB": torch.cuda.max_memory_reserved() / 2**30,
        "tokens": settings.tokens,
        "counter": TITLES[monitor.rung],
        **{key: value for key, value in activity.items() if isinstance(value, float)},
    }


def profile(name: str, work: Callable[[], Any], rows: int) -> None:
    """Print what a piece of work costs on the device and on the host, and its slowest kernels."""
    work()
    torch.cuda.synchronize()
    started = time.perf_counter()
    work()
    issued = time.perf_counter() - started
    torch.cuda.synchronize()
    whole = time.perf_counter() - started
    kinds = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds) as found:
        work()
        torch.cuda.synchronize()
    events = sorted(found.key_averages(), key=lambda e: -e.self_device_time_total)
    total = sum(e.self_device_time_total for e in events) / 1e3
    count = sum(e.count for e in events)
    print(f"## {name}: {1e3 * whole:.1f} ms, issued in {1e3 * issued:.1f} ms; {count} kernels take {total:.1f} ms")
    for e in events[:rows]:
        print(f"{e.self_device_time_total / 1e3:8.2f} ms {e.count:5d} x {e.key[:100]}")


def profiles(settings: PretrainSettings, rows: int) -> None:
    """A draw and one captured step at a few numbers of standards."""
    network = FlatNetwork(load_network()).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        for levels in (5, 10, 22):
            shape = sized(settings, levels)
            many = dataclasses.replace(shape, batch=shape.batch * settings.chunk)

            def drawn(many: Shape = many) -> Examples:
                return draw_examples(many, seed=1, step=1, device="cuda")

            profile(f"{levels} standards, {many.batch} assays drawn", drawn, rows)
            batch = drawn().split(shape.batch)[0]
            captured = CapturedLoss(partial(loss_of, settings), network, [batch])
            step = partial(lambda captured, batch: captured(batch)[0].backward(), captured, batch)
            profile(f"{levels} standards, one step of {shape.batch} assays", step, rows)


def main() -> None:
    """See the top of the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--warm", type=int, default=200, help="steps before the clock starts: all shapes are captured")
    parser.add_argument("--tokens", type=int, action="append", help="sizes of batches, one after another")
    parser.add_argument("--chunk", type=int, default=PretrainSettings().chunk, help="batches that are drawn together")
    parser.add_argument("--profile", action="store_true", help="print the slowest kernels as well")
    parser.add_argument("--out", help="file; default: benchmarks/results/pretraining-<card>.json")
    args = parser.parse_args()
    settings = PretrainSettings().with_changes(steps=args.steps, validate_every=10**9, chunk=args.chunk)
    name = torch.cuda.get_device_name().replace(" ", "-")
    result: dict[str, Any] = {"card": name, "torch": torch.__version__, "equality": {}}
    for half in (False, True):
        result["equality"]["bfloat16" if half else "float32"] = equality(settings, half)
    print(json.dumps(result), flush=True)
    if args.profile:
        profiles(settings, 14)
    monitor = Monitor("cuda")
    result["speed"] = []
    path = args.out or ROOT / "benchmarks" / "results" / f"pretraining-{name}.json"
    for tokens in args.tokens or [settings.tokens]:
        result["speed"].append(speed(dataclasses.replace(settings, tokens=tokens), monitor, args.warm))
        print(json.dumps(result["speed"][-1]), flush=True)
        write_text(Path(path), json.dumps(result, indent=1) + "\n")  # what was measured stays, if the next is cut
    monitor.stop()


if __name__ == "__main__":
    main()
