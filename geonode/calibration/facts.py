"""What answers need to know of a calibration's standards besides the curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geonode.calibration.assessment.curve_check import CurveCheck
from geonode.calibration.inverse.turns import turns_of
from geonode.calibration.remarks import wide_limits_of
from geonode_runtime.answers import Facts
from geonode_runtime.remedies import VerdictRules
from geonode_runtime.shapes import Shapes

if TYPE_CHECKING:
    from geonode.calibration.calibration import Calibration


def facts_of(made: Calibration, check: CurveCheck) -> Facts:
    """Of the calibration ``made``; ``check`` says whether PLS answers in place of what would."""
    pls, closer = check.in_answers(made.unit)
    cautions = (*made.standing.cautions, *([closer] if closer else []))
    usable = made.response.responds or check.pls_is_better  # where PLS is the better tool, it answers
    declines = "" if check.pls_is_better else made.standing.declines
    rules = VerdictRules(*made.range, made.has_blank, made.q_limit, made.t2_limit, pls is None, usable, declines)
    wide = not made.checked or bool(wide_limits_of(made))
    shapes = Shapes(made.gp.level_means, made.inverse.projection.scale, wide)
    curve, within = made.inverse, made.inverse.inside
    turns = turns_of(curve.grid[within], curve.mean[within])
    return Facts(len(made.levels), rules, made.standard_spectra, shapes, pls, cautions, made.standing.untold, turns)
