"""The page that answers: an unknown's file, dropped on the report, is quantified in the browser.

``data`` packs the fitted calibration into the page, ``section`` writes its HTML and gathers the scripts. The scripts
compute what `geonode quantify` computes, from the same arrays; nothing is loaded and nothing is sent.
"""

from geonode.report.browser.data import answer_data
from geonode.report.browser.section import answer_scripts, answer_section, answer_style

__all__ = ["answer_data", "answer_scripts", "answer_section", "answer_style"]
