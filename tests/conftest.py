"""What every test may use: the shared data, one torch thread, the hypothesis profile, the gpu marker."""

from __future__ import annotations

import os
from pathlib import Path

# Before torch is imported: two workers on two cores must not start two threads each.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

from tests.interpreter import import_kernels

import_kernels()

ROOT = Path(__file__).resolve().parent.parent

# Derandomised, so that a red run is red for everybody; HYPOTHESIS_PROFILE=explore looks for new cases.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]}
settings.register_profile("fixed", max_examples=25, derandomize=True, **_COMMON)
settings.register_profile("explore", max_examples=1000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def shared_data_path() -> Path | None:
    """The folder of real spectra: ``$GEONODE_SHARED/data`` or ``../shared/data``; None where absent."""
    root = Path(os.environ["GEONODE_SHARED"]) if "GEONODE_SHARED" in os.environ else ROOT.parent / "shared"
    return root / "data" if (root / "data").is_dir() else None


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with ``series/`` and ``raw/``; the test is skipped where there is none."""
    path = shared_data_path()
    if path is None:
        pytest.skip("no real spectra here: ../shared/data is absent (GEONODE_SHARED names another folder)")
    return path


@pytest.fixture
def one_thread():
    """One torch thread while the test runs: for bitwise comparisons and timings."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=["float64", "float32"])
def dtype(request):
    """Both working precisions, as torch dtypes."""
    import torch

    return getattr(torch, request.param)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not any("gpu" in item.keywords for item in items):
        return
    import torch

    if not torch.cuda.is_available():
        for item in items:
            if "gpu" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="no CUDA device here"))
