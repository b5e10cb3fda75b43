"""What `docker build` would see of the repository, and where it would put it: .dockerignore and COPY, read as Docker
reads them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent.parent
DOCKERFILE = ROOT / "deploy" / "Dockerfile"


def instructions(text: str | None = None) -> list[tuple[str, str]]:
    """(instruction, arguments) of the Dockerfile, continued lines joined."""
    text = re.sub(r"\\\n", " ", DOCKERFILE.read_text() if text is None else text)
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]  # type: ignore[misc]


def sent(name: str, ignore: str) -> bool:
    """Whether a file of the repository reaches the build: the last pattern that matches it, or a folder above it,
    decides."""
    path = PurePosixPath(name)
    kept = True
    for line in ignore.splitlines():
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        expression = _expression(pattern.removeprefix("!").strip("/"))
        if any(expression.fullmatch(str(part)) for part in (path, *path.parents)):
            kept = pattern.startswith("!")
    return kept


def copy_context(target: Path, dockerfile: str | None = None) -> None:
    """Copy into ``target`` what the COPY instructions bring from the repository, with paths as in the build."""
    ignore = (ROOT / ".dockerignore").read_text()
    for name, arguments in instructions(dockerfile):
        if name != "COPY":
            continue
        *sources, where = arguments.split()
        for source in sources:
            # a folder's content goes into the target, a file into the folder that it names
            found = [ROOT / source] if (ROOT / source).is_file() else sorted((ROOT / source).rglob("*"))
            for file in found:
                inside = file.relative_to(ROOT).as_posix()
                if not file.is_file() or not sent(inside, ignore):
                    continue
                place = target / where / (file.name if file == ROOT / source else file.relative_to(ROOT / source))
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, place)


def _expression(pattern: str) -> re.Pattern[str]:
    """Docker's patterns: ``**`` is any number of folders, ``*`` and ``?`` stay within one."""
    tokens = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return re.compile("".join(tokens.get(part, re.escape(part)) for part in parts))
