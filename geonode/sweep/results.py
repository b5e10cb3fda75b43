"""Results of a sweep as files: one per worker, whole or not at all, merged into one table in which no job is twice."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from geonode.errors import InputError
from geonode.schema import require_readable, versioned
from geonode_runtime.files import write_text
from geonode_runtime.wording import argument

_BESIDE = {"seconds", "worker", "bundle"}  # differ between two runs of one job


class Results:
    """``results-WORKER.json`` in ``folder``: ``schema_version`` and the rows, rewritten whole after each job."""

    def __init__(self, folder: str | Path, worker: str) -> None:
        if not worker or not all(c.isalnum() or c in "-_." for c in worker):
            raise InputError(f"{argument('worker', worker)}: use letters, digits, '-', '_' and '.' only.")
        self.path = Path(folder) / f"results-{worker}.json"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.rows = read_rows(self.path) if self.path.exists() else []

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row, unless its job is there already."""
        if all(row["job"] != other["job"] for other in self.rows):
            self.rows.append(row)
            write_text(self.path, json.dumps(versioned("sweep", {"rows": self.rows}), indent=1) + "\n")


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of one file.

    Raises:
        InputError: not a file that a worker wrote, or one of a later release.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            require_readable("sweep", found["schema_version"], str(path))
            rows = found["rows"]
        else:  # before there were versions: the rows alone
            rows = found
        if isinstance(rows, list) and all(_is_row(row) for row in rows):
            return rows
    except InputError:
        raise
    except (OSError, ValueError, TypeError, KeyError):
        pass
    raise InputError(f"{path} is not a table of results; delete it, and its jobs run again.")


def _is_row(row: Any) -> bool:
    numbers = ("seed", "fold", "rmse", "nrmse")
    return isinstance(row["job"], str) and all(isinstance(row[name], (int, float)) for name in numbers)


def merge(folders: Iterable[str | Path]) -> list[dict[str, Any]]:
    """Rows of every ``results-*.json`` in ``folders``, each job once, ordered by set, settings, seed and fold.

    Raises:
        InputError: no results there, or two different outcomes of one job.
    """
    found: dict[str, tuple[dict[str, Any], Path]] = {}
    files = [path for folder in folders for path in sorted(Path(folder).glob("results-*.json"))]
    if not files:
        raise InputError("There is no results-*.json in the folder(s) given; run geonode sweep first.")
    for path in files:
        for row in read_rows(path):
            other, where = found.setdefault(row["job"], (row, path))
            if not _agree(row, other):
                raise InputError(
                    f"{path} and {where} disagree on job {row['job']} (fold {row['fold']:g}, seed {row['seed']}): they "
                    "come from different versions or devices; delete one of them."
                )
    rows = [row for row, _ in found.values()]
    return sorted(rows, key=_order)


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as CSV text; columns in the order of first appearance."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def settings_of(row: dict[str, Any]) -> dict[str, Any]:
    """What a row says of its job's settings: the columns of the sweep's grid."""
    known = {"job", "set", "fold", "seed", "rmse", "nrmse"} | _BESIDE
    return {name: value for name, value in row.items() if name not in known}


def _order(row: dict[str, Any]) -> tuple[str, str, int, float]:
    return row.get("set", ""), json.dumps(settings_of(row), sort_keys=True), row["seed"], row["fold"]


def _agree(row: dict[str, Any], other: dict[str, Any]) -> bool:
    """Equal but for rounding: two machines need not have the last bits in common."""
    for name in row.keys() - _BESIDE:
        a, b = row[name], other.get(name)
        if isinstance(a, float) and isinstance(b, float):
            if abs(a - b) > 1e-3 * max(abs(a), abs(b)):
                return False
        elif a != b:
            return False
    return True
