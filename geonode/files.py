"""Files that are written whole or not at all: the runtime's way, under its own name here."""

from geonode_runtime.files import require_replaceable, write_atomically, write_text

__all__ = ["require_replaceable", "write_atomically", "write_text"]
