# SPDX-License-Identifier: Apache-2.0
"""Files end at 600 lines (public C headers at 400) and functions at 70. size_allow.txt lists the exceptions with their
reason; an entry that is larger than needed fails too, so that what became short stays short.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from code_text import without_comments_and_strings
from source_tree import Finding, SourceTree

ALLOW_FILE = "tests/tidy/size_allow.txt"
FILE_LINES_MAX = 600
PUBLIC_HEADER_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
CODE_SUFFIXES = (".h", ".hpp", ".cc", ".c", ".cu", ".py", ".java", ".rs", ".i", ".sh", ".cmake")

_SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|interface|record|trait|impl|mod|@interface)\b|extern\s*\"")
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*(?:\\\n[^\n]*)*", re.M)
# Written by a program that a test runs again to compare: capi/generate.py, and bindings/rust/generator.
GENERATED = {"include/shardwright/api.h", "bindings/rust/shardwright-sys/src/generated/ffi.rs",
             "bindings/rust/shardwright-sys/src/generated/layout.rs", "bindings/rust/shardwright-sys/src/generated/raw.rs",
             "bindings/rust/shardwright-sys/src/generated/table.rs"}
_RUST_FUNCTION = re.compile(r"\bfn\s+(\w+)")
_C_FUNCTION = re.compile(r"([~\w:]+)\s*\(")


@dataclass(frozen=True)
class Function:
    name: str
    first_line: int
    lines: int


def python_functions(text: str) -> list[Function]:
    """Functions and methods; the lines of a docstring do not count."""
    functions = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            lines -= (first.end_lineno or first.lineno) - first.lineno + 1
        functions.append(Function(node.name, node.lineno, lines))
    return functions


def brace_functions(text: str, rust: bool = False) -> list[Function]:
    """Functions of a C, C++, Java or Rust source: outermost braces that open neither a scope nor an initialiser."""
    code = without_comments_and_strings(text)
    if not rust:
        code = _DIRECTIVE.sub(lambda directive: re.sub(r"[^\n]", " ", directive[0]), code)
    functions: list[Function] = []
    stack: list[tuple[str, str, int]] = []  # kind, name, first line
    statement = 0
    for match in re.finditer(r"[{};]", code):
        inside = any(kind == "function" for kind, _, _ in stack)
        if match[0] == "{":
            head = re.sub(r"\b(public|private|protected)\s*:", lambda label: " " * len(label[0]),
                          code[statement:match.start()])
            kind, name = ("block", "") if inside else _classify(head, rust)
            first = code.count("\n", 0, statement + len(head) - len(head.lstrip())) + 1
            stack.append((kind, name, first))
            if kind != "block":
                statement = match.end()
        elif match[0] == "}":
            if not stack:
                continue
            kind, name, first = stack.pop()
            if kind == "function":
                last = code.count("\n", 0, match.start()) + 1
                functions.append(Function(name, first, last - first + 1))
            if kind != "block":
                statement = match.end()
        elif not stack or stack[-1][0] == "scope":
            statement = match.end()
    return functions


def _classify(head: str, rust: bool) -> tuple[str, str]:
    """Kind and name of what an opening brace begins, from the text between it and the end of the last statement."""
    if rust:
        function = _RUST_FUNCTION.search(head)
        if function:
            return "function", function[1]
        return ("scope", "") if _SCOPE.search(head) else ("block", "")
    head = re.sub(r"@(?!interface\b)[\w.]+(?:\s*\((?:[^()]|\([^()]*\))*\))?", " ", head)  # annotations of Java
    if re.search(r"\brecord\s+\w+\s*\(", head):  # of Java: a type with its fields in parentheses
        return "scope", ""
    head = re.sub(r"\btemplate\s*<[^{]*?>(?=\s*(?:class|struct|\w))", " ", head)
    call = _C_FUNCTION.search(re.sub(r"\b(?:__attribute__|alignas|SHW_\w+|requires|noexcept|decltype)\s*\((?:[^()]|\([^()]*\))*\)",
                                     " ", head))
    scope = _SCOPE.search(head)
    if scope and (not call or scope.start() < call.start()) and not re.search(r"\)\s*(const|noexcept|override)?\s*$", head):
        return "scope", ""
    # A member initialiser such as `x_{1}` between the parameters and the body of a constructor.
    if re.search(r"\)[^;{}]*[^:]:[^:]", head) and re.search(r"[\w>]\s*$", head) \
            and not re.search(r"\b(const|noexcept|override|final|mutable)\s*$", head):
        return "block", ""
    if call and not re.search(r"=\s*$", head) and not re.search(r"=\s*\(?\s*\w*\s*$", head[:call.start()]):
        return "function", call[1]
    return "block", ""


def functions_of(path: str, text: str) -> list[Function]:
    if path.endswith(".py"):
        return python_functions(text)
    if path.endswith((".h", ".hpp", ".cc", ".c", ".java")):
        return brace_functions(text)
    if path.endswith(".rs"):
        return brace_functions(text, rust=True)
    return []


def read_allowed(text: str) -> dict[str, int]:
    """Lines of the allow file: `path[:function] lines reason`."""
    allowed = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            name, lines, reason = line.split(maxsplit=2)
            assert reason, line
            allowed[name] = int(lines)
    return allowed


def check(tree: SourceTree) -> list[Finding]:
    allowed = read_allowed(tree.text(ALLOW_FILE)) if tree.exists(ALLOW_FILE) else {}
    findings = []
    used = {}
    for path in tree.paths(*CODE_SUFFIXES):
        if path in GENERATED:
            continue
        text = tree.text(path)
        lines = text.count("\n")
        limit = PUBLIC_HEADER_LINES_MAX if path.startswith("include/") else FILE_LINES_MAX
        if lines > limit:
            used[path] = lines
        for function in functions_of(path, text):
            if function.lines > FUNCTION_LINES_MAX:
                used[f"{path}:{function.name}"] = max(function.lines, used.get(f"{path}:{function.name}", 0))
    for name, lines in used.items():
        path, _, function = name.partition(":")
        if lines > allowed.get(name, 0):
            limit = FUNCTION_LINES_MAX if function else FILE_LINES_MAX
            what = f"function {function}" if function else "file"
            findings.append(Finding(path, 0, "size", f"{what} has {lines} lines, more than "
                                    f"{allowed.get(name) or (limit if function or not path.startswith('include/') else 400)}"))
    for name, lines in allowed.items():
        if used.get(name, 0) < lines:
            findings.append(Finding(ALLOW_FILE, 0, "size", f"{name} may be lowered from {lines} to {used.get(name, 0)}"))
    return findings
