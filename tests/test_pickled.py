"""What a user holds goes through pickle, as processes of a pool and joblib.dump need it, and answers the same."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import geonode
from geonode.analytes import fit_plane
from geonode.data.sensor import simulate_sensor

ASSAY = geonode.simulate_assay(seed=0)
KINDS = {
    "pretrained": lambda: geonode.fit(ASSAY),
    "learned preprocessing": lambda: geonode.fit(ASSAY, preprocessing=["msc"]),
    "trained flow": lambda: geonode.fit(
        ASSAY, geonode.GeodesicConfig(flow="path_independent", epochs=3, members=2, predictor="node")
    ),
}


def through(what):
    return pickle.loads(pickle.dumps(what))


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_and_its_answers(kind):
    model = KINDS[kind]()
    answer = model.quantify(ASSAY.spectra[2])
    again = through(model)
    assert str(again.quantify(ASSAY.spectra[2])) == str(answer) == str(through(answer))
    for mine, other in zip(model.predict_spectra([7.0]), again.predict_spectra([7.0]), strict=True):
        np.testing.assert_array_equal(mine, other)
    assert through(again.calibration).held_out.interval.tolist() == model.calibration.held_out.interval.tolist()


def test_a_model_of_two_analytes():
    data = simulate_sensor(ph=[5.5, 6.5, 7.5], chloride=[0.0, 80.0, 300.0], wavelengths=range(400, 501, 10))
    model = fit_plane(data)
    assert str(through(model).quantify(data.spectra[4])) == str(model.quantify(data.spectra[4]))


def test_the_scikit_learn_estimator():
    levels = np.asarray(ASSAY.concentrations).ravel()
    fitted = geonode.GeodesicCalibrator().fit(ASSAY.spectra, levels)
    np.testing.assert_array_equal(through(fitted).predict(ASSAY.spectra), fitted.predict(ASSAY.spectra))
