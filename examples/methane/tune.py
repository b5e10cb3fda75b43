"""Between stages 1 and 2, for who wants to choose: eight small trainings, judged on the validation scans alone.

Learning rate × width on a quarter of the training scans; then the best of them on a sixteenth and on all, to see what
more scans would bring. The test scans are predicted by each too, but chosen is by validation.
"""

from __future__ import annotations

import time

from common import arguments, device_of, run, write_text
from stream import split
from train import namespace, rmse, train

from geonode.data.methane import ScanFile

RATES, WIDTHS = (1e-3, 3e-3, 1e-2), (16, 32)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--epochs", type=int, default=8)
    options = parser.parse_args()
    device = device_of(options.device)
    rows: list[str] = []
    with ScanFile(options.project / "scans.h5") as scans:
        training, validation, test = split(len(scans))

        def attempt(rate: float, width: int, used: int) -> float:
            """Train once; the validation error."""
            settings = namespace(epochs=options.epochs, batch=64, width=width, rate=rate, seed=options.seed)
            started = time.perf_counter()
            trained = train(scans, range(used), validation, settings, device)
            seconds = time.perf_counter() - started
            tested = rmse(trained.best_network().to(device), scans, test, device)
            rows.append(f"{rate:g},{width},{used},{trained.best:.5f},{tested:.5f},{seconds:.1f}")
            print(
                f"rate {rate:g}, width {width}, {used} scans: validation {trained.best:.4f}, test {tested:.4f} decades"
            )
            return trained.best

        few = max(len(training) // 4, 2)
        _, rate, width = min((attempt(rate, width, few), rate, width) for rate in RATES for width in WIDTHS)
        for used in (max(few // 4, 2), len(training)):
            attempt(rate, width, used)
    header = "rate,width,scans,validation_decades,test_decades,seconds\n"
    write_text(options.project / "tuning.csv", header + "\n".join(rows) + "\n")
    print(f"chosen by validation: --rate {rate:g} --width {width}")


if __name__ == "__main__":
    run(main)
