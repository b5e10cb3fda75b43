"""The page of a recorded run in a browser: every plot there to see, nothing asked of the network, no error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from geonode.bench import plots
from geonode.bench.page import html
from tests.report.browsing import browser  # noqa: F401 - the fixture is used by its name

RESULTS = Path(__file__).resolve().parent.parent.parent / "benchmarks" / "results"
RECORDS = [RESULTS / "bench-NVIDIA-H200.json", RESULTS / "bench-full-NVIDIA-H200.json"]  # cut short, and whole


def opened(chromium, path: Path) -> tuple[dict[str, float], list[str], list[str]]:
    """Height of every plot that can be seen, by id; requests other than for the page; messages of its console."""
    asked: list[str] = []
    said: list[str] = []
    context = chromium.new_context(offline=True)
    page = context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_load_state("load")
    seen = {}
    for figure in page.query_selector_all("figure svg[id^=plot-]"):
        box = figure.bounding_box()
        curves = figure.query_selector_all("path, use")
        if figure.is_visible() and box is not None and len(curves) > 20:
            seen[figure.get_attribute("id")] = box["height"]
    context.close()
    outside = [url for url in asked if url != path.as_uri() and not url.startswith("data:")]
    return seen, outside, said


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_a_recorded_run_shows_every_plot_offline_and_without_a_word_in_the_console(browser, record, tmp_path):  # noqa: F811
    result = json.loads(record.read_text())
    page = tmp_path / "page.html"
    page.write_text(html(result), encoding="utf-8")
    seen, outside, said = opened(browser, page)
    names = [name for name, _, _ in plots.all_plots(result)]
    whole = bool(result["sweep"] and result["curve"])  # a run that was cut short shows what it has
    assert len(names) >= 6 and seen.keys() <= {f"plot-{name}" for name in names}
    assert len(seen) == len(names) if whole else {"plot-roofline", "plot-activity"} <= seen.keys()
    assert min(seen.values()) > 200  # pixels: not collapsed
    assert outside == [] and said == []


def test_a_page_that_asks_the_network_or_fails_is_noticed(browser, tmp_path):  # noqa: F811
    page = tmp_path / "bad.html"
    page.write_text(
        '<figure><svg id="plot-x"></svg></figure><img src="http://example.invalid/a.png"><script>a.b</script>'
    )
    seen, outside, said = opened(browser, page)
    assert seen == {} and outside == ["http://example.invalid/a.png"] and said
