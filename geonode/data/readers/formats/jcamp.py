"""JCAMP-DX 4.24 and 5: all packings of ``(X++(Y..Y))``, ``(XY..XY)``, and compound files of LINK blocks.

The checks that the standard provides are made (number of points, abscissa of each line, first ordinate, last ordinate
of each line of differences); one that fails is an error, because a wrong spectrum would look like a spectrum.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from geonode.data.readers import names, packed, text, units
from geonode.data.readers.base import READERS, Particularity, Reader
from geonode.data.readers.dialect import Dialect
from geonode.data.readers.recording import Recording, Trace
from geonode.data.readers.table import Lines
from geonode.errors import ReaderError

_LABEL = re.compile(r"##([^=]*)=(.*)")
_SIGNALS = {"ABSORBANCE": ("absorbance", ""), "TRANSMITTANCE": ("transmittance", ""), "%T": ("transmittance", "%")}
_PAIR = re.compile(r"[^\s,;]+")
_SEPARATORS = str.maketrans(",;", "  ")
_PLAIN = "0123456789.+-eE \t"
_LINES = 4096
"""So many lines of pairs are read at once."""
_COMMA = re.compile(r"(?<=\d),(?=\d)")


@dataclass
class Block:
    """Labels of one block and the numbered lines of its data."""

    line: int
    labels: dict[str, str] = field(default_factory=dict)
    form: str = ""
    data: Lines = field(default_factory=lambda: Lines([], array("q")))

    def add(self, number: int, line: str) -> None:
        """One more line of data."""
        assert isinstance(self.data.texts, list) and isinstance(self.data.numbers, array)
        self.data.texts.append(line)
        self.data.numbers.append(number)

    def number(self, label: str) -> float | None:
        return text.number(self.word(label).replace(",", "."))

    def word(self, label: str) -> str:
        """What a label says, without the comment behind it."""
        return self.labels.get(label, "").split("$$", 1)[0].strip()


@READERS.register("jcamp")
class JcampReader(Reader):
    """JCAMP-DX, one block or many."""

    format = "JCAMP-DX"
    summary = "JCAMP-DX (all packings, LINK blocks)"
    particularity = Particularity.MARK

    def sniff(self, head: bytes) -> bool:
        """``##TITLE=`` first, ``##JCAMP-DX=`` soon after."""
        beginning = text.decode_head(head[:4096]).lstrip().upper().replace(" ", "")
        return beginning.startswith("##TITLE=") and "##JCAMP" in beginning

    def read(self, path: Path) -> Recording:
        """Read a JCAMP-DX file; blocks that are no spectrum are noted.

        Raises:
            ReaderError: damaged data, a check of the standard that fails, no spectrum.
        """
        recording = self.recording(path)
        axes: set[str] = set()
        signals: set[tuple[str, str]] = set()
        for block in _blocks(text.read_text(path)):
            kind = block.labels.get("DATATYPE", "").upper()
            title = text.shorten(block.labels.get("TITLE", "").strip() or path.stem, 80)
            if not block.form:
                if kind and kind != "LINK":
                    recording.notes.append(f"block '{title}' ({kind.lower()}) has no spectrum and was dropped")
                continue
            x, y = _read_block(block, title, recording)
            axes.add(_axis_unit(block.word("XUNITS"), recording))
            signals.add(_signal(block.word("YUNITS")))
            masked = np.isnan(y)
            if masked.any():
                recording.mask_reasons["written as ?, lost"] += int(masked.sum())
            recording.traces.append(Trace(title, x, y, f"line {block.line}", masked=masked, keys=(title,)))
        if not recording.traces:
            raise recording.fail("no block with a spectrum (XYDATA or XYPOINTS); export the spectrum itself.")
        if len(axes) > 1 or len(signals) > 1:
            what = ", ".join(sorted(axes) + sorted(signal for signal, _ in signals))
            raise recording.fail(f"its blocks differ in their units ({what}); export blocks of one kind together.")
        recording.wavelength_unit = axes.pop()
        recording.signal, recording.signal_unit = signals.pop()
        names.set_concentrations_from_names(recording, "the titles of the blocks")
        return recording


