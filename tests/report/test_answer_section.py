"""The page's place for answers, without its scripts: what it says itself, and the data that it holds."""

from __future__ import annotations

from geonode.report.browser.section import answer_section
from tests.calibration.assays import monotone
from tests.report.test_answers import fitted


def test_a_preprocessing_that_only_geonode_does_is_said_on_the_page():
    model = fitted(monotone, preprocessing="baseline:asls,1e6")
    section = answer_section(model)
    assert "answer-data" not in section and "geonode quantify" in section


def test_the_pages_data_hold_no_text_that_could_end_their_element():
    section = answer_section(fitted(monotone))
    data = section.split('id="answer-data">', 1)[1]
    assert data.count("<") == 1 and data.endswith("</script>")
