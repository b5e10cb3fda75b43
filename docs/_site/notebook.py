"""The tutorial: jupytext source → executed notebook → a page of markdown with its figures."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[1] / "tutorial" / "twelve_steps.py"
TIMEOUT = 300  # seconds a cell may take on a busy machine


def executed() -> Any:
    """The notebook, run from its first cell to its last; an exception in a cell is raised here."""
    import jupytext
    from nbclient import NotebookClient

    notebook = jupytext.read(SOURCE)
    NotebookClient(notebook, timeout=TIMEOUT, kernel_name="python3").execute()
    return notebook


def as_markdown(notebook: Any, name: str) -> tuple[str, dict[str, bytes]]:
    """The page, and its figures by file name (PNG).

    Raises:
        ValueError: a figure without an alternative text, which is ``alt="…"`` in its cell's first line.
    """
    parts: list[str] = []
    figures: dict[str, bytes] = {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for kind, content in _outputs(cell):
            if kind == "text":
                parts.append(f'```text title="prints"\n{content}\n```')
                continue
            alt = cell.metadata.get("alt")
            if alt is None:
                raise ValueError(f'a figure without alt text; write alt="…" behind its # %%: {cell.source[:60]!r}')
            file = f"{name}_{len(figures) + 1}.png"
            figures[file] = base64.b64decode(content)
            parts.append(f"![{alt}]({file})")
    return "\n\n".join(parts) + "\n", figures


def _outputs(cell: Any) -> Iterator[tuple[str, str]]:
    printed = "".join(output.text for output in cell.outputs if output.get("name") == "stdout").strip()
    if printed:
        yield "text", printed
    for output in cell.outputs:
        if "image/png" in output.get("data", {}):
            yield "figure", output.data["image/png"]
