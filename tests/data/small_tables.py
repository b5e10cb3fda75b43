"""Small tables of spectra whose right reading is known, for tests of readers."""

from __future__ import annotations

import numpy as np

X = np.arange(400.0, 430.0)


def spectrum(c: float) -> np.ndarray:
    return np.round(0.1 + 0.01 * c + 0.002 * np.arange(len(X)) * (1 + 0.3 * c), 4)


def table(names, levels, delimiter=",", first="nm", x=X) -> str:
    rows = [delimiter.join([first, *names])]
    rows += [delimiter.join([f"{a:g}", *(f"{spectrum(c)[i]:.4f}" for c in levels)]) for i, a in enumerate(x)]
    return "\n".join(rows)


def write(path, content: str):
    path.write_text(content, encoding="utf-8")
    return path


def levels_by_name(data) -> dict[str, float]:
    return dict(zip(data.names, data.concentrations.tolist(), strict=True))


LIST = "file,concentration,temperature\ns0.csv,{0},21.5\ns10.csv,{1},22.5\ns20.csv,{2},23.0\ns40.csv,{3},25.5\n"


def files(tmp_path):
    for c in (0, 10, 20, 40):
        write(tmp_path / f"s{c}.csv", table(["absorbance"], (c,)))
