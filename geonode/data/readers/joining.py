"""Which entry of a table belongs to which spectrum: by name or by number, never by the order of columns or rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from geonode.data.readers.recording import Trace

_WELL = re.compile(r"([A-Za-z]{1,2})0*(\d{1,3})")
_SEPARATORS = re.compile(r"[\s_\-.,;:/()#]+")


@dataclass
class Joined:
    """What belongs together.

    Attributes:
        entries: for each spectrum the index of its entry, or None.
        doubts: (name of a spectrum, the entries that it may be) where a name fits several.
        positions: True where the spectra have no names, so that only their order could tell.
    """

    entries: list[int | None]
    doubts: list[tuple[str, list[str]]] = field(default_factory=list)
    positions: bool = False

    @property
    def matched(self) -> int:
        """How many spectra have an entry, or may have several."""
        return sum(entry is not None for entry in self.entries) + len(self.doubts)


def join(traces: Sequence[Trace], keys: Sequence[str]) -> Joined:
    """Spectra to entries, by the surest way in which most of them find one.

    The ways, in order: the same name (upper and lower case, blanks and zeros before numbers do not matter), the one
    number in which the names differ (``sample_3`` to ``3``), the last word of a name, with or without the count of its
    replicate (``Rhodamine_6G_A1`` to ``A1`` or ``A``). A name with two words that are entries is in doubt.

    Args:
        traces: the spectra, with what a table may call each.
        keys: what the table calls its entries; an empty one is none.
    """
    ways: tuple[Callable[[Sequence[Trace], Sequence[str]], Joined], ...] = (_by_name, _by_number, _by_word)
    found = [way(traces, keys) for way in ways]
    return max(found, key=lambda one: one.matched)  # of equals the first


def normalise(key: str) -> str:
    """One form for names that people write in several: case, blanks, and ``A1`` for the well ``A01``."""
    key = " ".join(key.split()).casefold()
    match = _WELL.fullmatch(key)
    return f"{match.group(1)}{int(match.group(2))}" if match else key


def is_well(key: str) -> bool:
    """Whether a key is a well of a plate, such as ``A01``."""
    return bool(_WELL.fullmatch(key.strip()))


def _loose(key: str) -> str:
    """The same with every separator alike, none between a letter and a digit, and numbers without zeros before."""
    key = _SEPARATORS.sub(" ", normalise(key)).strip()
    key = re.sub(r"(?<=[^\W\d_]) (?=\d)", "", key)
    return re.sub(r"\d+", lambda digits: str(int(digits.group())), key)


def _index(keys: Sequence[str], form: Callable[[str], str]) -> Mapping[str, int]:
    """Entries by their key; of two that become one form neither can be told."""
    forms = [form(key) for key in keys]
    count = Counter(forms)
    return {one: i for i, one in enumerate(forms) if one and count[one] == 1}


def _by_name(traces: Sequence[Trace], keys: Sequence[str]) -> Joined:
    best = Joined([None] * len(traces))
    for form in (normalise, _loose):
        index = _index(keys, form)
        entries = [
            next((index[form(key)] for key in (*trace.keys, trace.name) if form(key) in index), None)
            for trace in traces
        ]
        unnamed = all(re.fullmatch(r"columns? \d+.*", trace.name) for trace in traces)
        found = Joined(entries, positions=unnamed)
        if found.matched > best.matched:
            best = found
    return best


def _by_number(traces: Sequence[Trace], keys: Sequence[str]) -> Joined:
    """The number that alone differs between the names; of a lone spectrum, the only number in its name."""
    index = _index([key if key.strip().isdigit() else "" for key in keys], _loose)
    parts = [re.split(r"(\d+)", _stem(trace)) for trace in traces]
    templates = Counter(tuple(part[::2]) for part in parts)
    template = templates.most_common(1)[0][0] if templates else ()
    mine = [part for part in parts if tuple(part[::2]) == template]
    slots = range(1, 2 * len(template) - 1, 2)
    varying = [k for k in slots if len({part[k] for part in mine}) > 1] if len(mine) > 1 else list(slots)
    if len(varying) != 1 or not any(re.search(r"[^\W\d_]", part) for part in template):
        return Joined([None] * len(traces))
    entries = [index.get(str(int(part[varying[0]]))) if tuple(part[::2]) == template else None for part in parts]
    doubts = []
    counted, listed = {int(part[varying[0]]) for part in mine}, {int(one) for one in index}
    for step in (1, -1):  # counted from 0 on one side and from 1 on the other
        if len(mine) == len(parts) and {n + step for n in counted} == listed:
            number = int(parts[0][varying[0]])
            doubts.append((traces[0].name, [str(n) for n in sorted({number, number + step} & listed)]))
    return Joined(entries, doubts)


def _stem(trace: Trace) -> str:
    """The name without the ending of a file, whose digits count nothing."""
    return re.sub(r"\.[A-Za-z]\w{1,4}$", "", trace.name)


def _by_word(traces: Sequence[Trace], keys: Sequence[str]) -> Joined:
    index = _index(keys, _loose)
    found = Joined([])
    for trace in traces:
        entries: set[int] = set()
        for key in (*trace.keys, trace.name):
            words = _SEPARATORS.split(re.sub(r"\.[A-Za-z]\w{1,4}$", "", key.strip()))
            last = [words[-1], re.sub(r"\d+$", "", words[-1])]
            mine = next((index[_loose(word)] for word in last if word and _loose(word) in index), None)
            if mine is not None:
                others = {index[_loose(word)] for word in words[:-1] if word and _loose(word) in index}
                entries |= {mine} | others
        if len(entries) > 1:
            found.doubts.append((trace.name, [keys[i] for i in sorted(entries)]))
        found.entries.append(entries.pop() if len(entries) == 1 else None)
    return found
