"""What every page of geonode is made of: the document around its parts, and tables. Used by the benchmark too."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape

# Light on purpose, whatever the reader prefers: figures are drawn on white and would be islands on a dark page.
STYLE = """
:root{color-scheme:only light}
body{font:14px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:76rem;padding:0 1rem;color:#1c2733;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}table{border-collapse:collapse;font-size:12.5px;width:100%}
th,td{padding:.25rem .5rem;border-bottom:1px solid #dde3e8;text-align:left;vertical-align:top}th{background:#f2f5f7}
figure{margin:1.5rem 0}figure svg{max-width:100%;height:auto}.scroll{overflow-x:auto}
"""


def document(title: str, body: str, *, style: str = "", script: str = "") -> str:
    """A whole page that asks for nothing from outside.

    Args:
        title: plain text. body: HTML.
        style: CSS added to the common one.
        script: JavaScript; where there is one, a policy in the page lets the browser run that text, by its hash, and
            nothing else, so that no text of a user's file can become a program.
    """
    policy = code = ""
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        rules = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
        policy = f'<meta http-equiv="Content-Security-Policy" content="{rules}">'
        code = f"<script>{script}</script>"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{policy}<title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><link rel="icon" href="data:,">'
        f"<style>{STYLE}{style}</style></head><body>{body}{code}</body></html>"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]], name: str = "") -> str:
    """A table that scrolls sideways where the page is narrow.

    Args:
        head: plain text of the headings; all empty for none. rows: HTML of the cells.
        name: what a screen reader calls it, plain text.
    """
    top = "".join(f'<th scope="col">{escape(h)}</th>' for h in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    # A box that scrolls must be reachable by keyboard, and then needs a name.
    reach = f' tabindex="0" role="region" aria-label="{escape(name)}"' if name else ""
    heading = f"<thead><tr>{top}</tr></thead>" if any(head) else ""
    return f'<div class="scroll"{reach}><table>{heading}<tbody>{body}</tbody></table></div>'
