"""The tree of packages with their sizes in docs/architecture.md: `python tools/tree.py` writes it anew."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- tree: python tools/tree.py -->\n", "<!-- end of tree -->\n"
PACKAGES = ("geonode", "kernels/geonode_kernels", "runtime/geonode_runtime")


def about(module: Path) -> str:
    """The first sentence of a package's or module's docstring."""
    text = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split()).rstrip(".")


def lines(folder: Path) -> int:
    """Lines of Python under a folder."""
    return sum(len(p.read_text(encoding="utf-8").splitlines()) for p in folder.rglob("*.py"))


def tree() -> list[tuple[str, int, int, str]]:
    """Of every package: its path, files, lines and what it is, parents before children."""
    found: list[tuple[str, int, int, str]] = []
    for package in PACKAGES:
        for init in sorted((ROOT / package).rglob("__init__.py")):
            folder = init.parent
            name = str(folder.relative_to(ROOT))
            found.append((name, len(list(folder.rglob("*.py"))), lines(folder), about(init)))
    return sorted(found, key=lambda row: row[0].split("/"))


def table() -> str:
    """The tree as Markdown."""
    rows = [f"| `{name}` | {files} | {size} | {what} |" for name, files, size, what in tree()]
    return "\n".join(["| package | files | lines | what it is |", "|---|---:|---:|---|", *rows, ""])


def main() -> int:
    """Replace what stands between the two marks."""
    page = PAGE.read_text(encoding="utf-8")
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    if not tail:
        print(f"{PAGE} lacks the lines {BEGIN.strip()!r} and {END.strip()!r}.", file=sys.stderr)
        return 1
    PAGE.write_text(head + BEGIN + table() + END + tail, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
