"""Threads by the size of the work: the law, what is left behind, and what a fit costs in processor time."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from geonode.threads import PER_THREAD, threads_for

PROCESSOR_SECONDS = 10.0


@pytest.fixture
def four_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@given(st.integers(0, 10 * PER_THREAD), st.integers(1, 6))
def test_threads_grow_with_the_work_and_never_beyond_what_there_was(numbers, had):
    before = torch.get_num_threads()
    torch.set_num_threads(had)
    try:
        with threads_for(numbers) as count:
            assert count == torch.get_num_threads() == min(had, max(1, numbers // PER_THREAD))
        assert torch.get_num_threads() == had
    finally:
        torch.set_num_threads(before)


def test_what_was_is_there_again_after_an_error(four_threads):
    with pytest.raises(ValueError, match="inside"), threads_for(0):
        raise ValueError("inside")
    assert torch.get_num_threads() == 4


def test_blas_is_held_to_the_same_number(four_threads):
    from threadpoolctl import threadpool_info

    with threads_for(0):
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}


def test_geonode_fit_of_six_by_601_takes_ten_seconds_of_processors_at_most(tmp_path):
    """The command with everything it imports, default settings, as many threads as it likes: processor time of all
    cores together, so that what else the machine does does not count."""
    from geonode.commands.common import columns_csv
    from geonode.data import simulate_assay

    assay = simulate_assay(seed=0)
    heads = ["wavelength", *(f"{c:g}" for c in assay.concentrations.tolist())]
    (tmp_path / "s.csv").write_text(columns_csv(heads, [assay.wavelengths, *assay.spectra]), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "geonode", "fit", "s.csv", "--unit", "ppb", "--out", "s.bundle", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert taken <= PROCESSOR_SECONDS