def _axis_unit(said: str, recording: Recording) -> str:
    """The unit of the abscissa as the file says it; one that is not known here is kept as written, and noted."""
    unit = units.wavelength_unit(said.replace("_", " "))
    if unit is not None:
        return unit
    note = "the file does not say the unit of its abscissa"
    if said:
        note = f"the abscissa is no wavelength of a unit known here: the file says '{text.shorten(said)}'"
    if note not in recording.notes:
        recording.notes.append(note)
    return text.shorten(said).lower()


def _signal(said: str) -> tuple[str, str]:
    """(signal, unit) of the ordinate."""
    return _SIGNALS.get(said.upper()) or units.signal_of(said) or (said.lower() or "signal", "")


def _blocks(content: str) -> list[Block]:
    """Blocks in order, nested ones after the one that holds them; comments (``$$``) are left out."""
    blocks: list[Block] = []
    current: Block | None = None
    label = ""
    for number, line in enumerate(content.split("\n"), start=1):
        match = _LABEL.match(line.lstrip())
        if match is None:
            line = line.split("$$", 1)[0]
            if current is None or not line.strip():
                continue
            if label in ("XYDATA", "XYPOINTS"):
                current.add(number, line)
            elif label:
                current.labels[label] += " " + line.strip()
            continue
        label = re.sub(r"[\s\-/_]", "", match.group(1)).upper()
        value = match.group(2).strip()
        if label == "TITLE":
            current = Block(number)
            blocks.append(current)
        if label == "END" or current is None:
            current, label = None, ""
        elif label in ("XYDATA", "XYPOINTS"):
            current.form = value.split("$$", 1)[0].replace(" ", "").upper()
        else:
            current.labels.setdefault(label, value)
            if current.labels[label] is not value:
                label = ""  # a label given twice: the first counts, and continuation lines of the second go with it
    return blocks


def _read_block(block: Block, title: str, recording: Recording):
    """(abscissae, ordinates) of a block, in its own order."""
    where = f"block '{title}' (line {block.line})"
    if not len(block.data):
        raise recording.fail(f"{where} has a label of data and no data; the file seems to be truncated.")
    if not block.form.startswith(("(XY", "(X++")):
        raise recording.fail(f"{where} has data of the form {text.shorten(block.form)}; export it as (X++(Y..Y)).")
    _settle_commas(block, where, recording)
    if block.form.startswith("(XY"):
        return _read_pairs(block, where, recording)
    starts, ordinates = packed.decode(block.data, recording)
    _check_points(block, len(ordinates), where, recording)
    y = np.array(ordinates) * _factor(block, "YFACTOR", where, recording)
    x = _abscissae(block, starts, len(y), where, recording)
    first = block.number("FIRSTY")
    tolerance = 2e-3 * max(abs(float(np.nanmax(np.abs(y), initial=0.0))), 1e-300)
    if first is not None and np.isfinite(y[0]) and abs(first - y[0]) > tolerance:
        recording.notes.append(f"{where}: FIRSTY says {first:g} and the data begin with {y[0]:g}; the data count")
    return x, y


def _check_points(block: Block, found: int, where: str, recording: Recording) -> None:
    """Fewer points than NPOINTS are a truncated file; more are noted."""
    stated = block.number("NPOINTS")
    if stated is not None and found < stated:
        raise recording.fail(
            f"{where} has {found} points but NPOINTS says {stated:g}; the file seems to be truncated, so export it "
            "again."
        )
    if stated is not None and found > stated:
        recording.notes.append(f"{where} has {found} points, more than NPOINTS says ({stated:g}); all were read")


