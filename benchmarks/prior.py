"""The pre-trained flow judged: against its own start (untrained), the geodesic GP and the best simple method.

    python benchmarks/prior.py                    # real series, simulated assays, another hand's simulator
    python benchmarks/prior.py --weights FILE     # other weights than those that come with geonode
    python benchmarks/prior.py --part simulated --batches 40
    python benchmarks/prior.py --part unseen --part other --against OLD.safetensors --out /tmp/judged

*Real series*: leave one concentration out, as in benchmarks/accuracy.py. Nothing is fitted or chosen on them.
*Simulated*: fresh assays of `geonode.corpus`; the families that training left out stand apart, and *unseen* draws
those alone, *departing* such that depart from their law (`geonode.corpus.departures`). Error is the log root mean
square error at the level taken out (as measured) and elsewhere (truth), less the GP's.
*Another simulator*: assays of benchmarks/other_simulator.py, which shares no code with the corpus.

With `--against` simulated errors stand over those of other weights as well, assay by assay: which of two ship is
decided by *unseen*, *departing* and *another simulator*.

For each: coverage of the 80 % bands, and rank correlation of error with geodesic distance to the nearest standard and
with plain distance. Results go to benchmarks/results/prior.json and prior.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "benchmarks"))

from accuracy import SIMPLE, ratios  # noqa: E402
from other_simulator import other_assay  # noqa: E402
from real_series import GROUPS, geometric_means, require_series  # noqa: E402

from geonode.calibration.assessment.coverage import responding_wavelengths  # noqa: E402
from geonode.calibration.gp.geodesic_gp import GeodesicGP  # noqa: E402
from geonode.corpus import FAMILIES  # noqa: E402
from geonode.data import load_standards  # noqa: E402
from geonode.prior.feed import Batch, make, sized  # noqa: E402
from geonode.prior.flow import AssayFlow, replicate_variance  # noqa: E402
from geonode.prior.loss import errors, upper_decile  # noqa: E402
from geonode.prior.network import Network  # noqa: E402
from geonode.prior.reading import ANCHORS  # noqa: E402
from geonode.prior.settings import PretrainSettings  # noqa: E402
from geonode.prior.stored import load_network, model_card, untrained_network  # noqa: E402
from geonode.validation import evaluate  # noqa: E402
from geonode_runtime.files import write_text  # noqa: E402

PARTS = ("real", "simulated", "unseen", "departing", "other")
TITLES = {
    "simulated": "Simulated assays",
    "unseen": "Simulated assays of families left out",
    "departing": "Simulated assays of families left out, all of which depart from their law",
}
ROUGH = "pretrained, not smoothed"
COLUMNS = ("interior median", "interior worst", "lowest", "highest")
_JUDGING_SEED = 20_260_101


def correlation(error: np.ndarray, distance: np.ndarray) -> float | None:
    """Spearman's rank correlation; None where all distances are one (evenly spaced standards)."""
    if np.ptp(distance) <= 1e-9 * np.abs(distance).max():
        return None
    return float(spearmanr(np.ravel(error), np.ravel(distance)).statistic)


# --- real series ------------------------------------------------------------------------------------------------------


def real_series(folder: Path, network: Network) -> dict[str, Any]:
    """RMSE by method, level and series; bands; distances."""
    rows: dict[str, Any] = {}
    for name in GROUPS["all 24"]:
        started = time.perf_counter()
        dataset = load_standards(folder / "series" / f"{name}.csv")
        report = evaluate(dataset, methods=[*SIMPLE, "gp"], inner=False)
        means, levels = report.level_means, report.levels
        scale = float(means.std())
        rmse = {method: (result.rmse / scale).tolist() for method, result in report.results.items()}
        entry: dict[str, Any] = {"levels": len(levels), "rmse": rmse}
        for row, weights in (("untrained", untrained_network()), (ROUGH, network), ("pretrained", network)):
            found = leave_out(dataset, levels, means, weights, smooth=row == "pretrained")
            rmse[row] = (np.sqrt(((found["mean"] - means) ** 2).mean(1)) / scale).tolist()
        entry.update(bands(found, means, levels))
        entry["gp coverage"] = report.results["gp"].coverage
        entry["seconds"] = round(time.perf_counter() - started, 1)
        rows[name] = entry
        print(f"{name}: {entry['seconds']} s", flush=True)
    return rows


