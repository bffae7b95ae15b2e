# SPDX-License-Identifier: Apache-2.0
"""Links of Markdown pages lead somewhere: relative targets exist in the tree and anchors name a heading.
External addresses are not opened.
"""

from __future__ import annotations

import posixpath
import re

from source_tree import Finding, SourceTree

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
_FENCE = re.compile(r"^```.*?^```", re.S | re.M)
_CODE = re.compile(r"`[^`\n]*`")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.M)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def anchors(text: str) -> set[str]:
    """Anchors that hosts of Markdown make from headings; repeated headings get -1, -2."""
    found: dict[str, int] = {}
    names = set()
    for heading in _HEADING.findall(_FENCE.sub(_blank, text)):
        plain = re.sub(r"[`*_]|\[([^\]]*)\]\([^)]*\)", lambda match: match[1] or ("_" if match[0] == "_" else ""), heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        count = found.get(slug, 0)
        names.add(f"{slug}-{count}" if count else slug)
        found[slug] = count + 1
    return names


def check(tree: SourceTree) -> list[Finding]:
    findings = []
    for path in tree.paths(".md"):
        text = _CODE.sub(_blank, _FENCE.sub(_blank, tree.text(path)))
        for match in _LINK.finditer(text):
            target, _, anchor = match[1].partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            line = text.count("\n", 0, match.start()) + 1
            resolved = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
            if resolved != "." and not tree.exists(resolved):
                findings.append(Finding(path, line, "dead-link", f"{match[1]}: no such file"))
            elif anchor and resolved.endswith(".md") and anchor not in anchors(tree.text(resolved)):
                findings.append(Finding(path, line, "dead-link", f"{match[1]}: no such heading"))
    return findings
