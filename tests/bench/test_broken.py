"""What the benchmark does with what is broken: kernels, cases, workers, arguments, and a run cut short."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from geonode.bench import processes, suite
from geonode.bench.__main__ import main
from geonode.bench.case import CASES, Case, Setting
from tests.forks import python

ROOT = Path(__file__).resolve().parent.parent.parent
CPU = Setting("cpu", "quick")

ODD = """
import os
import sys

import geonode
from geonode.bench.case import Case, Checked, Size, Work, register

geonode.christoffel
rules = sys.modules["geonode.christoffel"]
honest = rules.christoffel_grid
rules.christoffel_grid = lambda *a, **k: 1.001 * honest(*a, **k)  # a kernel that is wrong by a thousandth


def deadly(setting, size):
    os._exit(3)


def fine(setting, size):
    return Work(lambda i: i, lambda: [Checked("x", 0.0, 1.0)], {"odes": 1.0})


register(Case("a-deadly", "ends the process", deadly, lambda s: [Size(1, 1)]))
def bracketed(setting, size):
    raise ValueError("[/tmp/x]: [Errno 2] no such file")


def infinite(setting, size):
    return Work(lambda i: i, lambda: [Checked("x", float("inf"), 1.0)], {"odes": 1.0})


def sweeping(setting, size):
    if size.pairs > 1:
        raise ValueError("too many pairs")
    return fine(setting, size)


