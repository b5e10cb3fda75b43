"""Outputs never replace what a command reads or what somebody else wrote; what geonode wrote, only with --force."""

from __future__ import annotations

import os

import pytest

from geonode.commands.outputs import FIGURE
from tests.commands import cases
from tests.commands.cases import fit, run, write_standards, write_unknown


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    write_standards(folder / "standards.csv")
    write_unknown(folder / "unknown.csv", 30.0)
    fit(folder / "standards.csv", folder / "assay.bundle")
    return folder


def commands(bench, out):
    """Each command that writes one file, with the kind's own suffix left to the caller."""
    bundle, standards, unknown = bench / "assay.bundle", bench / "standards.csv", bench / "unknown.csv"
    return {
        "fit": ("fit", standards, "--predictor", "gp", "--out", out),
        "predict": ("predict", bundle, "--at", 15, "--out", out),
        "predict --json": ("predict", bundle, "--at", 15, "--out", out.with_name("fresh.csv"), "--json", out),
        "quantify": ("quantify", bundle, unknown, "--json", out),
        "suggest": ("suggest", bundle, "--json", out),
        "evaluate": ("evaluate", standards, "--method", "linear", "--json", out),
        "evaluate --plot": ("evaluate", standards, "--method", "linear", "--plot", out),
        "export": ("export", bundle, "--onnx", out),
        "simulate": ("simulate", "methane", "--n", 2, "--samples", 64, "--workers", 1, "--device", "cpu", "--out", out),
        "corpus": ("corpus", "--show", 1, "--wavelengths", 20, "--out", out),
    }


SUFFIX = {
    **{"fit": ".bundle", "predict": ".csv", "predict --json": ".json", "quantify": ".json", "suggest": ".json"},
    **{"evaluate": ".json", "evaluate --plot": ".png", "export": ".onnx", "simulate": ".h5", "corpus": ".png"},
}


@pytest.mark.parametrize("name", SUFFIX)
def test_a_file_that_geonode_did_not_write_is_kept_even_with_force(bench, tmp_path, name):
    out = tmp_path / f"mine{SUFFIX[name]}"
    out.write_text("wavelength,0,5\n400,0.1,0.2\n")
    for extra in ((), ("--force",)):
        said = run(*commands(bench, out)[name], *extra, code=2).output
        assert "is there already" in said and "geonode wrote it is not" in said
    assert out.read_text() == "wavelength,0,5\n400,0.1,0.2\n"


@pytest.mark.parametrize("name", [name for name in SUFFIX if name != "export"])
def test_what_geonode_wrote_is_replaced_with_force_alone(bench, tmp_path, name):
    out = tmp_path / f"again{SUFFIX[name]}"
    run(*commands(bench, out)[name])
    before = out.read_bytes()
    (tmp_path / "fresh.csv").unlink(missing_ok=True)
    assert "--force to replace it" in run(*commands(bench, out)[name], code=2).output
    assert out.read_bytes() == before
    run(*commands(bench, out)[name], "--force")


@pytest.mark.parametrize("name", SUFFIX)
@pytest.mark.parametrize("suffix", [".txt", ".xlsx"])
def test_a_suffix_that_is_not_written_is_refused(bench, tmp_path, name, suffix):
    out = tmp_path / f"a{suffix}"
    said = run(*commands(bench, out)[name], code=2).output
    assert "written as" in said and str(out) in said and not out.exists()


@pytest.mark.parametrize("options", [(), ("--force",)])
@pytest.mark.parametrize("way", ["name", "other way to it", "symbolic link", "hard link"])
def test_an_input_is_never_written_over(bench, tmp_path, way, options):
    file = write_standards(tmp_path / "x.csv")
    held = file.read_bytes()
    out = {
        "name": file,
        "other way to it": tmp_path / ".." / tmp_path.name / "x.csv",
        "symbolic link": tmp_path / "link.bundle",
        "hard link": tmp_path / "hard.bundle",
    }[way]
    if way == "symbolic link":
        out.symlink_to(file)
    if way == "hard link":
        os.link(file, out)
    said = run("fit", file, "--predictor", "gp", "--out", out, *options, code=2).output
    assert "is read by this command and would be overwritten" in said and file.read_bytes() == held


