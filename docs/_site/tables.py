"""Tables of the benchmark pages, from benchmarks/results/*.json: no figure on those pages is typed by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from geonode.bench import on_paper

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
CARD, BENCH = "kernels-NVIDIA-H200", "bench-NVIDIA-H100-80GB-HBM3"


def _read(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def _table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def accuracy() -> str:
    """Error ÷ best simple method by hindsight, geometric means over the real series with one standard error as a
    factor, by group of series."""
    data = _read("accuracy")
    heads = ["series", "method", *(name.replace("_", " ") for name in data["statistics"])]
    rows = []
    for group, methods in data["summary"].items():
        for name, row in methods.items():
            cells = zip(row["mean"], row["standard_error"], strict=True)
            rows.append([group, name, *(f"{mean:.2f} ×/÷ {factor:.2f}" for mean, factor in cells)])
    return _table(heads, rows)


def winners() -> str:
    """Per real series the interior median RMSE ÷ standard deviation, the method chosen by validation with every level
    in hand, and beside it the error of what each fold chose without its level."""
    data = _read("accuracy")
    names = ["linear", "pchip", "cubic", "line", "isotherm", "gp", "node", "chosen inside"]
    rows = []
    for series, entry in data["series"].items():
        errors = [np.median(entry["rmse"][name][1:-1]) for name in names]
        rows.append([series, len(entry["levels"]), *(f"{e:.4f}" for e in errors), entry["winner"]])
    return _table(["series", "levels", *names[:-1], "chosen in each fold", "winner (pooled inner scores)"], rows)


def noise() -> str:
    """The simulated assay: geonode ÷ the best simple method of each seed."""
    rows = []
    for assay, by_noise in _read("assay_noise")["assays"].items():
        for level, entry in by_noise.items():
            best = ", ".join(f"{name} {count}" for name, count in entry["best_simple"].items())
            ratio, worst = entry["ratio"]["geonode"], entry["ratio_worst_seed"]["geonode"]
            rows.append([assay, f"{float(level):.1%}", f"{ratio:.3f}", f"{worst:.3f}", best])
    return _table(["assay", "noise", "geonode ÷ best", "worst seed", "best simple method (seeds)"], rows)


def inverse() -> str:
    """Concentration from spectrum: RMSEP over interior levels, percent of the range."""
    names = ["geonode", "pls", "pls_warped", "pcr", "gp_pca", "pchip_curve"]
    rows = []
    for series, entry in _read("inverse")["series"].items():
        errors = [_rmsep(entry["inverse"][name]["per_level"]) for name in names]
        best = min(errors)
        rows.append([series, *(f"**{e:.2f}**" if e == best else f"{e:.2f}" for e in errors)])
    return _table(["series", *names], rows)


def _rmsep(per_level: list[dict[str, Any]]) -> float:
    """Root mean square over interior levels of each level's mean square error; the record has percent of the range."""
    squares = [np.mean(np.square(entry["errors"])) for entry in per_level if not entry["edge"]]
    return float(np.sqrt(np.mean(squares)))


def coverage() -> str:
    """Coverage of sets of concentration on simulated calibrations."""
    rows = []
    for entry in _read("calibration_coverage"):
        told = f"{entry['preparation_error']:.0%}{', declared' if entry['told'] else ', not declared'}"
        rows.append(
            [
                entry["assay"],
                entry["replicates"],
                told if entry["preparation_error"] else "none",
                entry["noise"],
                f"{entry['coverage_80']:.1%}",
                f"{entry['coverage_95']:.1%}",
                f"{entry['confidently_wrong']:.1%}",
            ]
        )
    heads = ["assay", "replicates", "error of standards", "noise", "80 % sets cover", "95 % sets cover"]
    return _table([*heads, "confidently wrong"], rows)


def two_analytes() -> str:
    """Cells and rows of the pH × chloride grid left out."""
    data = _read("two_analytes")
    rows = []
    for name in data["cells"]["methods"]:
        cells, lines = data["cells"]["methods"][name], data["rows"]["methods"][name]
        rows.append(
            [name, *(f"{part[key]:.4f}" for part in (cells, lines) for key in ("geometric_mean", "rms", "worst"))]
        )
    heads = ["cell left out: geometric mean", "rms", "worst", "pH left out: geometric mean", "rms", "worst"]
    return _table(["method", *heads], rows)


