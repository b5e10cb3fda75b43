"""Spectra of standards: data sets, files, a simulated assay, and the draws that training makes from them."""

from __future__ import annotations

from geonode.data.dataset import SpectralDataset
from geonode.data.given_standards import given_standards
from geonode.data.nanoparticles import (
    InstrumentParameters,
    NanoparticleParameters,
    SimulatedNanoparticles,
    simulate_nanoparticles,
)
from geonode.data.pairs import PairSampler, all_pairs, continuous_concentrations, decode_pairs, keyed_generator
from geonode.data.preprocessing import Preprocessing
from geonode.data.readers import Inspection, inspect_file, load_standards
from geonode.data.sensor import SensorParameters, SimulatedSensor, simulate_sensor
from geonode.data.simulate import AssayParameters, SimulatedAssay, simulate_assay
from geonode.data.simulated import SimulatedSpectra

__all__ = [
    "AssayParameters",
    "Inspection",
    "InstrumentParameters",
    "NanoparticleParameters",
    "PairSampler",
    "Preprocessing",
    "SensorParameters",
    "SimulatedAssay",
    "SimulatedNanoparticles",
    "SimulatedSensor",
    "SimulatedSpectra",
    "SpectralDataset",
    "all_pairs",
    "continuous_concentrations",
    "decode_pairs",
    "given_standards",
    "inspect_file",
    "keyed_generator",
    "load_standards",
    "simulate_assay",
    "simulate_nanoparticles",
    "simulate_sensor",
]
