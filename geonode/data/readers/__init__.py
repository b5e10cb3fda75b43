"""Files of spectra, recognised by their content, never by their extension.

A reader is a class (`Reader`) in a file of its own in `geonode.data.readers.formats`; `READERS` holds all of them, and
the surest of those that recognise a file reads it. Nothing is guessed silently: what a reader drops, masks, averages
or assumes goes into the notes.
"""

from __future__ import annotations

from geonode.data.readers.base import READERS, Particularity, Reader, all_readers
from geonode.data.readers.inspection import Inspection, inspect_file
from geonode.data.readers.loading import load_standards, record
from geonode.data.readers.recognition import read_file, recognise
from geonode.data.readers.recording import Recording, Trace

__all__ = [
    "READERS",
    "Inspection",
    "Particularity",
    "Reader",
    "Recording",
    "Trace",
    "all_readers",
    "inspect_file",
    "load_standards",
    "read_file",
    "recognise",
    "record",
]