two = lambda s: [Size(2, 1)]
register(Case("a-fine", "after it", fine, lambda s: [Size(1, 1)]))
register(Case("a-bracketed", "raises what looks like markup", bracketed, lambda s: [Size(1, 1)], sweep=two))
register(Case("a-infinite", "errs infinitely", infinite, lambda s: [Size(1, 1)], sweep=two))
register(Case("a-sweeping", "breaks beside the rows", sweeping, lambda s: [Size(1, 1)], sweep=two))
"""


@pytest.fixture(scope="module")
def odd_run(tmp_path_factory):
    """One command with a broken kernel, a case that ends its process, and a sound case after it: (process, folder)."""
    folder = tmp_path_factory.mktemp("bench")
    (folder / "odd.py").write_text(ODD)
    only = (
        "--only",
        "christoffel-grid",
        "--only",
        "a-",
        "--import",
        "odd",
        "--restarts",
        "1",
        "--no-peers",
        "--no-windows",
    )
    path = os.pathsep.join([str(folder), str(ROOT), str(ROOT / "kernels")])
    words = ["-m", "geonode.bench", "--device", "cpu", *only, "--json", "b.json", "--html", "b.html"]
    done = python(*words, cwd=folder, env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"})
    return done, folder


def rows_of(odd_run):
    return {row["case"]: row for row in json.loads((odd_run[1] / "b.json").read_text())["rows"]}


def test_a_broken_kernel_is_red_without_a_time_and_exits_1(odd_run):
    done, _ = odd_run
    assert done.returncode == 1, done.stdout + done.stderr
    row = rows_of(odd_run)["christoffel-grid"]  # sound, it is green: test_cases_are_green_at_a_small_size
    assert row["status"] == "red" and "gamma" in row["reason"]
    assert not [name for name in row if name.endswith("ms") or name in ("rates", "floor", "window")]
    assert "not green: christoffel-grid" in done.stdout


def test_a_worker_that_dies_takes_one_row_with_it(odd_run):
    rows = rows_of(odd_run)
    assert rows["a-deadly"]["status"] == "failed" and rows["a-deadly"]["reason"]
    fine = rows["a-fine"]
    assert fine["status"] == "green" and fine["ms"] > 0 and len(fine["samples_ms"]) >= 3


def test_an_error_that_looks_like_markup_is_told_in_full(odd_run):
    done, _ = odd_run
    said = "ValueError: [/tmp/x]: [Errno 2] no such file"
    assert rows_of(odd_run)["a-bracketed"]["reason"] == said and done.stdout.count(said) == 2
    assert "Traceback" not in done.stdout + done.stderr


def test_an_infinite_error_is_red_and_null_in_the_file(odd_run):
    row = rows_of(odd_run)["a-infinite"]
    assert row["status"] == "red" and "error inf" in row["reason"] and row["checks"][0]["error"] is None


def test_what_is_not_green_is_timed_at_no_other_size_and_a_break_beside_the_rows_is_not_green(odd_run):
    done, folder = odd_run
    result = json.loads((folder / "b.json").read_text())
    assert result["sweep"] == [] and rows_of(odd_run)["a-sweeping"]["status"] == "green"
    told = "batch sizes of a-sweeping: ValueError: too many pairs"
    assert result["broken"] == [told] and told in (folder / "b.html").read_text()
    assert told in done.stdout.split("not green: ")[1]


def test_the_page_asks_for_nothing_from_outside(odd_run):
    page = (odd_run[1] / "b.html").read_text()
    outside = page.replace("http://www.w3.org/", "")  # names of XML, not addresses to fetch
    outside = outside.replace("http://purl.org/", "").replace("http://creativecommons.org/", "")
    assert "http" not in outside and "<script" not in page


def test_list_names_every_case_and_reasons_of_absent_ones(capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(
        CASES._items, "absent", Case("absent", "t", Case, lambda s: [], absent=lambda s: "no such part")
    )
    assert main(["--device", "cpu", "--list"]) == 0
    listed = capsys.readouterr().out
    for name in ("christoffel-exact", "geodesic-shoot", "node-step-adjoint", "blueprint-step", "ensemble-step"):
        assert name in listed
    assert "absent: t (skipped: no such part)" in listed


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("--only", "nonsense"), "--only nonsense"),
        (("--import", "no_such_module_here"), "--import no_such_module_here"),
        (("--baseline", "missing.json"), "--baseline missing.json"),
        (("--restarts", "-1"), "--restarts -1"),
        (("--restarts", "0"), "--restarts 0"),
        (("--time-limit", "0"), "--time-limit 0"),
        (("--time-limit", "nan"), "--time-limit nan"),
        (("--seed", "-1"), "--seed -1"),
        (("--json", "no/such/folder/b.json"), "--json no/such/folder/b.json"),
        (("--html", "no/such/folder/b.html"), "--html no/such/folder/b.html"),
        (("--activity", "gpm"), "--activity gpm"),
        (("--profile", str(ROOT / "README.md"), "--only", "christoffel-grid"), "--profile"),
    ],
)
def test_bad_arguments_are_one_sentence_and_exit_2_before_anything_is_measured(capsys, monkeypatch, arguments, names):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(suite, "_process", None)
    assert main(["--device", "cpu", *arguments]) == 2
    said = capsys.readouterr().err
    assert names in said and said.count("\n") == 1


@pytest.mark.parametrize(("text", "says"), [("def f(:", "SyntaxError"), ("raise ValueError('boom')", "boom")])
def test_a_module_of_cases_that_raises_is_one_sentence(capsys, monkeypatch, tmp_path, text, says):
    (tmp_path / f"cases_{len(text)}.py").write_text(text)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert main(["--device", "cpu", "--import", f"cases_{len(text)}", "--list"]) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1


def test_an_interrupted_run_says_so_and_exits_130(capsys, monkeypatch, tmp_path):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(suite, "_process", interrupted)
    assert main(["--device", "cpu", "--json", str(tmp_path / "b.json")]) == 130
    assert capsys.readouterr().err == "geonode.bench: interrupted.\n" and list(tmp_path.iterdir()) == []


def test_a_worker_nobody_listens_to_any_more_is_killed(monkeypatch):
    code = f"import time; print({processes.MARK!r} + '{{}}', flush=True); time.sleep(100)"
    started = []

    def start(command, **options):
        started.append(popen([sys.executable, "-c", code], **options))
        return started[-1]

    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", start)
    begin = time.monotonic()
    lines = processes._worker({}, processes.Options(CPU))
    assert next(lines) == {}
    lines.close()
    assert started[0].returncode == -9 and time.monotonic() - begin < 30.0


def test_last_words_of_a_worker():
    assert processes._last_words(-9, "some warning") == "killed by SIGKILL"
    assert processes._last_words(1, "Traceback\nValueError: x\n\n") == "ValueError: x"
    assert processes._last_words(3, "") == "exit code 3"
