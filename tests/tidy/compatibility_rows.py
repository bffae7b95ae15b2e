# SPDX-License-Identifier: Apache-2.0
"""Each row of docs/compatibility.md names a test, and the tests that it names are there. A row says "(run)" when a test of
it runs the original's own code, and only then."""

from __future__ import annotations

import ast
import re

from source_tree import Finding, SourceTree

PAGE = "docs/compatibility.md"
_CODE = re.compile(r"`([^`\n]+)`")
_FILE = re.compile(r"^[\w/]*\w+\.(py|cc|c)$")
_NAME = re.compile(r"^\w+")
# How tests call the code of torch, megatron-core or safetensors that ours stands for.
_ORIGINAL = re.compile(r"(?<![\w.])(original|torch_saves|_compare_save_plans|safetensors\.safe_open)\b")
_RUN = "(run)"


def _code_of_tests(tree: SourceTree) -> dict[str, str]:
    """Code of each Python function of the tests, without docstrings and comments, by name."""
    found: dict[str, str] = {}
    for path in tree.paths(".py", under=("tests",)):
        if path.startswith("tests/tidy/"):
            continue
        for node in ast.walk(ast.parse(tree.text(path))):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) is not None else node.body
                code = "\n".join([ast.unparse(node.args), *map(ast.unparse, body)])
                found[node.name] = found.get(node.name, "") + code
    return found


def check(tree: SourceTree) -> list[Finding]:
    if not tree.exists(PAGE):
        return []
    # A row about cost is measured, not asserted: its benchmark stands for the test.
    tests = "\n".join(tree.text(path) for suffix in (".py", ".cc", ".c") for path in tree.paths(suffix)
                      if path.startswith(("tests/", "benchmarks/")) and not path.startswith("tests/tidy/"))
    known = set(re.findall(r"\w+", tests))
    code = _code_of_tests(tree)
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
        functions = [_NAME.match(text)[0] for text in named if not _FILE.match(text) and _NAME.match(text)]
        runs = any(_ORIGINAL.search(code.get(function, "")) for function in functions)
        if runs != (_RUN in last):
            findings.append(Finding(PAGE, number, "compatibility-rows", f"a test of it runs the original: mark it {_RUN}"
                                    if runs else f"{_RUN}, but no test of it runs the original"))
        for text in named:
            name = _NAME.match(text)
            if not _FILE.match(text) and (name is None or name[0] not in known):
                findings.append(Finding(PAGE, number, "compatibility-rows", f"{text}: no test of that name"))
    return findings
