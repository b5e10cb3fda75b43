"""Every code block of README.md and docs/ runs, or says why not and is checked."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from geonode.registry import Registry
from tests.docs import blocks
from tests.docs.blocks import ROOT, Block
from tests.export.operators import made_once

PAGES = blocks.pages()
SAMPLES = ROOT / "docs" / "howto" / "sample_data.md"
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


@pytest.fixture(scope="session")
def samples(tmp_path_factory) -> Path:
    """The files that docs/howto/sample_data.md makes for practising, once per worker."""
    folder = tmp_path_factory.mktemp("samples")
    with pytest.MonkeyPatch.context() as patch:
        _enter(folder, patch)
        for block in blocks.blocks(SAMPLES):
            blocks.write_file(block)
            if block.runs:
                blocks.run(block, {"__name__": "__page__"})
    return folder


@pytest.fixture(scope="session")
def graphs() -> Iterator[None]:
    """Several pages export one model: a graph of the same numbers is traced once, for that takes seconds."""
    from geonode.export import export

    made: dict[str, bytes] = {}
    trace = export.onnx_model

    def traced(module: torch.nn.Module, width: int | None) -> Any:
        key = _key(module, width)
        if key not in made:
            made[key] = trace(module, width).SerializeToString()
        import onnx

        return onnx.ModelProto.FromString(made[key])  # another one: what is exported writes into it

    with pytest.MonkeyPatch.context() as patch, made_once():
        patch.setattr(export, "onnx_model", traced)
        yield


def _key(module: torch.nn.Module, width: int | None) -> str:
    """Of all that a graph may be traced from: parameters, buffers, kept in files or not, and plain attributes."""
    known = hashlib.sha256(f"{width} {module}".encode())
    for name, part in module.named_modules():
        for attribute, value in sorted(vars(part).items()):
            if attribute not in ("_parameters", "_buffers", "_modules"):
                _add(known, f"{name}.{attribute}", value)
    for name, value in sorted([*module.named_parameters(), *module.named_buffers()]):
        _add(known, name, value)
    return known.hexdigest()


def _add(known: Any, name: str, value: Any) -> None:
    if isinstance(value, torch.Tensor | np.ndarray):
        own = value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
        known.update(f"{name} {own.dtype} {own.shape}".encode() + own.tobytes())
    elif isinstance(value, list | tuple):
        known.update(f"{name} {len(value)}".encode())
        for k, one in enumerate(value):
            _add(known, f"{name}.{k}", one)
    elif value is None or isinstance(value, bool | int | float | str):
        known.update(f"{name} {value!r}".encode())


@pytest.fixture
def registries(monkeypatch) -> None:
    """What a page registers is forgotten after it."""
    modules = [module for name, module in sys.modules.items() if name.startswith("geonode")]
    for one in {id(v): v for module in modules for v in vars(module).values() if isinstance(v, Registry)}.values():
        one.names()
        monkeypatch.setattr(one, "_items", dict(one._items))


@pytest.fixture
def folder(samples, tmp_path, monkeypatch) -> Path:
    """A folder of its own with those files, where a page's blocks run."""
    shutil.copytree(samples, tmp_path, dirs_exist_ok=True)
    _enter(tmp_path, monkeypatch)
    return tmp_path


def _enter(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Work in ``folder``; the programs of this environment come first, and figures need no screen."""
    patch.chdir(folder)
    patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    patch.setenv("MPLBACKEND", "Agg")


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_blocks_are_marked(page):
    wrong = [f"{b.place}: {problem}" for b in blocks.blocks(page) if (problem := blocks.complaint(b))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if any(b.runs for b in blocks.blocks(p))], ids=lambda p: p.stem)
def test_blocks_run(page, folder, registries, graphs):
    namespace: dict[str, Any] = {"__name__": "__page__"}
    for bundle in blocks.fitted(page):
        Path(bundle).unlink(missing_ok=True)  # the page makes it: the one among the samples is in its way
    for block in blocks.blocks(page):
        if block.runs:
            _named(blocks.run, block, namespace)
        else:
            blocks.write_file(block)


@pytest.mark.parametrize("page", [p for p in PAGES if any(b.reason for b in blocks.blocks(p))], ids=lambda p: p.stem)
def test_blocks_that_do_not_run_are_right_in_form(page):
    for block in blocks.blocks(page):
        if block.reason and block.language in ("python", "bash"):
            _named(blocks.check, block)


def _named(function, block: Block, *rest) -> None:
    """Call, and let a failure name the page and the line."""
    try:
        function(block, *rest)
    except Exception as error:
        raise AssertionError(f"{block.place}: {type(error).__name__}: {error}") from error


# --- the checker itself ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["parameter", "kept", "not kept", "list", "number", "width"])
def test_graphs_are_shared_only_where_all_that_they_are_traced_from_is_the_same(what):
    def made(other: str = "") -> str:
        part = torch.nn.Linear(1, 1)
        with torch.no_grad():
            for one in part.parameters():
                one.fill_(2.0 if other == "parameter" else 1.0)
        for name in ("kept", "not kept"):
            value = torch.full((2,), 2.0 if other == name else 1.0)
            part.register_buffer(name.replace(" ", "_"), value, persistent=name == "kept")
        vars(part).update(steps=[0.5, (1.0, 2.0 if other == "list" else 1.0)], times=2 if other == "number" else 1)
        return _key(torch.nn.Sequential(part), 2 if other == "width" else 1)

    assert made() == made() != made(what)


def _block(language: str, code: str, title: str = "") -> Block:
    return Block(ROOT / "README.md", 1, language, title, code)


def test_an_unfenced_command_and_an_unknown_language_are_seen():
    assert "fence it" in blocks.complaint(_block("", "geonode fit a.csv\n"))
    assert "none of" in blocks.complaint(_block("fortran", "x = 1\n"))
    assert "reason" in blocks.complaint(_block("bash", "true\n", "not run:"))
    assert not blocks.complaint(_block("", "c(t) = s⁻¹(…)\n"))


@pytest.mark.parametrize("words", [["fit", "a.csv", "--ouf", "m"], ["foretell", "m"], ["simulate", "methane", "--m"]])
def test_an_option_or_command_that_does_not_exist_is_seen(words):
    with pytest.raises(ValueError, match="has no"):
        blocks.check_options(words)


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "from geonode.data import nothing_like_it\n"),
        ("python", "for x in\n"),
        ("bash", "if true; then\n"),
        ("bash", "torchrun --nproc-per-node 2 -m geonode fit a.csv --outt b\n"),
        ("bash", "ssh host 'geonode fut a.csv'\n"),
        ("bash", "make nothing-like-it\n"),
    ],
)
def test_a_block_that_is_wrong_in_form_is_seen(language, code):
    with pytest.raises(Exception):  # noqa: B017 - whatever kind of error: the point is that it is one
        blocks.check(_block(language, code, "not run: needs a cluster"))


@pytest.mark.parametrize("code", ["geonode fit there-is-no-such-file.csv --out m\n", "false\n", "true | false\n"])
def test_a_command_that_fails_fails_the_page(code, folder):
    with pytest.raises(AssertionError, match=r"README\.md:1"):
        _named(blocks.run, _block("bash", code), {})