def closed_form() -> str:
    """Closed form against shooting on two CPU cores."""
    data = _read("closed_form_vs_shooting")
    rows = [
        [
            f"18 030 paths, {dtype}",
            f"{1000 * t['closed_form_s']:.0f} ms",
            f"{t['shooting_s']:.1f} s",
            f"{t['ratio']:.0f}",
        ]
        for dtype, t in data["time"].items()
    ]
    epoch = data["epoch_float32"]
    seconds = [f"{1000 * epoch['closed_form_s']:.0f} ms", f"{epoch['shooting_s']:.1f} s", f"{epoch['ratio']:.0f}"]
    return _table(["work", "closed form", "shooting", "ratio"], [*rows, ["one epoch, float32", *seconds]])


def kernels() -> str:
    """The kernels and their peers on the recorded card."""
    data = _read(CARD)
    rows = []
    for row in data["rows"]:
        if "times_torchdiffeq" not in row:
            continue
        work = f"{row['n']:,}".replace(",", " ") + f" geodesics, {row['direction']}"
        rows.append(
            [
                work,
                f"{row['ms']:.2f} ms",
                f"{row['times_torchdiffeq']:.1f} ×",
                f"{row['times_jax']:.1f} ×",
                f"{row['error']:.0e}",
            ]
        )
    heads = ["work (fp32, 20 RK4 steps)", "geonode", "faster than torchdiffeq", "faster than JAX", "error"]
    return f"{data['card']}, torch {data['torch']}, Triton {data['triton']}.\n\n" + _table(heads, rows)


def peers() -> str:
    """Every recorded run of another library on the same card."""
    data = _read(CARD)
    rows = [
        [
            p["library"],
            p.get("version", ""),
            p.get("method", ""),
            p["mode"],
            p["n"],
            f"{p['ms']:.1f} ms" if p.get("ms") else "–",
        ]
        for p in data["peers"]
    ]
    return _table(["library", "version", "method", "direction", "geodesics", "time"], rows)


def libraries() -> str:
    """Geodesic initial-value problems with geonode's kernel and with other libraries, one run of `geonode.bench`."""
    data = _read(BENCH)
    case, rows = "geodesic-ivp", []
    own = {row["label"]: row["ms"] for row in data["rows"] if row["case"] == case}
    for label, ms in own.items():
        rows.append(["geonode", "", f"{_count(label)}", f"{ms:.1f} ms", "", "20 steps of RK4 in one kernel"])
        for peer in data["peers"]:
            if (peer["case"], peer["label"], peer["status"]) != (case, label, "green"):
                continue
            for row in peer["rows"]:
                times = f"{row['ms'] / ms:.0f} ×"
                rows.append(
                    [peer["library"], peer["version"], _count(label), f"{row['ms']:.1f} ms", times, row["note"]]
                )
    heads = ["library", "version", "geodesics", "forward, fp32", "of geonode's time", "how"]
    return f"{data['device']['card']}.\n\n" + _table(heads, rows)


def _count(label: str) -> str:
    """``30×601`` as the number of geodesics."""
    problems, wavelengths = (int(part) for part in label.split("×"))
    return f"{problems * wavelengths:,}".replace(",", " ")


def a100() -> str:
    """What each recorded card foretells for an A100, kernel by kernel, with the arithmetic; the newest record first."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.glob("bench-NVIDIA-*.json")]
    records.sort(key=lambda record: record["host"]["time"], reverse=True)
    return "\n\n".join(
        f"## From an {r['device']['card']}, {r['host']['time'][:10]}\n\n" + "\n".join(on_paper.lines(r))
        for r in records
    )


def folds() -> str:
    """Forty-eight models at once."""
    rows = []
    for name in ("folds_at_once-NVIDIA-H100", "folds_at_once-cpu-2-cores"):
        data = _read(name)
        rows.append(
            [f"{data['device']} (load {data['load']:.1f})", *(f"{data[k]:.1f} s" for k in ("train_s", "total_s"))]
        )
    return _table(["machine", "training", "in all"], rows)


TABLES: dict[str, Callable[[], str]] = {
    function.__name__: function
    for function in (
        accuracy,
        winners,
        noise,
        inverse,
        coverage,
        two_analytes,
        closed_form,
        kernels,
        peers,
        libraries,
        a100,
        folds,
    )
}
