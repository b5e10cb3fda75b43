"""Many trainings: folds × seeds × settings from one file, on Ray or on workers that share nothing but files."""

from geonode.sweep.jobs import Job, run_job, run_stack, stacks
from geonode.sweep.results import Results, merge
from geonode.sweep.spec import Spec, read_spec

__all__ = ["Job", "Results", "Spec", "merge", "read_spec", "run_job", "run_stack", "stacks"]