def _settle_commas(block: Block, where: str, recording: Recording) -> None:
    """Put points for the decimal commas of a German or French computer, in place.

    A comma between digits parts two numbers by the standard. It is decimal where NPOINTS fits that reading alone; where
    NPOINTS tells neither, where the labels' own numbers have decimal commas.
    """
    if not any(_COMMA.search(line) for _, line in block.data):
        return
    changed = Lines([_COMMA.sub(".", line) for line in block.data.texts], block.data.numbers)
    stated = block.number("NPOINTS")
    fits = [_count_points(block.form, data, recording) == stated for data in (block.data, changed)]
    labels = any(_COMMA.search(block.word(label)) for label in ("FIRSTX", "LASTX", "FIRSTY", "MAXX", "MINX", "MAXY"))
    if (fits[1] and not fits[0]) or (fits[0] == fits[1] and labels):
        block.data = changed
        recording.notes.append(f"{where} read with decimal commas")


def _count_points(form: str, data: Lines, recording: Recording) -> float:
    """How many points the data hold if read as they stand; −1 if they cannot be."""
    if form.startswith("(XY"):
        return sum(len(_PAIR.findall(line)) for line in data.texts) / 2
    try:
        return len(packed.decode(data, recording)[1])
    except ReaderError:
        return -1


def _factor(block: Block, label: str, where: str, recording: Recording) -> float:
    """What ordinates or abscissae are multiplied by; 1 where the file says nothing, or 0, as some programs write."""
    value = block.number(label)
    if value is None and block.word(label):
        raise recording.fail(f"{where}: {label} is '{text.shorten(block.word(label))}', which is no number; repair it.")
    return 1.0 if value is None or value == 0 or not np.isfinite(value) else value


def _abscissae(block: Block, starts: list[tuple[int, float, int]], n: int, where: str, recording: Recording):
    """Even abscissae from FIRSTX to LASTX, against which those that begin the lines are checked."""
    factor = _factor(block, "XFACTOR", where, recording)
    first, last, step = block.number("FIRSTX"), block.number("LASTX"), block.number("DELTAX")
    first = starts[0][1] * factor if first is None else first
    if last is None:
        if step is None:
            raise recording.fail(f"{where} has neither LASTX nor DELTAX; export it again.")
        last = first + step * (n - 1)
    x = np.linspace(first, last, n)
    spacing = abs(last - first) / max(n - 1, 1)
    # Abscissae are written rounded, and by some writers cut off: off by more than a point is a gap in the data.
    for line, start, index in starts:
        if index < n and abs(start * factor - x[index]) > 1.5 * spacing + 1e-4 * abs(x[index]):
            raise recording.fail(
                f"line {line} begins at {start * factor:g} and by its place at {x[index]:g}, so points are missing or "
                "too many; the data are damaged, so export them again."
            )
    return x


def _read_pairs(block: Block, where: str, recording: Recording):
    parts, count = [], 0
    for start in range(0, len(block.data), _LINES):
        parts.append(_numbers(block.data[start : start + _LINES], recording))
        count += len(parts[-1])
        if count > 2 * packed.MAX_POINTS:
            raise recording.fail(f"{where} has more than {packed.MAX_POINTS} points; the data are damaged.")
    values = np.concatenate(parts)
    if len(values) % 2:
        raise recording.fail(f"{where} has an odd number of values, so a pair is incomplete; export it again.")
    _check_points(block, len(values) // 2, where, recording)
    pairs = values.reshape(-1, 2)
    return pairs[:, 0] * _factor(block, "XFACTOR", where, recording), pairs[:, 1] * _factor(
        block, "YFACTOR", where, recording
    )


def _numbers(lines: Lines, recording: Recording) -> np.ndarray:
    """Every number of some lines of pairs, by numpy where nothing but numbers is in them.

    Raises:
        ReaderError: something that is no number.
    """
    joined = " ".join(lines.texts).translate(_SEPARATORS)
    if not joined.strip(_PLAIN):
        try:
            return np.array(joined.split(), dtype=np.float64)
        except ValueError:
            pass  # named below, with its line
    dialect, values = Dialect(" ", "."), []
    for number, line in lines:
        for token in _PAIR.findall(line):
            value = dialect.number(token)
            if value is None:
                raise recording.fail(f"line {number} has '{text.shorten(token)}', which is no number; repair it.")
            values.append(value)
    return np.array(values, dtype=np.float64)
