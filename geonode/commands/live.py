"""What `geonode fit` shows while it trains: progress, and below it losses, throughput and what the GPU does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from geonode.commands.common import progress_columns, reporter

Report = Callable[[str, int, int], None]
Watcher = Callable[[dict[str, float]], None]

# name of the figure → how it is shown; those that are not there are left out
_SHOWN: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("loss/total", lambda v: f"loss {v:.3g}"),
    ("evaluation/data_loss", lambda v: f"best {v:.3g}"),
    ("rate/steps_per_s", lambda v: f"{v:.3g} steps/s"),
    ("rate/samples_per_s", lambda v: f"{v:,.0f} samples/s"),
    ("device/sm_activity", lambda v: f"SM {v:.0f} %"),
    ("device/coarse_busy", lambda v: f"GPU busy {v:.0f} %"),
    ("device/power_w", lambda v: f"{v:.0f} W"),
    ("device/temperature_c", lambda v: f"{v:.0f} °C"),
    ("device/memory_used_bytes", lambda v: f"{v / 1e9:.1f} GB"),
)


def summary(values: Mapping[str, float]) -> str:
    """The figures of a training in a line, from those that `geonode.training.monitoring.Monitoring` gathers."""
    return " · ".join(show(values[name]) for name, show in _SHOWN if name in values)


@contextmanager
def live_view(quiet: bool) -> Iterator[tuple[Report | None, Watcher | None]]:
    """``report(what, done, total)`` and ``watcher(values)`` of a view on stderr; None for both where ``quiet``.

    Where stderr is no terminal nothing is drawn.
    """
    if quiet:
        yield None, None
        return
    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text

    class View(Progress):
        line = ""

        def get_renderables(self) -> Iterator[Any]:
            yield from super().get_renderables()
            if self.line:
                yield Text(self.line, style="dim")

    with View(*progress_columns(), console=Console(stderr=True), transient=True) as view:

        def watch(values: dict[str, float]) -> None:
            view.line = summary(values)
            view.refresh()

        yield reporter(view), watch