def leave_out(
    dataset: Any, levels: np.ndarray, means: np.ndarray, network: Network, *, smooth: bool
) -> dict[str, np.ndarray]:
    """Every level predicted from the others: mean, band and distance ``[n, W]`` each."""
    raw = np.asarray(dataset.levels, dtype=np.float64)
    index = np.argsort(np.argsort(raw))[np.asarray(dataset.level_index)]
    usable = np.isfinite(np.asarray(dataset.level_means())).all(axis=0)
    deviations = np.asarray(dataset.replicate_deviations())[:, usable]
    parts = []
    for i in range(len(levels)):
        kept = np.arange(len(levels)) != i
        variance = replicate_variance(deviations[index != i], int(kept.sum()))
        found = AssayFlow(network, levels[kept], means[kept], variance, smooth=smooth).predict([levels[i]])
        low, high = found.interval(0.8)
        parts.append((found.mean[0], low[0], high[0], found.distance[0]))
    names = ("mean", "low", "high", "distance")
    return {name: np.stack([part[k] for part in parts]) for k, name in enumerate(names)}


def bands(found: dict[str, np.ndarray], means: np.ndarray, levels: np.ndarray) -> dict[str, Any]:
    """Coverage of the 80 % bands, and rank correlation of error with distance over levels and wavelengths."""
    inside = (found["low"] <= means) & (means <= found["high"])
    responding = responding_wavelengths(means)
    error = np.abs(found["mean"] - means)
    away = np.abs(levels[:, None] - levels)
    np.fill_diagonal(away, np.inf)
    plain = np.broadcast_to(away.min(1)[:, None], error.shape)
    return {
        "covered responding": float(inside[:, responding].mean()) if responding.any() else None,
        "covered silent": float(inside[:, ~responding].mean()) if (~responding).any() else None,
        "covered": float(inside.mean()),
        "error by geodesic distance": correlation(error[:, responding], found["distance"][:, responding]),
        "error by plain distance": correlation(error[:, responding], plain[:, responding]),
    }


def real_tables(rows: dict[str, Any]) -> dict[str, Any]:
    """Geometric means and one standard error (a factor), and paired ratios to the GP."""
    tables: dict[str, Any] = {}
    found = {
        name: ratios({key: np.array(value) for key, value in entry["rmse"].items()}, SIMPLE)
        for name, entry in rows.items()
    }
    for group, names in GROUPS.items():
        table = {}
        for method in ("linear", "gp", "untrained", ROUGH, "pretrained"):
            mean, factor = geometric_means({name: found[name][method] for name in found}, names)
            table[method] = {"ratio": mean.round(4).tolist(), "standard error": factor.round(4).tolist()}
        paired = {name: found[name]["pretrained"] / found[name]["gp"] for name in found}
        mean, factor = geometric_means(paired, names)
        table["pretrained ÷ gp"] = {"ratio": mean.round(4).tolist(), "standard error": factor.round(4).tolist()}
        tables[group] = table
    return tables


# --- simulated assays -------------------------------------------------------------------------------------------------


@torch.inference_mode()
def simulated(
    network: Network,
    left_out: tuple[str, ...],
    batches: int,
    against: Network | None,
    unseen: bool = False,
    departures: float = 0.0,
) -> dict[str, Any]:
    """Log errors less the GP's and coverage, by family, number of standards, place and noise.

    Args:
        network: judged.
        left_out: families that it was not trained on.
        batches: of some 24 assays.
        against: other weights, whose errors ``network``'s are compared with; None: none.
        unseen: draw the families left out alone.
        departures: share of the assays that depart from their law.
    """
    settings = PretrainSettings(tokens=13 * 48 * 24, warmup=0, decay=0)
    parts = []
    for number in range(batches):
        levels = sorted(settings.levels)[number % len(settings.levels)]
        kind = {"families": left_out} if unseen else {}
        shape = sized(settings, levels)
        batch = make(shape, seed=_JUDGING_SEED, step=number, device="cpu", departures=departures, **kind)
        parts.append(one_batch(network, batch))
        if against is not None:
            other = one_batch(against, batch)
            parts[-1] |= {f"{key} ÷ other": parts[-1][key] - other[key] for key in ("held out", "truth")}
    rows = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    known = ~np.isin(rows["family"], [FAMILIES.index(name) for name in left_out])
    classes = {"all": np.ones(len(known), bool), "families trained on": known, "families left out": ~known}
    classes |= {f"family {name}": rows["family"] == i for i, name in enumerate(FAMILIES)}
    classes |= {f"{n} standards": rows["standards"] == n for n in sorted(settings.levels)}
    classes |= {name: rows["held"] == i for i, name in enumerate(("lowest", "interior", "highest"))}
    quarter = np.searchsorted(np.quantile(rows["noise"], [0.25, 0.5, 0.75]), rows["noise"])
    classes |= {f"noise, quarter {i + 1}": quarter == i for i in range(4)}
    tables = {name: summary(rows, chosen) for name, chosen in classes.items() if chosen.sum() > 1}
    for kind in ("geodesic", "plain"):
        tables[f"error by {kind} distance"] = correlation(rows["place error"], rows[f"{kind} distance"])
    return tables


