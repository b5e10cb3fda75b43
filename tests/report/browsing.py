"""A browser for the tests of pages, which notes everything that a page asks for or complains of."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

CHROMIUM = os.environ.get("GEONODE_CHROMIUM", "/usr/bin/chromium")
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 375, "height": 800}
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")


@pytest.fixture(scope="module")
def browser() -> Iterator:
    """One Chromium for a module; skips where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not os.path.exists(CHROMIUM):
        pytest.skip(f"no Chromium at {CHROMIUM} (GEONODE_CHROMIUM names another)")
    with playwright.sync_playwright() as started:
        one = started.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield one
        one.close()


def page_of(browser, path: Path) -> Iterator[Callable]:
    """Yields what opens the page at a size; afterwards no error may be on the console and nothing may have been asked
    of the network."""
    contexts, said, asked = [], [], []
    address = path.as_uri()

    def decide(route) -> None:
        if route.request.url == address or route.request.url.startswith("data:"):
            return route.continue_()
        asked.append(route.request.url)
        return route.abort()

    def open_page(viewport: dict[str, int], **options):
        context = browser.new_context(viewport=viewport, offline=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        context.route("**/*", decide)
        page.goto(address)
        return page

    yield open_page
    assert said == [] and asked == []
    for context in contexts:
        context.close()
