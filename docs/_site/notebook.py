"""The tutorial: jupytext source → executed notebook → a page of markdown with its figures."""

from __future__ import annotations

import base64
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[1] / "tutorial" / "twelve_steps.py"
LIMIT = 500.0
"""Seconds that the whole tutorial may take on a busy machine."""


def executed() -> Any:
    """The notebook, run from its first cell to its last; an exception in a cell is raised here.

    By IPython in this process: a kernel of its own would load torch once more, which takes longer than most cells.
    """
    import jupytext
    from IPython.core.history import HistoryManager
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    class Shell(InteractiveShell):
        def init_history(self) -> None:
            """None: the cells are nobody's input to be found again."""
            self.history_manager = HistoryManager(shell=self, parent=self, enabled=False)

        def enable_gui(self, gui: Any = None) -> None:
            """Figures are captured: there is no window to wait for."""

    notebook = jupytext.read(SOURCE)
    shell = Shell.instance()
    try:
        with limited(LIMIT):
            shell.run_line_magic("matplotlib", "inline")
            for cell in notebook.cells:
                if cell.cell_type == "code":
                    with capture_output() as captured:
                        done = shell.run_cell(cell.source)
                    done.raise_error()
                    cell.outputs = [{"name": "stdout", "text": captured.stdout}]
                    cell.outputs += [{"data": output.data} for output in captured.outputs]
    finally:
        Shell.clear_instance()
    return notebook


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """What runs within is stopped after so many seconds, even where it waits; only in the main thread.

    Raises:
        TimeoutError: it was.
    """

    def stop(*_: Any) -> None:
        raise TimeoutError(f"the tutorial took longer than {seconds:g} s, and was stopped where it was.")

    before = signal.signal(signal.SIGUSR1, stop)
    timer = threading.Timer(seconds, signal.pthread_kill, (threading.get_ident(), signal.SIGUSR1))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        signal.signal(signal.SIGUSR1, before)


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
            figures[file] = content if isinstance(content, bytes) else base64.b64decode(content)
            parts.append(f"![{alt}]({file})")
    return "\n\n".join(parts) + "\n", figures


def _outputs(cell: Any) -> Iterator[tuple[str, Any]]:
    printed = "".join(output["text"] for output in cell.outputs if output.get("name") == "stdout").strip()
    if printed:
        yield "text", printed
    for output in cell.outputs:
        if "image/png" in output.get("data", {}):
            yield "figure", output["data"]["image/png"]
