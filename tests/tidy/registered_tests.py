# SPDX-License-Identifier: Apache-2.0
"""Every test file below tests/ is named by a CMakeLists.txt of its folder or of one above: a file that no build step knows
is never run, and nothing else would say so. Python files count when they lie below a path of shw_pytest.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from source_tree import Finding, SourceTree

COMPILED = ("_test.cc", "_test.c", "_fuzz.cc")
RUN_BY_THE_DRIVER = ("tests/tidy/",)  # tools/run_tests.py gives this folder to pytest
_PYTEST = re.compile(r"shw_pytest\(\s*[\w.]+([^)]*)\)")
_PATHS = re.compile(r"\bPATHS\s+((?:(?!(?:LABELS|TIMEOUT|ENVIRONMENT)\b)\S+\s*)+)")


def lists_above(tree: SourceTree, path: str) -> Iterator[tuple[str, str]]:
    """(folder, text) of each CMakeLists.txt between the file and the root."""
    folder = posixpath.dirname(path)
    while folder:
        if tree.exists(f"{folder}/CMakeLists.txt"):
            yield folder, tree.text(f"{folder}/CMakeLists.txt")
        folder = posixpath.dirname(folder)


def is_compiled(tree: SourceTree, path: str) -> bool:
    for folder, text in lists_above(tree, path):
        name = posixpath.relpath(path, folder)
        # Either the file, or the word before _test in a list that a loop completes.
        word = re.escape(re.sub(r"_(test|fuzz)\.\w+$", "", name))
        loop = rf"foreach\(name IN ITEMS[^)]*(?<![\w/]){word}(?![\w/])[^)]*\)"
        if re.search(rf"(?<![\w/]){re.escape(name)}(?!\w)", text) or re.search(loop, text):
            return True
    return False


def is_given_to_pytest(tree: SourceTree, path: str) -> bool:
    for folder, text in lists_above(tree, path):
        for arguments in _PYTEST.findall(text):
            paths = _PATHS.search(arguments)
            for given in paths[1].split() if paths else ():
                whole = posixpath.normpath(posixpath.join(folder, given))
                if path == whole or path.startswith(f"{whole}/"):
                    return True
    return False


def check(tree: SourceTree) -> list[Finding]:
    findings = []
    for path in tree.paths(under=("tests",)):
        name = posixpath.basename(path)
        if path.startswith(RUN_BY_THE_DRIVER):
            continue
        if path.endswith(COMPILED) and not is_compiled(tree, path):
            findings.append(Finding(path, 0, "registered-tests", "no CMakeLists.txt names it, so it is never compiled"))
        if name.startswith("test_") and name.endswith(".py") and not is_given_to_pytest(tree, path):
            findings.append(Finding(path, 0, "registered-tests", "no shw_pytest of a CMakeLists.txt reaches it"))
    return findings