@pytest.mark.parametrize("which", ["settings", "note", "listed", "bundle", "unknown", "blank"])
def test_every_input_counts(bench, tmp_path, which):
    bundle, unknown = bench / "assay.bundle", bench / "unknown.csv"
    names = [f"s{k}" for k in range(len(cases.LEVELS))]
    plate = cases.write(tmp_path / "plate.csv", cases.standards(), names)
    note = tmp_path / "note.csv"
    note.write_text("name,concentration\n" + "".join(f"{n},{c}\n" for n, c in zip(names, cases.LEVELS, strict=True)))
    settings = tmp_path / "settings.json"
    settings.write_text("{}")
    listed = tmp_path / "list.csv"
    listed.write_text("file,concentration\n" + "".join(f"u{c:g}.csv,{c}\n" for c in cases.LEVELS))
    command = {
        "settings": ("evaluate", plate, "--concentrations", note, "--settings", settings, "--json", settings),
        "note": ("fit", plate, "--concentrations", note, "--out", note),
        "listed": ("fit", listed, "--out", tmp_path / "u5.csv"),
        "bundle": ("predict", bundle, "--at", 5, "--out", bundle),
        "unknown": ("quantify", bundle, unknown, "--json", unknown),
        "blank": ("quantify", bundle, unknown, "--blank", plate, "--json", plate),
    }[which]
    assert "is read by this command" in run(*command, "--force", code=2).output


def test_names_with_numbers_have_no_suffix_and_bundles_need_none(bench, tmp_path):
    for name in ("model", "assay-v1.2", "A.BUNDLE"):
        fit(bench / "standards.csv", tmp_path / name, "-q")
        assert (tmp_path / name).is_file()


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg", ".jpg", ".tif", ".webp", ".eps"])
def test_every_format_of_figure_says_who_wrote_it(tmp_path, suffix):
    from geonode.report.style import new_figure, save_figure

    path = save_figure(new_figure(2.0, 2.0)[0], tmp_path / f"f{suffix}")
    assert FIGURE.is_ours(path)
    assert not FIGURE.is_ours(bench_figure(tmp_path / f"other{suffix}"))


def bench_figure(path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.0, 2.0))
    figure.savefig(path)
    return path


def test_a_folder_of_other_things_is_not_written_into(bench, tmp_path, monkeypatch):
    bundle, folder = bench / "assay.bundle", tmp_path / "mine"
    folder.mkdir()
    run("report", bundle, "--out", folder, "-q")  # empty
    assert "--force to replace it" in run("report", bundle, "--out", folder, code=2).output
    written = []
    monkeypatch.setattr("geonode.report.write_report.write_report", lambda *to: (written.append(to[1]), ([], []))[1])
    run("report", bundle, "--out", folder, "--force", "-q")
    assert written == [folder]
    for name in ("notes.txt", "report.html", "report.json"):
        other = tmp_path / name.replace(".", "-")
        other.mkdir()
        (other / name).write_text("mine")
        for command in (("report", bundle, "--out", other, "--force"), ("demo", "--out", other)):
            assert "geonode did not write there" in run(*command, code=2).output
        assert [p.name for p in other.iterdir()] == [name] and (other / name).read_text() == "mine"
    assert "is a file" in run("report", bundle, "--out", bench / "unknown.csv", code=2).output
    assert "give a folder in place of -" in run("report", bundle, "--out", "-", code=2).output


def test_a_resumed_fit_replaces_its_own_bundle(bench, tmp_path):
    out, states = tmp_path / "m.bundle", tmp_path / "run"
    options = ("--flow", "path_independent", "--epochs", 1, "--device", "cpu", "--checkpoint", states, "--out", out)
    run("fit", bench / "standards.csv", *options)
    run("fit", bench / "standards.csv", *options, "--resume")
    out.write_text("mine")
    assert "geonode wrote it is not" in run("fit", bench / "standards.csv", *options, "--resume", code=2).output


@pytest.mark.parametrize("idle", [("--int8",), ("--distill",), ("--max-error", "0.1")])
def test_a_reduction_that_a_package_does_not_have_is_refused(bench, tmp_path, idle):
    said = run("export", bench / "assay.bundle", "--pt2", tmp_path / "a.pt2", *idle, code=2).output
    assert f"{idle[0]} would have no effect on a torch.export package" in said
    assert not list(tmp_path.iterdir())
