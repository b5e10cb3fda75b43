"""The page in a browser: the slider works by keyboard and mouse, nothing is asked of the network, a phone shows it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace

import pytest

from tests.report.browsing import DESKTOP, PHONE, browser, page_of  # noqa: F401 - the fixture is used by its name


@pytest.fixture
def opened(browser, reported) -> Iterator:  # noqa: F811
    """Opens the page; afterwards no error may be on the console and nothing may have been asked of the network."""
    yield from page_of(browser, reported.folder / "report.html")


def state(page) -> SimpleNamespace:
    return SimpleNamespace(
        path=page.get_attribute("#prediction", "d"),
        band=page.get_attribute("#band", "d"),
        shown=page.inner_text("#shown-concentration"),
        said=page.inner_text("#shown-state"),
        spoken=page.get_attribute("#concentration", "aria-valuetext"),
    )


def all_differ(a: SimpleNamespace, b: SimpleNamespace) -> bool:
    return all(getattr(a, name) != getattr(b, name) for name in vars(a))


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_slider_changes_the_spectrum_by_keyboard(opened, viewport):
    page = opened(viewport)
    before = state(page)
    assert before.shown == "5 ppb" and before.path.startswith("M") and "NaN" not in before.path
    page.keyboard.press("Tab")
    page.focus("#concentration")
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    after = state(page)
    assert all_differ(before, after)
    assert float(after.shown.split()[0]) > 5.0
    for _ in range(10):
        page.keyboard.press("ArrowLeft")
    assert state(page) == before
    page.keyboard.press("End")
    assert "extrapolation" in state(page).said and state(page).shown == "75 ppb"


@pytest.mark.smoke
def test_the_slider_changes_the_spectrum_by_mouse(opened):
    page = opened(DESKTOP)
    before = state(page)
    page.locator("#concentration").scroll_into_view_if_needed()
    box = page.locator("#concentration").bounding_box()
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.5 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 0.5 * box["height"], steps=5)
    page.mouse.up()
    assert all_differ(before, state(page))
    assert float(state(page).shown.split()[0]) > 20.0


def test_the_curve_drawn_is_the_prediction_shown(opened):
    """The path, read back through the axes, is the row of the data under the slider."""
    page = opened(DESKTOP)
    worst = page.evaluate("""() => {
      const data = JSON.parse(document.getElementById("spectra-data").textContent);
      const row = data.mean[Number(document.getElementById("concentration").value)];
      const points = document.getElementById("prediction").getAttribute("d").match(/[ML][^ML]+/g)
        .map((p) => p.slice(1).split(" ").map(Number));
      const ticks = [...document.querySelectorAll("#spectrum .grid")].map((l) => Number(l.getAttribute("y1")));
      const labels = [...document.querySelectorAll("#spectrum .axes text[text-anchor=end]")].map((t) => +t.textContent);
      const scale = (labels[1] - labels[0]) / (ticks[1] - ticks[0]);
      const read = points.map((p) => labels[0] + (p[1] - ticks[0]) * scale);
      return Math.max(...read.map((v, j) => Math.abs(v - row[j]))) / Math.abs(scale);
    }""")
    assert worst < 0.1  # of a pixel: coordinates have one decimal


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_nothing_scrolls_sideways_and_letters_can_be_read(opened, viewport):
    page = opened(viewport)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    smallest = page.evaluate("""() => Math.min(...[...document.querySelectorAll("svg text")].map(
      (t) => t.getBoundingClientRect().height).filter((h) => h > 0))""")
    assert smallest >= 8.0


def test_light_on_purpose_and_printable(opened):
    page = opened(DESKTOP, color_scheme="dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(colour) == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light only"
    page.emulate_media(media="print")
    assert not page.is_visible("#concentration") and page.is_visible("#spectrum")
    assert page.is_visible("#shown-concentration")


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_marks_stand_where_the_thumb_is_at_each_standard(opened, reported, viewport):
    page = opened(viewport)
    box = page.locator("#concentration").bounding_box()
    marks = page.locator(".marks span").evaluate_all(
        "(all) => all.map((s) => [s.className, s.textContent, s.getBoundingClientRect()])"
    )
    standards = [mark for mark in marks if mark[0] == "standard"]
    assert len(standards) == len(reported.model.gp.levels) and marks[0][0] == "standard" and marks[-1][0] == "end"
    assert marks[0][1] == "0" and marks[-1][1] == "75"
    centres = [(one["left"] + one["right"]) / 2 for _, _, one in marks]
    assert centres[0] == pytest.approx(box["x"] + 8, abs=1.5)
    assert centres[-1] == pytest.approx(box["x"] + box["width"] - 8, abs=1.5)
    named = sorted((one["left"], one["right"]) for _, text, one in marks if text)
    assert all(a[1] <= b[0] + 1.0 for a, b in pairwise(named)), "labels lie on one another"


def test_a_screen_reader_hears_ends_and_standards(opened):
    page = opened(DESKTOP)
    words = page.inner_text("#" + page.get_attribute("#concentration", "aria-describedby"))
    assert words == "The slider goes from 0 to 75 ppb. Standards at 0, 10, 20, 30, 40, 60 ppb."
    assert page.get_attribute(".marks", "aria-hidden") == "true"


def test_without_javascript_the_figures_and_tables_are_there(opened):
    page = opened(DESKTOP, java_script_enabled=False)
    assert "needs JavaScript" in page.inner_text("noscript")
    assert page.locator("figure svg[role=img]").count() == 9


def test_hostile_names_are_shown_and_do_nothing(opened, reported):
    page = opened(DESKTOP)
    page.wait_for_timeout(50)
    assert page.title().startswith("Calibration report")
    assert page.locator("img").count() == 0
    assert reported.model.standards.names[0] in page.inner_text("#verdicts")


def test_every_control_and_figure_has_a_name(opened):
    page = opened(DESKTOP)
    assert page.get_by_role("slider", name="Concentration").count() == 1
    names = page.locator("svg[role=img]").evaluate_all("(all) => all.map((s) => s.getAttribute('aria-label'))")
    assert len(names) == 9 and all(names)
    assert page.get_by_role("region").count() >= 8
