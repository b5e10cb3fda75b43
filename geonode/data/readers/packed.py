"""Packed ordinates of JCAMP-DX: AFFN and PAC, SQZ, DIF and DUP (McDonald and Wilks, Appl. Spectrosc. 42 (1988) 151).

Every line of ``(X++(Y..Y))`` data begins with its abscissa, in plain digits. Ordinates follow as numbers (AFFN, PAC:
a sign separates), as numbers whose first digit is a letter (SQZ), as differences from the one before (DIF), and with
counts of repetition (DUP). In DIF form each line repeats the last ordinate of the line before, as a check.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from geonode.data.readers.recording import Recording

# More ordinates than this in one block are no spectrum; it bounds what a count of repetition can ask for.
MAX_POINTS = 2_000_000

_SQZ = {"@": "0", **dict(zip("ABCDEFGHI", "123456789", strict=True))}
_SQZ |= dict(zip("abcdefghi", ("-1", "-2", "-3", "-4", "-5", "-6", "-7", "-8", "-9"), strict=True))
_DIF = {"%": "0", **dict(zip("JKLMNOPQR", "123456789", strict=True))}
_DIF |= dict(zip("jklmnopqr", ("-1", "-2", "-3", "-4", "-5", "-6", "-7", "-8", "-9"), strict=True))
_DUP = dict(zip("STUVWXYZs", "123456789", strict=True))

_SIGNED = str.maketrans({letter: f" {digit}" for letter, digit in {**_SQZ, **_DIF}.items()})
_NO_DIGITS = str.maketrans("", "", "0123456789.")
_ONLY_SQZ, _SQZ_AND_DIF = re.compile("[@A-Ia-i]+"), re.compile("[@A-Ia-i][%J-Rj-r]+")

_TOKEN = re.compile(
    r"\s*(?:(?P<affn>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3}(?=[\s+,;-]|$))?)"
    r"|(?P<sqz>[@A-Ia-i]\d*\.?\d*)|(?P<dif>[%J-Rj-r]\d*\.?\d*)|(?P<dup>[S-Zs]\d*)|(?P<lost>\?))[,;]?"
)
_ABSCISSA = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]\d{1,3})?)\s*")


def decode(lines: Iterable[tuple[int, str]], recording: Recording) -> tuple[list[tuple[int, float, int]], list[float]]:
    """Ordinates of numbered lines: ((line, abscissa, number of its first ordinate) of each, all ordinates).

    An ordinate that is lost (``?``) is NaN.

    Raises:
        ReaderError: a line that is no packed data, a check of the last ordinate that fails, far too many points.
    """
    starts: list[tuple[int, float, int]] = []
    values: list[float] = []
    check = False  # the line before ended in a difference, so this one begins with the ordinate it reached
    for number, line in lines:
        match = _ABSCISSA.match(line)
        if match is None:
            raise recording.fail(f"line {number} begins with no abscissa; the data are damaged, so export them again.")
        mine, check_next = _decode_line(line[match.end() :], number, recording)
        if check:
            if not mine or not _same(mine[0], values[-1]):
                found = f"{mine[0]:g}" if mine else "nothing"
                raise recording.fail(
                    f"line {number} repeats the ordinate before it as {found}, but that is {values[-1]:g}; the data "
                    "are damaged, so export them again."
                )
            starts.append((number, float(match.group(1)), len(values) - 1))
            mine = mine[1:]
        else:
            starts.append((number, float(match.group(1)), len(values)))
        values += mine
        if len(values) > MAX_POINTS:
            raise recording.fail(f"more than {MAX_POINTS} points in one block; the data are damaged.")
        check = check_next
    return starts, values


def _same(a: float, b: float) -> bool:
    return a == b or (a != a and b != b)


def _decode_quickly(packed: str) -> tuple[list[float], bool] | None:
    """The same for a line in one form throughout, many times faster; None for any other."""
    kinds = packed.translate(_NO_DIGITS)
    try:
        if not kinds.strip(" +-"):
            return (list(map(float, packed.split())), False) if packed else None
        if _ONLY_SQZ.fullmatch(kinds):
            return list(map(float, packed.translate(_SIGNED).split())), False
        if _SQZ_AND_DIF.fullmatch(kinds):
            return list(itertools.accumulate(map(float, packed.translate(_SIGNED).split()))), True
    except ValueError:  # two decimal points in a number, say: told where the line is taken apart
        pass
    return None


def _decode_line(packed: str, number: int, recording: Recording) -> tuple[list[float], bool]:
    """(ordinates of one line, whether its last one was written as a difference)."""
    packed = packed.strip()
    quick = _decode_quickly(packed)
    if quick is not None:
        return quick
    values: list[float] = []
    last_difference: float | None = None
    position = 0
    while position < len(packed):
        match = _TOKEN.match(packed, position)
        if match is None:
            raise recording.fail(
                f"line {number} has '{packed[position : position + 12].strip()}', which is no packed number; the data "
                "are damaged, so export them again."
            )
        position = match.end()
        kind, token = match.lastgroup, match.group(match.lastgroup or "affn")
        if kind == "affn":
            values.append(float(token))
            last_difference = None
        elif kind == "lost":
            values.append(float("nan"))
            last_difference = None
        elif kind == "sqz":
            values.append(float(_SQZ[token[0]] + token[1:]))
            last_difference = None
        elif not values:
            raise recording.fail(f"line {number} begins with a difference or a repetition of nothing; export again.")
        elif kind == "dif":
            last_difference = float(_DIF[token[0]] + token[1:])
            values.append(values[-1] + last_difference)
        else:
            times = int((_DUP[token[0]] + token[1:])[:9]) - 1
            if times + len(values) > MAX_POINTS:
                raise recording.fail(f"line {number} repeats a point {times + 1} times; the data are damaged.")
            for _ in range(times):
                values.append(values[-1] + (last_difference or 0.0))
    return values, last_difference is not None
