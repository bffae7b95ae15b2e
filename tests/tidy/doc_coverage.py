# SPDX-License-Identifier: Apache-2.0
"""Every public declaration of C, Python, Java and Rust has a comment of its own: coverage is 100 % or the check fails.

What the comments must say is for reviewers (and for the tag check of the C headers); this check finds those that are
missing.
"""

from __future__ import annotations

import ast
import re
from pathlib import PurePosixPath

from code_text import line_of, without_comments_and_strings
from source_tree import Finding, SourceTree

C_FOLDER = "include/shardwright"
PYTHON_FOLDER = "bindings/python/shardwright"
JAVA_FOLDER = "bindings/java/src/main"
RUST_FOLDER = "bindings/rust/shardwright/src"

_C_STATEMENT = re.compile(r"^(SHW_API|typedef|struct|enum)\b[^\n]*", re.M)
_JAVA_MEMBER = re.compile(r"^[ \t]*(?:public|protected)\s+[^\n=;{]*", re.M)


def _comment_above(lines: list[str], line: int, is_comment: re.Pattern[str], is_skipped: re.Pattern[str]) -> bool:
    """True when the nearest line above `line` (from 1) that is not skipped ends a comment."""
    index = line - 2
    while index >= 0 and is_skipped.match(lines[index]):
        index -= 1
    return index >= 0 and bool(is_comment.search(lines[index]))


def c_findings(path: str, text: str) -> list[Finding]:
    """Functions, typedefs, structs and enums of a public header; a forward typedef of a handle needs one too."""
    code = without_comments_and_strings(text)
    lines = text.split("\n")
    findings = []
    for match in _C_STATEMENT.finditer(code):
        line = line_of(code, match.start())
        if re.fullmatch(r"(struct|enum) \w+;", match[0].strip()):
            continue  # only names a type that somebody else declares
        if not _comment_above(lines, line, re.compile(r"\*/\s*$"), re.compile(r"^\b$")):
            findings.append(Finding(path, line, "doc-coverage", f"no comment: {match[0].strip()[:60]}"))
    return findings


def python_findings(path: str, text: str) -> list[Finding]:
    """Public modules, classes, functions and methods; names with a leading underscore are private."""
    if any(part.startswith("_") and part != "__init__.py" for part in PurePosixPath(path).parts):
        return []
    module = ast.parse(text)
    findings = [] if ast.get_docstring(module) else [Finding(path, 1, "doc-coverage", "module without docstring")]

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
                continue
            decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
            exempt = any(name.endswith(("overload", ".setter", ".deleter", "override")) for name in decorators)
            if not exempt and not ast.get_docstring(node):
                findings.append(Finding(path, node.lineno, "doc-coverage", f"no docstring: {prefix}{node.name}"))
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{node.name}.")

    visit(module.body, "")
    return findings


def java_findings(path: str, text: str) -> list[Finding]:
    """Public and protected types and members, apart from overrides, which inherit their text, and the package internal."""
    code = without_comments_and_strings(text)
    lines = text.split("\n")
    if not re.search(r"^public\b", code, re.M):
        return []  # the type is private to its package
    if "internal" in PurePosixPath(path).parts:
        return []  # public for the other packages, no API
    annotation = re.compile(r"^\s*@\w+")
    findings = []
    for match in _JAVA_MEMBER.finditer(code):
        line = line_of(code, match.start() + len(match[0]) - len(match[0].lstrip()))
        index = line - 2
        overridden = False
        while index >= 0 and annotation.match(lines[index]):
            overridden |= "@Override" in lines[index]
            index -= 1
        if not overridden and not (index >= 0 and lines[index].rstrip().endswith("*/")):
            findings.append(Finding(path, line, "doc-coverage", f"no comment: {match[0].strip()[:60]}"))
    return findings


def rust_findings(path: str, text: str) -> list[Finding]:
    """The compiler knows best what is public: the root of the crate must make it refuse what has no comment."""
    if path.endswith("/lib.rs") and not re.search(r"^#!\[(deny|forbid)\(missing_docs\)\]", text, re.M):
        return [Finding(path, 1, "doc-coverage", "the crate must open with #![deny(missing_docs)]")]
    if "missing_docs" in text and not path.endswith("/lib.rs"):
        return [Finding(path, line_of(text, text.index("missing_docs")), "doc-coverage", "missing_docs is switched off")]
    return []


def check(tree: SourceTree) -> list[Finding]:
    findings = []
    for suffix, folder, examine in ((".h", C_FOLDER, c_findings), (".py", PYTHON_FOLDER, python_findings),
                                    (".java", JAVA_FOLDER, java_findings), (".rs", RUST_FOLDER, rust_findings)):
        for path in tree.paths(suffix, under=(folder,)):
            findings += examine(path, tree.text(path))
    return findings
