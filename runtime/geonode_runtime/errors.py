"""The errors that a user can put right: one sentence that names the file, row, column or argument and the remedy."""

from __future__ import annotations


class GeonodeError(Exception):
    """Base of all errors raised on purpose."""


class InputError(GeonodeError, ValueError):
    """A value or argument that cannot be used; the text names it and says what to do."""


class OutputError(GeonodeError, OSError):
    """A file that cannot be written; the text names it, and nothing was left half-written."""
