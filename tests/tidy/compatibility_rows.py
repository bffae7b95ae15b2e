# SPDX-License-Identifier: Apache-2.0
"""Each row of docs/compatibility.md names a test, and the tests that it names are there."""

from __future__ import annotations

import re

from source_tree import Finding, SourceTree

PAGE = "docs/compatibility.md"
_CODE = re.compile(r"`([^`\n]+)`")
_FILE = re.compile(r"^[\w/]*\w+\.(py|cc|c)$")
_NAME = re.compile(r"^\w+")


def check(tree: SourceTree) -> list[Finding]:
    if not tree.exists(PAGE):
        return []
    tests = "\n".join(tree.text(path) for suffix in (".py", ".cc", ".c") for path in tree.paths(suffix)
                      if path.startswith("tests/") and not path.startswith("tests/tidy/"))
    known = set(re.findall(r"\w+", tests))
    findings = []
    in_tests = False
    for number, line in enumerate(tree.text(PAGE).splitlines(), 1):
        if not line.startswith("|"):
            in_tests = False
            continue
        last = line.rstrip().removesuffix("|").rsplit("|", 1)[-1]
        if last.strip() == "test":
            in_tests = True
            continue
        if not in_tests or set(line) <= set("|- "):
            continue
        named = _CODE.findall(last)
        if not named:
            findings.append(Finding(PAGE, number, "compatibility-rows", "the row names no test"))
        for text in named:
            name = _NAME.match(text)
            if not _FILE.match(text) and (name is None or name[0] not in known):
                findings.append(Finding(PAGE, number, "compatibility-rows", f"{text}: no test of that name"))
    return findings
