# SPDX-License-Identifier: Apache-2.0
"""Small pieces of HTML, for notebooks. Every text is escaped: names and metadata come from files."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

ROWS_MAX = 50
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: int) -> str:
    """A number of bytes in the unit that keeps it short."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit else f"{count} B"


def extents(shape: Iterable[int]) -> str:
    """A shape in brackets."""
    return f"[{', '.join(map(str, shape))}]"


def kind(word: str, rank: int) -> str:
    """Who holds an entry."""
    return f"{word}, rank {rank}" if rank >= 0 else word


def paragraph(text: str) -> str:
    """A text of its own."""
    return f"<p>{escape(text)}</p>"


def section(title: str, facts: Mapping[str, str]) -> str:
    """A title, and what there is to say in one line; facts without a value are left out."""
    said = "; ".join(f"{escape(name)}: {escape(value)}" for name, value in facts.items() if value)
    return f"<p><b>{escape(title)}</b><br>{said}</p>"


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], count: int) -> str:
    """Rows under titles; below them how many of `count` were left out."""
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    rest = paragraph(f"and {count - len(rows)} more") if count > len(rows) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"