def one_batch(network: Network, batch: Batch) -> dict[str, np.ndarray]:
    """What the tables are made of, one row an assay."""
    f, examples = batch.features, batch.examples
    output = network(f, ANCHORS)
    e = errors(f, output, examples)
    miss = ((f.reference - examples.measured) / f.scale).float() + output.change
    half = upper_decile(output.dof) * output.variance(f.coordinate).sqrt()
    inside = (miss.abs() <= half).float().mean(-1)
    _, lower, upper = output.metric.distances(f.coordinate)
    share = examples.places[:, :, None].double() - examples.levels[:, None].double()
    plain = share.abs().amin(-1) / (examples.levels[:, -1:] - examples.levels[:, :1])
    n = examples.levels.shape[1]
    values = {
        "held": torch.where(examples.held == 0, 0, torch.where(examples.held == n, 2, 1)),
        "family": examples.family,
        "noise": examples.noise,
        "standards": torch.full((len(f.scale),), n),
        "held out": (e.measured - e.start_measured)[:, 0],
        "truth": (e.truth - e.start_truth)[:, 1:].mean(1),
        "covered held out": inside[:, 0],
        "covered elsewhere": inside[:, 1:].mean(1),
        "place error": e.measured,
        "place band": torch.log(half.square().mean(-1).sqrt()),
        "geodesic distance": torch.minimum(lower, upper).mean(-1),
        "plain distance": plain,
    }
    return {key: value.cpu().numpy() for key, value in values.items()}


def summary(rows: dict[str, np.ndarray], chosen: np.ndarray) -> dict[str, float]:
    """Means over the chosen assays; errors as ratios to the GP's (geometric means), with one standard error."""
    result: dict[str, float] = {"assays": int(chosen.sum())}
    for key in ("held out", "truth"):
        result[f"{key} ÷ gp"], result[f"{key} standard error"] = geometric_mean(rows[key][chosen], 3)
    for key in (name for name in rows if name.endswith("÷ other")):
        result[key], result[f"{key}, standard error"] = geometric_mean(rows[key][chosen], 4)
    for key in ("covered held out", "covered elsewhere"):
        result[key] = round(float(rows[key][chosen].mean()), 3)
    return result


def geometric_mean(logs: np.ndarray, digits: int) -> tuple[float, float]:
    """The geometric mean of ratios by their logarithms, and the factor that is one standard error of it."""
    error = logs.std(ddof=1) / len(logs) ** 0.5
    return round(float(np.exp(logs.mean())), digits), round(float(np.exp(error)), digits)


def another_simulator(network: Network, count: int, against: Network | None) -> dict[str, Any]:
    """Truth at the queries and levels left out, on assays that share no code with the corpus; arguments as above."""
    logs: dict[str, list[float]] = {"queries ÷ gp": [], "held out ÷ gp": []}
    if against is not None:
        logs |= {"queries ÷ other": [], "held out ÷ other": []}
    covered = []
    rng = np.random.default_rng(_JUDGING_SEED)
    for number in range(count):
        assay = other_assay(_JUDGING_SEED + number)
        levels, spectra = assay.concentration, assay.spectra
        truth, asked = assay.query_truth, assay.query_concentration
        flow, gp = AssayFlow(network, levels, spectra), GeodesicGP().fit_levels(levels, spectra)
        found = flow.predict_mean(asked)
        logs["queries ÷ gp"].append(log_ratio(found, gp.predict_mean(asked), truth))
        if against is not None:
            other = AssayFlow(against, levels, spectra).predict_mean(asked)
            logs["queries ÷ other"].append(log_ratio(found, other, truth))
        held = int(rng.integers(len(levels)))
        kept = np.arange(len(levels)) != held
        gp = GeodesicGP().fit_levels(levels[kept], spectra[kept])
        found = AssayFlow(network, levels[kept], spectra[kept]).predict(levels[held : held + 1])
        wanted = spectra[held : held + 1]
        logs["held out ÷ gp"].append(log_ratio(found.mean, gp.predict_mean(levels[held : held + 1]), wanted))
        if against is not None:
            other = AssayFlow(against, levels[kept], spectra[kept]).predict_mean(levels[held : held + 1])
            logs["held out ÷ other"].append(log_ratio(found.mean, other, wanted))
        low, high = found.interval(0.8)
        covered.append(float(((low <= wanted) & (wanted <= high)).mean()))
    result: dict[str, Any] = {"assays": count, "covered": round(float(np.mean(covered)), 3)}
    for key, values in logs.items():
        result[key], result[f"{key.removesuffix(' ÷ gp')} standard error"] = geometric_mean(np.array(values), 3)
    return result


