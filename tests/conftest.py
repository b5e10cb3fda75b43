"""What every test may use: the shared data, one torch thread, the hypothesis profile, the gpu marker."""

from __future__ import annotations

import functools
import gc
import os
from pathlib import Path
from typing import Any

# Before torch is imported: two workers on two cores must not start two threads each.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import typer.testing
from hypothesis import HealthCheck, settings

from tests.interpreter import import_kernels
from tests.known_widths import widths_made_once

import_kernels()

ROOT = Path(__file__).resolve().parent.parent

# Derandomised, so that a red run is red for everybody; HYPOTHESIS_PROFILE=explore looks for new cases.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]}
settings.register_profile("fixed", max_examples=25, derandomize=True, **_COMMON)
settings.register_profile("explore", max_examples=1000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


# A program's tree of commands and options, which `CliRunner.invoke` makes anew each time: 30 ms of a processor.
typer.testing._get_command = functools.cache(typer.testing._get_command)  # pyright: ignore[reportPrivateImportUsage]


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


@pytest.fixture(scope="session", autouse=True)
def known_widths():
    """What `tests.known_widths` says, in every test."""
    with widths_made_once():
        yield


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


TOGETHER = ("tests/adaptation", "tests/export", "tests/report")
"""Folders whose files share models that take seconds to make."""


def group_of(nodeid: str) -> str:
    """Tests that one worker runs, so that what they share is made once: those of a file, or of such a folder."""
    file = nodeid.split("::")[0]
    return next((folder for folder in TOGETHER if file.startswith(f"{folder}/")), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With several workers (`-n 2`), groups in the order below, each to whichever worker is free.

    Another `--dist` that is asked for is left to pytest-xdist: on a GPU most tests stand in one file and share nothing.
    """
    if config.option.dist != "load":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    config.option.loadscopereorder = False
    return ByGroup(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups with the most slow tests first, then the largest: at the end no worker waits for another's long one."""
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        groups.setdefault(group_of(item.nodeid), []).append(item)
    order = sorted(groups.values(), key=lambda group: (-sum("slow" in item.keywords for item in group), -len(group)))
    items[:] = [item for group in order for item in group]
    _skip_without_cuda(items)


def pytest_collection_finish() -> None:
    """What is loaded by now stays: no search for garbage has to walk through it again (half a second each time). And
    what tests load and trace later does not set off a search at every 700th object, which was up to a twentieth of
    them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 10, 50)


def _skip_without_cuda(items: list[pytest.Item]) -> None:
    if not any("gpu" in item.keywords for item in items):
        return
    import torch

    if not torch.cuda.is_available():
        for item in items:
            if "gpu" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="no CUDA device here"))
