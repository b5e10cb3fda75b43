"""The site builds strictly, with the tutorial executed, and asks nothing of the network."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT
from tests.forks import python

API = sorted((ROOT / "docs" / "api").glob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = python("-m", "mkdocs", "build", "--strict", "--site-dir", folder, cwd=ROOT, env=environment, timeout=580)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return folder


class _Loads(HTMLParser):
    """What a page loads by itself, and its images without alternative text."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.without_alt: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag in ("script", "img", "iframe"):
            self.loads.append(found.get("src", ""))
        if tag == "link" and found.get("rel") in ("stylesheet", "preconnect", "icon", "preload"):
            self.loads.append(found.get("href", ""))
        if tag == "img" and not found.get("alt"):
            self.without_alt.append(found.get("src", ""))


@pytest.mark.slow
def test_site_is_complete_and_loads_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert "<!-- recorded:" not in text, page
        seen = _Loads()
        seen.feed(text)
        assert not [url for url in seen.loads if re.match(r"(https?:)?//", url)], page
        assert not seen.without_alt, page
    tutorial = (site / "tutorial" / "twelve_steps.html").read_text(encoding="utf-8")
    assert all(f">{step} · " in tutorial for step in range(1, 13))
    assert "geonode_runtime" in tutorial and "runtime: quantified" in tutorial
    assert len(list((site / "tutorial").glob("*.png"))) == 2


def test_a_tutorial_that_hangs_is_stopped(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "_site")
    limited = importlib.import_module("notebook").limited
    with pytest.raises(TimeoutError, match=r"longer than 0\.05 s"), limited(0.05):
        threading.Event().wait(20.0)
    with limited(0.05):
        pass
    threading.Event().wait(0.1)  # what ended in time is left alone


def _public() -> list[str]:
    return [
        line[4:].strip() for page in API for line in page.read_text(encoding="utf-8").splitlines() if line[:4] == "::: "
    ]


def _named(name: str) -> object:
    """What stands under a dotted name. A function may shadow its module, so the module is taken from sys.modules."""
    try:
        importlib.import_module(name)
        return sys.modules[name]
    except ImportError:
        module, _, last = name.rpartition(".")
        importlib.import_module(module)
        return getattr(sys.modules[module], last)


@pytest.mark.parametrize("name", _public())
def test_public_names_are_documented_and_their_arguments_exist(name):
    thing = _named(name)
    text = inspect.getdoc(thing) or ""
    assert text, f"{name} has no docstring"
    section = re.search(r"^Args:\n((?:[ ]{4}.*\n|\n)*)", text + "\n", re.MULTILINE)
    if section is None or inspect.ismodule(thing):
        return
    named = re.findall(r"^    ([\w*][\w*, ]*):", section[1], re.MULTILINE)
    real = set(inspect.signature(thing).parameters)  # pyright: ignore[reportArgumentType]
    wrong = {part.strip(" *") for group in named for part in group.split(",")} - real
    assert not wrong, f"{name} documents arguments that it does not have: {sorted(wrong)}"
