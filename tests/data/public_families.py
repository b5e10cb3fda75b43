"""Files as they lie in public folders, made here: every family × locale × encoding × unit of the axis × labels."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tests.data import samples

LOCALES = [(",", "."), (";", ","), ("\t", ","), ("\t", "."), (";", "."), (" ", ".")]
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1", "cp1252"]
LINE_ENDS = ["\n", "\r\n", "\r"]
# (headers of such an axis, its unit as geonode calls it, from nm)
AXES: dict[str, tuple[list[str], str, Callable[[np.ndarray], np.ndarray]]] = {
    "nm": (
        ["nm", "Wavelength (nm)", "Wellenlänge [nm]", "wavelength", "Longueur d'onde (nm)", "WL_nm", "Lambda (nm)"],
        "nm",
        lambda x: x,
    ),
    "µm": (["Wavelength (µm)", "um", "wavelength [um]", "microns"], "µm", lambda x: x / 1000),
    "cm-1": (["Wavenumber (cm-1)", "cm-1", "1/cm", "Wellenzahl / cm-1", "WAVENUMBERS"], "cm-1", lambda x: 1e7 / x),
    "eV": (["Energy (eV)", "eV", "Photon energy [eV]"], "nm", lambda x: 1239.841984 / x),
    "none": ([""], "nm", lambda x: x),
}
# (how a level is written with its unit, the value that this means, the unit); None where no concentration is said
LABELS: dict[str, list[tuple[str, float | None, str]]] = {
    "with unit": [(f"dye {c:g} mM", c, "mM") for c in (0, 0.5, 5, 20)],
    "joined": [(f"FZ010_dye_{c:g}uM_salt", c, "µM") for c in (0, 2, 10, 250)],
    "micro": [(f"{c:g} µM", c, "µM") for c in (1, 2, 4, 8)],
    "exponent": [(f"dye 1e-{k} M", 10.0**-k, "M") for k in (3, 4, 5, 6)],
    "power": [(f"10^-{k} M", 10.0**-k, "M") for k in (3, 4, 5, 6)],
    "factor": [(f"{k} x 10^-4 M", k * 1e-4, "M") for k in (1, 2, 4, 8)],
    "fraction": [(f"1/{k} mM", 1 / k, "mM") for k in (2, 4, 5, 8)],
    "thousands": [("10 ppm", 10, "ppm"), ("100 ppm", 100, "ppm"), ("1.000 ppm", None, "ppm"), ("5 ppm", 5, "ppm")],
    "settled": [("0.5 ppm", 0.5, "ppm"), ("1,000 ppm", 1000, "ppm"), ("2,500 ppm", 2500, "ppm"), ("9 ppm", 9, "ppm")],
    "plain": [(f"{c:g}", c, "") for c in (0, 5, 10, 20)],
    "names": [(name, None, "") for name in ("blank", "A1", "A10", "9_M4kR")],
    "range": [("3-5 mM", None, "mM"), ("1 mM", 1, "mM"), ("2 mM", 2, "mM"), ("4 mM", 4, "mM")],
    "hyphens": [(f"dye-{c:g}mM-a", c, "mM") for c in (1, 2, 5, 10)],
    "brackets": [(f"conc=({c:g} µM)", c, "µM") for c in (1, 2, 5, 10)],
    "mole": [(f"{c:g} mmol/L", c, "mM") for c in (1, 2, 5, 10)],
    "mole to a power": [(f"{c:g} mmol L-1", c, "mM") for c in (1, 2, 5, 10)],
    "lost superscript": [("10-4 M", None, "M"), ("1e-5 M", 1e-5, "M"), ("2e-5 M", 2e-5, "M"), ("5e-5 M", 5e-5, "M")],
    "bounds": [("<1 mM", None, "mM"), ("2 mM", 2, "mM"), ("4 mM", 4, "mM"), ("~8 mM", None, "mM")],
    "spaced": [("1 500 ppm", None, "ppm"), ("50 ppm", 50, "ppm"), ("2 500 ppm", None, "ppm"), ("9 ppm", 9, "ppm")],
    "counted": [(f"std {k} {100 * k} ppm", 100 * k, "ppm") for k in (1, 2, 3, 4)],
    "two": [(f"Tris 10 mM dye {c} µM", None, "") for c in (1, 2, 3, 4)],
    "mass": [(f"{c:g} mg/L", c, "mg/L") for c in (1, 2, 5, 10)],
    "litres": [(f"std {c:g} µg/mL a", c, "µg/mL") for c in (1, 2, 5, 10)],
}  # fmt: skip
NUMBERS = ["{:.3f}", "{:.4f}", "{:.6f}", "{:.4E}", "{:.5e}", "{:g}"]


@dataclass
class Case:
    """A file and what it says.

    Attributes:
        what: in words. data: the file. axis: [W] as it must be read. values: [N, W].
        unit: of the axis. levels: what the labels say, None where nothing or nothing sure; None: labels say nothing.
        readable: it must be read; else a refusal is right too.
    """

    what: str
    data: bytes
    axis: np.ndarray
    values: np.ndarray
    unit: str
    levels: list[float | None] | None = None
    readable: bool = True
    tolerance: float = 0.0
    notes: list[str] = field(default_factory=list)


def make(rng: random.Random) -> Case:
    """One file, drawn."""
    return rng.choice(FAMILIES)(rng)


def _spectra(rng: random.Random, count: int) -> tuple[np.ndarray, np.ndarray]:
    step = rng.choice([1.0, 2.0, 0.5])
    wavelengths = rng.choice([250.0, 400.0, 350.5]) + step * np.arange(rng.choice([12, 31, 60]))
    generator = np.random.default_rng(rng.randrange(10**6))
    band = np.exp(-(((wavelengths - wavelengths.mean()) / np.ptp(wavelengths) * 4) ** 2))
    levels = np.linspace(0.1, 0.9, count)[:, None]
    return wavelengths, levels * band + 0.01 + generator.normal(0, 1e-3, (count, len(wavelengths)))


def _encode(lines: list[str], rng: random.Random) -> tuple[bytes, str]:
    text = rng.choice(LINE_ENDS).join(lines) + rng.choice(["", "\n"])
    encoding = rng.choice(ENCODINGS)
    try:
        return text.encode(encoding), encoding
    except UnicodeEncodeError:
        return text.encode("utf-8"), "utf-8"


def _write(value: float, form: str, decimal: str) -> str:
    return form.format(value).replace(".", decimal)


def _rounded(values: np.ndarray, form: str) -> np.ndarray:
    return np.vectorize(lambda v: float(form.format(v)))(values)


def columns(rng: random.Random) -> Case:
    """Samples in columns, whatever wrote them."""
    (delimiter, decimal), form = rng.choice(LOCALES), rng.choice(NUMBERS)
    axis_kind, label_kind = rng.choice(list(AXES)), rng.choice(list(LABELS))
    headers, unit, convert = AXES[axis_kind]
    labels = [
        (text.replace(".", decimal) if label_kind == "with unit" else text, *rest) for text, *rest in LABELS[label_kind]
    ]
    x, y = _spectra(rng, len(labels))
    axis = convert(x)
    if rng.random() < 0.4:
        axis, y = axis[::-1], y[:, ::-1]
    header = [rng.choice(headers), *(text for text, *_ in labels)]
    form_x = "{:.1f}" if axis_kind in ("nm", "none") else "{:.7g}"
    written_x, written_y = _rounded(axis, form_x), _rounded(y, form)
    rows = [
        [_write(a, form_x, decimal), *(_write(v, form, decimal) for v in row)] for a, row in zip(axis, y.T, strict=True)
    ]
    if rng.random() < 0.15:  # a column that counts stands first
        header, rows = [rng.choice(["Pixel", "#", "Index", "No."]), *header], [[str(k), *r] for k, r in enumerate(rows)]
    elif rng.random() < 0.1:
        rows = [["", *r][1:] for r in rows]
    quote = rng.random() < 0.2 and delimiter != " "
    lines = [_joined(header, delimiter, quote), *(_joined(row, delimiter, quote) for row in rows)]
    preamble = ["Operator: somebody", "Date: 2024-01-02", ""] if rng.random() < 0.3 else []
    footer = ["", "End of data"] if rng.random() < 0.2 else []
    data, encoding = _encode([*preamble, *lines, *footer], rng)
    doubt = label_kind == "thousands" or any(value is None and unit for _, value, unit in labels)
    if label_kind == "plain" or axis_kind == "none":
        doubt = doubt or (label_kind == "plain" and axis_kind == "none")
    read_x = written_x if axis_kind != "eV" else 1239.841984 / written_x
    unit = "?" if header[0] == "" and delimiter == " " else unit
    # Numbers under an empty first cell are the numbers of a NanoDrop's columns, whose concentrations stand elsewhere.
    numbered = axis_kind == "none" and label_kind == "plain" and delimiter == ","
    return Case(
        f"columns {delimiter!r}{decimal} {encoding} {axis_kind} {label_kind} {form} {header[:2]}",
        data, read_x, written_y, unit, None if numbered else [value for _, value, _ in labels], readable=not doubt,
    )  # fmt: skip


def _joined(cells: list[str], delimiter: str, quote: bool) -> str:
    if delimiter == " ":
        return " ".join(cell.replace(" ", "_") or "x" for cell in cells)
    quoted = [f'"{c}"' if quote or delimiter in c else c for c in cells]
    return delimiter.join(quoted)


def rows(rng: random.Random) -> Case:
    """Samples in rows under a row of wavelengths."""
    delimiter, decimal = rng.choice([one for one in LOCALES if one[0] != " "])
    label_kind = rng.choice([k for k in LABELS if k not in ("plain", "thousands", "range")])
    labels, form = LABELS[label_kind], rng.choice(NUMBERS[:5])
    x, y = _spectra(rng, len(labels))
    style = rng.choice(["{:g}", "{:g} nm", "X{:g}", "{:.2f}"])
    head = [rng.choice(["Sample", "name", ""]), *(_write(v, style, decimal) for v in x)]
    extra = rng.random() < 0.3
    lines = [_joined([head[0], "Date", *head[1:]] if extra else head, delimiter, False)]
    for (text, *_), row in zip(labels, y, strict=True):
        cells = [text, *(["2024-01-02"] if extra else []), *(_write(v, form, decimal) for v in row)]
        lines.append(_joined(cells, delimiter, False))
    data, encoding = _encode(lines, rng)
    levels = [value for _, value, _ in labels]
    what = f"rows {delimiter!r}{decimal} {encoding} {label_kind} {style} {form}"
    return Case(what, data, x, _rounded(y, form), "nm", levels)


def pairs(rng: random.Random) -> Case:
    """Wavelength and value side by side for each sample, as a Cary writes them."""
    labels = LABELS[rng.choice(["with unit", "joined", "exponent", "mass"])]
    x, y = _spectra(rng, len(labels))
    axis, unit = ("Wavelength (nm)", "nm") if rng.random() < 0.8 else ("Wavenumber (cm-1)", "cm-1")
    axis_values = _rounded(x if unit == "nm" else 1e7 / x, "{:.4f}")
    delimiter, decimal = rng.choice([(",", "."), (";", ",")])
    ragged = rng.random() < 0.3
    lines = [
        delimiter.join(f"{text}{delimiter}" for text, *_ in labels),
        delimiter.join(f"{axis}{delimiter}Abs" for _ in labels),
    ]
    for i, a in enumerate(axis_values):
        cells = [c for row in y for c in (_write(a, "{:.4f}", decimal), _write(row[i], "{:.5f}", decimal))]
        lines.append(delimiter.join(cells) + (delimiter if ragged else ""))
    data, encoding = _encode(lines, rng)
    what = f"pairs {delimiter!r}{decimal} {encoding} {unit}"
    return Case(what, data, axis_values, _rounded(y, "{:.5f}"), unit, [value for _, value, _ in labels])


def shimadzu(rng: random.Random) -> Case:
    delimiter, decimal = rng.choice([("\t", ","), ("\t", "."), (",", "."), (";", ",")])
    x, y = _spectra(rng, 1)
    text, value, _ = rng.choice(LABELS["with unit"])
    body = [
        f"{_write(a, '{:.2f}', decimal)}{delimiter}{_write(v, '{:.3f}', decimal)}" for a, v in zip(x, y[0], strict=True)
    ]
    head = [f'"{text} - RawData"', f'"Wavelength nm."{delimiter}"Abs."'][rng.choice([0, 1]) :]
    data, encoding = _encode([*head, *body], rng)
    levels = [value] if len(head) == 2 else None
    return Case(f"shimadzu {delimiter!r}{decimal} {encoding}", data, x, _rounded(y, "{:.3f}"), "nm", levels)


def ocean(rng: random.Random) -> Case:
    decimal = rng.choice([".", ","])
    marker = rng.choice(
        ["Begin Processed Spectral Data", "Inicio de datos espectrales", "Début des données", "Begin Spectral Data"]
    )
    x, y = _spectra(rng, 1)
    stated = len(x) - rng.choice([0, 0, 3])
    form = rng.choice(["{:.4f}", "{:.3E}", "{:.5f}"])
    jaz = rng.random() < 0.3
    body = []
    for a, v in zip(x, y[0], strict=True):
        cells = [
            _write(a, "{:.2f}", decimal),
            *([_write(100.0, "{:.1f}", decimal)] * 3 if jaz else []),
            _write(v, form, decimal),
        ]
        body.append("\t".join(cells))
    head = [
        "Data from an instrument",
        "User: someone",
        f"Number of Pixels in Spectrum: {stated}",
        f">>>>>{marker}<<<<<",
    ]
    data, encoding = _encode([*head, *(["W\tD\tR\tS\tP"] if jaz else []), *body], rng)
    return Case(f"ocean {decimal} {encoding} jaz={jaz} {form}", data, x, _rounded(y, form), "nm")


def peds(rng: random.Random) -> Case:
    x, y = _spectra(rng, 1)
    unit = rng.choice(["NM", "CM-1"])
    text, value, _ = rng.choice([one for k in ("with unit", "exponent", "names") for one in LABELS[k]])
    head = [
        "PE UV SPECTRUM ASCII PEDS 1.60",
        "-1",
        text,
        "#HDR",
        "#GR",
        unit,
        "A",
        "1",
        "0",
        "1",
        "1",
        str(len(x)),
        "#DATA",
    ]
    body = [f"{a:.6f}\t{v:.6f}  " for a, v in zip(x, y[0], strict=True)]
    data, encoding = _encode([*head, *body], rng)
    if encoding.startswith("utf-16"):
        data = "\n".join([*head, *body]).encode("latin-1")
    return Case(f"peds {unit}", data, x, _rounded(y, "{:.6f}"), unit.lower(), [value])


def enspire(rng: random.Random) -> Case:
    x, y = _spectra(rng, 3)
    order = rng.choice([["Exc", "Ems", "Result"], ["Result", "Exc", "Ems"]])
    lines = ["Plate information\t", "Plate\tRepeat\t", "1\t1\t", "", "Results"]
    names = {"Exc": "MeasA:WavelengthExc", "Ems": "MeasA:WavelengthEms", "Result": "MeasA:Result"}
    lines.append("\t".join(["Well", "Sample", *(names[k] for k in order)]) + "\t")
    values = np.round(y * 1e4)
    for k, row in enumerate(values):
        for a, v in zip(x, row, strict=True):
            cells = {"Exc": "280", "Ems": f"{a:g}", "Result": f"{v:.0f}"}
            lines.append("\t".join([f"A{k + 1:02d}", f"{k}", *(cells[o] for o in order)]) + "\t")
    data, encoding = _encode([*lines, "", "Instrument:\t\t", "Exported with EnSpire"], rng)
    return Case(f"enspire {encoding} {order}", data, x, values, "nm")


def clariostar(rng: random.Random) -> Case:
    delimiter, decimal = rng.choice([(",", "."), (";", ","), ("\t", ".")])
    x, y = _spectra(rng, 3)
    lines = ["User: USER", "Path: C:\\BMG", "Test ID: 7", "Absorbance spectrum", ""]
    lines.append(delimiter.join(["Well", "Sample", "Dilution", *(f"{a:g}".replace(".", decimal) for a in x)]))
    for k, row in enumerate(y):
        lines.append(delimiter.join([f"A{k + 1}", f"S{k}", f"{2**k}", *(_write(v, "{:.4f}", decimal) for v in row)]))
    data, encoding = _encode(lines, rng)
    return Case(f"clariostar {delimiter!r}{decimal} {encoding}", data, x, _rounded(y, "{:.4f}"), "nm", [1.0, 0.5, 0.25])


def jcamp(rng: random.Random) -> Case:
    said, unit, convert = rng.choice(
        [
            ("NANOMETERS", "nm", lambda x: x), ("cm^-1", "cm-1", lambda x: x * 5), ("1/CM", "cm-1", lambda x: x * 5),
            ("WAVENUMBERS", "cm-1", lambda x: x * 5), ("um", "µm", lambda x: x / 1000),
            ("MICROMETERS", "µm", lambda x: x / 1000),
            ("SECONDS", "seconds", lambda x: x), ("Wavenumber (cm-1)", "cm-1", lambda x: x * 5), ("", "", lambda x: x),
        ]
    )  # fmt: skip
    x, y = _spectra(rng, 1)
    axis, whole = convert(x), np.round(y[0] * 1e4).astype(int).tolist()
    form, decimal = rng.choice(["AFFN", "PAC", "SQZ", "DIF", "DIFDUP", "XY"]), rng.choice([".", ".", ","])
    text, value, _ = rng.choice(LABELS["with unit"])

    def number(v: float) -> str:
        return f"{v:.10g}".replace(".", decimal)

    labels = [
        f"##TITLE={text}",
        "##JCAMP-DX=5.01",
        "##DATA TYPE=UV/VIS SPECTRUM",
        f"##XUNITS={said}",
        "##YUNITS=ABSORBANCE",
    ]
    labels += ["##XFACTOR=1", "##YFACTOR=" + ("1" if form == "XY" else number(0.0001)), f"##FIRSTX={number(axis[0])}"]
    labels += [f"##LASTX={number(axis[-1])}", f"##NPOINTS={len(axis)}"]
    if form == "XY":
        body = ["##XYPOINTS=(XY..XY)", *(f"{number(a)}, {number(v / 1e4)}" for a, v in zip(axis, whole, strict=True))]
    else:
        indices = list(range(len(whole)))
        packed = samples.pack(indices, whole, form)
        body = ["##XYDATA=(X++(Y..Y))"]
        for line in packed:  # the index that begins a line, put into the unit of the axis
            digits = line[: len(line) - len(line.lstrip("0123456789"))]
            body.append(number(float(axis[int(digits)])) + line[len(digits) :])
    data, encoding = _encode([*labels, *body, "##END="], rng)
    return Case(f"jcamp {form} {said} {decimal} {encoding}", data, axis, np.array([whole]) / 1e4, unit, [value])


def spc(rng: random.Random) -> Case:
    order, own, integers = rng.choice("<>"), rng.random() < 0.5, rng.random() < 0.5
    values = np.array([samples.spectrum(c) for c in samples.LEVELS])
    data = samples.spc(order, own, integers)
    return Case(f"spc {order} {own} {integers}", data, samples.WAVELENGTHS, values, "nm", tolerance=1e-6)


def counts(rng: random.Random) -> Case:
    """Counts, with or without a mark between thousands: never a thousandth of what was measured."""
    mark = rng.choice(["", ",", ".", " ", "'"])
    delimiter = rng.choice(["\t", ";"])
    x, y = _spectra(rng, 2)
    values = np.round(900 + 400 * y)
    lines = [delimiter.join(["nm", "counts a", "counts b"])]
    for a, row in zip(x, values.T, strict=True):
        lines.append(
            delimiter.join([f"{a:g}" if mark != "." else f"{round(a)}", *(f"{v:,.0f}".replace(",", mark) for v in row)])
        )
    axis = x if mark != "." else np.round(x)
    data, encoding = _encode(lines, rng)
    plain = mark == "" or len(np.unique(axis)) == len(axis)
    return Case(f"counts {mark!r} {delimiter!r} {encoding}", data, axis, values, "nm", readable=mark == "" and plain)


FAMILIES = [
    columns,
    columns,
    columns,
    rows,
    pairs,
    shimadzu,
    ocean,
    peds,
    enspire,
    clariostar,
    jcamp,
    jcamp,
    spc,
    counts,
]
