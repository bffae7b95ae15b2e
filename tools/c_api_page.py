#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/c-api.md from the public headers; with --check, fails when the page differs from them.

A header is read as a run of comments, each followed by the declarations that it describes up to the next blank line
outside braces. Nothing is interpreted: text and declarations appear as they are in the header.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADERS = ROOT / "include" / "shardwright"
INTRO = ROOT / "tools" / "c_api_intro.md"
PAGE = ROOT / "docs" / "c-api.md"
# Nouns in the order in which a reader meets them; the umbrella and the generated table have no section.
ORDER = ("base", "context", "tensor", "layout", "state", "mapping", "save", "load", "load_exchange", "torch_items",
         "checkpoint", "checkpoint_entries", "plan", "job", "report", "buffer", "storage", "storage_table", "collective", "collective_table",
         "hsdp", "hsdp_unit", "hsdp_phases", "hsdp_estimate", "communicator", "communicator_table", "work", "device", "device_table",
         "plugin", "log")
NOT_SHOWN = ("shardwright", "api")
_COMMENT = re.compile(r"^/\*(.*?)\*/\n", re.S | re.M)
_TAG = re.compile(r"^(Threads|Blocks|Owns|Errors|Since): (.*)$")


@dataclass(frozen=True)
class Entry:
    """A comment and the declarations below it; no declarations for prose."""

    text: str
    code: str


def plain(comment: str) -> str:
    """Text of a comment without its stars."""
    return "\n".join(re.sub(r"^\s*\* ?", "", line).rstrip() for line in comment.strip().split("\n")).strip()


def declarations_after(text: str) -> str:
    """Lines from the start to the first blank line outside braces."""
    lines = []
    depth = 0
    for line in text.split("\n"):
        if depth == 0 and (not line.strip() or line.startswith(("#if", "#endif", "/*", "#include"))):
            break
        depth += line.count("{") - line.count("}")
        lines.append(line)
    return "\n".join(lines)


def entries_of(header: str) -> list[Entry]:
    entries = []
    for match in _COMMENT.finditer(header):
        entries.append(Entry(plain(match[1]), declarations_after(header[match.end():])))
    return entries


def title_of(code: str) -> str:
    """Name that an entry is looked up by: the function, the type, or the first macro or constant."""
    for pattern in (r"SHW_API[^;]*?\b(shw_\w+)\(", r"\(\s*SHW_CALLBACK\s*\*\s*(\w+)\)", r"\(\s*\*\s*(\w+)\)\s*\(",
                    r"typedef struct (\w+)", r"typedef[^;{]*?(\w+);", r"#define (\w+)", r"enum (\w+)", r"\b(SHW_\w+)\b"):
        found = re.search(pattern, code)
        if found:
            return found[1]
    return ""


def escape(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_") if "`" not in text else text


def rendered(entry: Entry) -> str:
    """One entry as Markdown: title, declaration, text, then the tags on lines of their own."""
    words = []
    tags = []
    for line in entry.text.split("\n"):
        tag = _TAG.match(line)
        if tag:
            tags.append(f"- {tag[1]}: {tag[2]}")
        elif tags:
            tags[-1] += f" {line.strip()}"
        else:
            words.append(line)
    parts = [f"### {title_of(entry.code)}", f"```c\n{entry.code.strip()}\n```", escape("\n".join(words).strip())]
    if tags:
        parts.append("\n".join(tags))
    return "\n\n".join(part for part in parts if part)


def section(stem: str, header: str) -> str:
    opening, *entries = entries_of(header)
    text = opening.text.removeprefix("SPDX-License-Identifier: Apache-2.0").strip()
    parts = [f"## {stem}.h", escape(text)]
    parts += [rendered(entry) for entry in entries if entry.code.strip() and title_of(entry.code)]
    return "\n\n".join(parts)


def page() -> str:
    stems = sorted({path.stem for path in HEADERS.glob("*.h")} - set(NOT_SHOWN),
                   key=lambda stem: (ORDER.index(stem) if stem in ORDER else len(ORDER), stem))
    sections = [section(stem, (HEADERS / f"{stem}.h").read_text()) for stem in stems]
    contents = "\n".join(f"- [{stem}.h](#{stem}h)" for stem in stems)
    return "\n\n".join([INTRO.read_text().rstrip(), "## Headers", contents, *sections]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Makes docs/c-api.md.")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    arguments = parser.parse_args()
    text = page()
    if not arguments.check:
        PAGE.write_text(text)
        return 0
    if not PAGE.exists() or PAGE.read_text() != text:
        print("docs/c-api.md differs from the headers; run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
