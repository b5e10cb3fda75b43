"""Numbers as readers get them: a few digits, 0 where a value is nothing beside its neighbours; on the page too."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from geonode.calibration import Calibration
from geonode.report.answer_figure import in_words
from geonode.report.browser.section import script
from geonode.report.tables import number
from geonode_runtime.figures import figure
from tests.calibration.assays import LEVELS, WAVE, monotone, noisy
from tests.report.test_answers import NODE, needs_node

CASES = [
    (5.495e-06, 0.31, 4, "0"),
    (-5.495e-06, 0.31, 4, "0"),
    (0.0, 0.0, 4, "0"),
    (-0.0, 0.0, 4, "0"),
    (5.495e-06, 0.0, 4, "5.495e-06"),
    (5.495e-06, 8.0e-06, 4, "5.495e-06"),  # an assay in mol/L: small, and not small beside its interval
    (4.9e-04, 0.31, 4, "0"),
    (5.1e-04, 0.31, 4, "0.00051"),
    (33.034, 34.1, 4, "33.03"),
    (12345.6, 13000.0, 4, "12350"),
    (1.2346e7, 0.0, 4, "1.235e+07"),
    (123456.0, 0.0, 3, "123000"),
    (0.04, 100.0, 3, "0"),
    (7.2, -9.0, 3, "7.2"),
]


@pytest.mark.parametrize(("value", "beside", "digits", "written"), CASES)
def test_figures(value: float, beside: float, digits: int, written: str) -> None:
    assert figure(value, " mM", beside=beside, digits=digits) == f"{written} mM"


@needs_node
def test_the_page_writes_the_same() -> None:
    program = f"{script('numbers.js')}\nconst cases = {json.dumps([case[:3] for case in CASES])};"
    program += "process.stdout.write(JSON.stringify(cases.map((one) => GeonodeNumbers.figure(...one))));"
    said = subprocess.run([str(NODE), "-e", program], capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == [case[3] for case in CASES]


def test_tables_have_three_digits_and_a_dash() -> None:
    assert [number(value, " nM") for value in (1234.5, 0.012345, None, float("nan"))] == [
        "1230 nM",
        "0.0123 nM",
        "–",
        "–",
    ]
    assert number(2e-7, " nM", beside=0.5) == "0 nM"


def test_an_answer_that_is_nothing_is_written_as_zero() -> None:
    calibration = Calibration(LEVELS, noisy(monotone, LEVELS, 0), WAVE)
    found = calibration.quantify(noisy(monotone, 0.0, 3)[0])
    (one,) = found.components
    tiny = replace(found, nearest=5.495e-06, components=(replace(one, estimate=5.495e-06, low=1e-9),), low=1e-9)
    said = tiny.sentence("mM")
    assert said.startswith(f"{found.verdict}: 0 mM") and f" 0 to {figure(one.high)} mM" in said


def test_the_figure_of_a_blank_says_zero() -> None:
    import geonode

    standards = geonode.data.SpectralDataset(noisy(monotone, LEVELS, 0), LEVELS, WAVE)
    model = geonode.fit(standards, config=geonode.GeodesicConfig(predictor="gp"))
    answer = model.quantify(noisy(monotone, 0.0, 3)[0])
    shown = replace(answer, nearest=5.495e-06)
    assert "predicted at 0," in in_words(shown) and np.isfinite(shown.overlay.half).all()
