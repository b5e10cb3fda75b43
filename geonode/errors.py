"""Every error geonode raises on purpose.

One rule for the text: one sentence that names the file, row, column or argument and says what to do. The command
line prints that sentence and exits with code 2; it never shows a traceback for these.
"""

from __future__ import annotations

from geonode_runtime.errors import GeonodeError, InputError, OutputError

__all__ = [
    "BundleError",
    "DeviceError",
    "GeonodeError",
    "InputError",
    "Interrupted",
    "OutputError",
    "ReaderError",
    "SolverError",
    "TrainingError",
    "cause",
]


def cause(error: BaseException) -> str:
    """What ``error`` says, without the number of the system and the file, which the sentence about it names."""
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


class ReaderError(InputError):
    """A file that cannot be read as spectra; the text names the file and the place in it."""


class BundleError(InputError):
    """A saved model that is truncated, foreign, or of a version this release cannot read."""


class DeviceError(GeonodeError, RuntimeError):
    """A device, precision or kernel that was asked for explicitly and cannot be had here."""


class SolverError(GeonodeError, RuntimeError):
    """A geodesic that did not converge, raised only where ``throw=True`` asks for it."""


class TrainingError(GeonodeError, RuntimeError):
    """A training that does not stay finite however often it is rolled back; the text says when and what to change."""


class Interrupted(GeonodeError):
    """A training that was told to stop (SIGTERM); the text says what is kept, and how to go on."""