def log_ratio(mine: np.ndarray, other: np.ndarray, truth: np.ndarray) -> float:
    """Log of my root mean square error over the other's."""
    return 0.5 * float(np.log(((mine - truth) ** 2).mean() / ((other - truth) ** 2).mean()))


# --- text -------------------------------------------------------------------------------------------------------------


def markdown(result: dict[str, Any]) -> str:
    """The tables as text."""
    lines = ["# The pre-trained flow, judged", ""]
    for group, table in result.get("real tables", {}).items():
        lines += [f"## Real series, {group}: RMSE ÷ the best simple method's (× standard error)", ""]
        lines += ["| method | " + " | ".join(COLUMNS) + " |", "|---|" + "---|" * len(COLUMNS)]
        for method, row in table.items():
            cells = [f"{v:.2f} (× {s:.2f})" for v, s in zip(row["ratio"], row["standard error"], strict=True)]
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
        lines.append("")
    if "real series" in result:
        keys = ("covered", "covered responding", "covered silent")
        keys += ("error by geodesic distance", "error by plain distance")
        lines += ["## Real series: 80 % bands, and rank correlation of error with distance", ""]
        lines += table_of(result["real series"], "series", keys)
    for part, title in TITLES.items():
        if part not in result:
            continue
        lines += [f"## {title}", ""]
        entries = {name: entry for name, entry in result[part].items() if isinstance(entry, dict)}
        lines += table_of(entries, "assays of", tuple(entries["all"]))
        for kind in ("geodesic", "plain"):
            lines += [
                f"Rank correlation, error by {kind} distance: {result[part][f'error by {kind} distance']:.3f}",
                "",
            ]
    if "another simulator" in result:
        lines += ["## Another hand's simulator", ""]
        lines += table_of({"all": result["another simulator"]}, "assays", tuple(result["another simulator"]))
    return "\n".join(lines) + "\n"


def table_of(entries: dict[str, Any], first: str, keys: tuple[str, ...]) -> list[str]:
    """One row an entry."""
    lines = [f"| {first} | " + " | ".join(keys) + " |", "|---|" + "---|" * len(keys)]
    for name, entry in entries.items():
        cells = ["–" if entry[key] is None else f"{entry[key]:.3g}" for key in keys]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def main() -> None:
    """See the top of the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder that holds series/")
    parser.add_argument("--weights", help="safetensors file; default: the weights that come with geonode")
    parser.add_argument("--part", action="append", choices=PARTS, help="default: all")
    parser.add_argument("--against", help="other weights to compare with on simulated assays")
    parser.add_argument("--batches", type=int, default=80, help="batches of simulated assays")
    parser.add_argument("--count", type=int, default=150, help="assays of the other simulator")
    parser.add_argument("--out", default=str(ROOT / "benchmarks" / "results" / "prior"), help="path without suffix")
    args = parser.parse_args()
    parts = args.part or PARTS
    against = None if args.against is None else load_network(args.against)
    network, out = load_network(args.weights), Path(args.out)
    path = out.with_suffix(".json")
    result: dict[str, Any] = json.loads(path.read_text()) if args.part and path.is_file() else {}
    if "real" in parts:
        result["real series"] = real_series(require_series(args.data), network)
        result["real tables"] = real_tables(result["real series"])
    left_out = tuple(model_card(args.weights).get("families left out", ()))
    if "simulated" in parts:
        result["simulated"] = simulated(network, left_out, args.batches, against)
    if "unseen" in parts:
        result["unseen"] = simulated(network, left_out, args.batches, against, unseen=True)
    if "departing" in parts:
        result["departing"] = simulated(network, left_out, args.batches, against, unseen=True, departures=1.0)
    if "other" in parts:
        result["another simulator"] = another_simulator(network, args.count, against)
    write_text(path, json.dumps(result, indent=1, allow_nan=False) + "\n")
    write_text(out.with_suffix(".md"), markdown(result))
    print(markdown(result))


if __name__ == "__main__":
    main()
