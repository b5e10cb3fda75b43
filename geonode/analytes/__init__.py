"""Several analytes at once: a learned embedding of the concentration plane, its geometry, and spectra on it."""

from geonode.analytes.answer import PlaneAnswer
from geonode.analytes.embedding import EnsembleEmbedding
from geonode.analytes.evaluation import HeldOut, evaluate_surface, leave_cells_out, leave_rows_out
from geonode.analytes.geometry import all_pairs, gauss_curvature
from geonode.analytes.node import fit_surface_nodes
from geonode.analytes.plane_calibration import PlaneCalibration, fit_plane
from geonode.analytes.plane_file import load_plane, save_plane
from geonode.analytes.surface_gp import SurfaceGP, SurfacePrediction

__all__ = [
    "EnsembleEmbedding",
    "HeldOut",
    "PlaneAnswer",
    "PlaneCalibration",
    "SurfaceGP",
    "SurfacePrediction",
    "all_pairs",
    "evaluate_surface",
    "fit_plane",
    "fit_surface_nodes",
    "gauss_curvature",
    "leave_cells_out",
    "leave_rows_out",
    "load_plane",
    "save_plane",
]
