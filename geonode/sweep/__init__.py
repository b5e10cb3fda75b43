"""Many trainings: sets × settings × seeds × folds from one file, on Ray or on workers that share nothing but files."""

from geonode.sweep.bundles import merge_bundles, merge_models
from geonode.sweep.jobs import Job, share, stacks
from geonode.sweep.results import Results, merge
from geonode.sweep.run import run_job, run_stack
from geonode.sweep.spec import DataSet, Spec, read_spec

__all__ = [
    "DataSet",
    "Job",
    "Results",
    "Spec",
    "merge",
    "merge_bundles",
    "merge_models",
    "read_spec",
    "run_job",
    "run_stack",
    "share",
    "stacks",
]
