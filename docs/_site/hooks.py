"""MkDocs hooks: the tutorial is executed while the site is built, and tables come from the recorded JSON."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))  # MkDocs loads this file alone, without its folder

import notebook
import tables

_PLACE = re.compile(r"<!-- recorded: (\w+) -->")


def on_files(files: Any, config: Any) -> Any:
    """Add the executed tutorial and its figures."""
    page, figures = notebook.as_markdown(notebook.executed(), "twelve_steps")
    files.append(File.generated(config, "tutorial/twelve_steps.md", content=page))
    for name, content in figures.items():
        files.append(File.generated(config, f"tutorial/{name}", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Put each named table in its place; a name that does not exist stops the build."""
    return _PLACE.sub(lambda match: tables.TABLES[match[1]](), markdown)
