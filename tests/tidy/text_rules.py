# SPDX-License-Identifier: Apache-2.0
"""Rules that one line or one name can break: opening of a file, ASCII, banned calls, TODO kinds, switched-off tests,
names that say nothing, lines that are too long.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from code_text import line_of, without_comments_and_strings
from source_tree import CPP_SUFFIXES, Finding, SourceTree

SPDX = "SPDX-License-Identifier: Apache-2.0"
OPENING_LINES_MAX = 16
SOURCE_SUFFIXES = (".h", ".hpp", ".cc", ".c", ".cu", ".py", ".pyi", ".java", ".rs", ".i", ".sh", ".cmake", ".fbs")
# Files whose whole point is text that is not ASCII keep it escaped; only data may hold other bytes.
DATA_FOLDERS = ("tests/golden/", "tests/fuzz/corpus/")
TODO_KINDS = ("soon", "perf", "port", "test")
COLUMNS_MAX = 100
RAW_STRING = re.compile(r'R"(\w*)\((.*?)\)\1"', re.S)

BANNED_IN_CORE = [
    (re.compile(r"(?:(?<=[;{})])\s*|\bstd::|(?<!\w)::)(abort|exit|quick_exit|_exit|_Exit|terminate)\s*\("),
     "ends the host's process"),
    (re.compile(r"\bstd::(cout|cerr|clog)\b"), "text goes to the log sink"),
    (re.compile(r"(?<![\w.])(?:std::|fmt::)?(printf|fprintf|vprintf|puts|fputs|putchar|perror)\s*\("),
     "text goes to the log sink"),
    (re.compile(r"\busing\s+namespace\b"), "names are written out"),
    (re.compile(r"\b(strcpy|strcat|sprintf|gets|strtok|system|setenv|putenv)\s*\("), "not safe inside a host"),
]
BANNED_IN_TESTS = [
    (re.compile(r"\b(?:sleep|usleep|nanosleep|sleep_for|sleep_until|Thread\.sleep|thread::sleep)\s*\("),
     "no sleeps: use a gate or a fake clock"),
]
DISABLED_TESTS = [
    (re.compile(r"\bDISABLED_\w+"), "a disabled GoogleTest carries no reason: use GTEST_SKIP() << \"reason\""),
    (re.compile(r"\bGTEST_SKIP\s*\(\s*\)\s*;"), "GTEST_SKIP without a reason"),
    (re.compile(r"@pytest\.mark\.skip\b(?!\s*\(\s*reason\s*=)"), "skip without reason="),
    (re.compile(r"@pytest\.mark\.(?:skipif|xfail)\((?![^\n]*reason\s*=)[^\n]*\)\s*$", re.M), "mark without reason="),
    (re.compile(r"\bpytest\.skip\(\s*\)"), "skip without a reason"),
    (re.compile(r"@Disabled\b(?!\s*\(\s*\")"), "@Disabled without a reason"),
    (re.compile(r"#\[ignore\](?!\s*=)"), "#[ignore] without a reason"),
]
VAGUE = re.compile(r"(?:^|[_/])(util|utils|common|helper|helpers|misc|manager|managers)(?:[_./]|$)")


def check_columns(tree: SourceTree) -> list[Finding]:
    """Lines of C and C++ end at 100 columns, comments too; raw strings are text of their own."""
    findings = []
    for path in tree.paths(*CPP_SUFFIXES):
        text = tree.text(path)
        raw = {line for match in RAW_STRING.finditer(text)
               for line in range(line_of(text, match.start()), line_of(text, match.end()) + 1)}
        findings += [Finding(path, number, "columns", f"{len(line)} columns, more than {COLUMNS_MAX}")
                     for number, line in enumerate(text.split("\n"), 1)
                     if len(line) > COLUMNS_MAX and number not in raw]
    return findings


def check_opening(tree: SourceTree) -> list[Finding]:
    """SPDX line, then what the file is for, in at most 15 lines."""
    findings = []
    for path in [*tree.paths(*SOURCE_SUFFIXES), *tree.paths("CMakeLists.txt")]:
        lines = tree.lines(path)
        if lines and lines[0].startswith("#!"):
            lines = lines[1:]
        if not lines or SPDX not in lines[0]:
            findings.append(Finding(path, 1, "opening", f"the first line must hold '{SPDX}'"))
            continue
        opening = lines[1:]
        if path.endswith((".py", ".pyi")):
            quoted = "\n".join(opening).lstrip("\n")
            purpose = re.match(r'r?"""(.*?)"""', quoted, re.S)
            text = purpose[1].splitlines() if purpose else []
            if not purpose and quoted.startswith("#"):
                text = [line for line in opening if line.startswith("#")]
        else:
            text = []
            for line in opening:
                if line.startswith("//!"):
                    text.append("crate or module documentation: shown to users, so it may be long")
                    break
                if not re.match(r"\s*(//|#(?!include|define|if|pragma)|\*|/\*)", line):
                    break
                text.append(line.strip("/#* \t"))
        # The numbered steps of a protocol stand at the top too, and may be long.
        steps = next((index for index, line in enumerate(text) if re.match(r"\s*\d+[.)]?\s", line)), len(text))
        text = text[:steps]
        content = [line for line in text if line.strip()]
        # A source whose header says it, a test whose names are sentences, and a folder's list of files need no text.
        spoken_for = path.endswith(("CMakeLists.txt", "_test.cc")) or (
            path.endswith(".cc") and (tree.exists(f"{path[:-3]}.h") or tree.exists(f"{path[:-3]}_internal.h")))
        if not content and not spoken_for:
            findings.append(Finding(path, 2, "opening", "the file does not say what it is for"))
        elif len(text) > OPENING_LINES_MAX:
            findings.append(Finding(path, 2, "opening", f"the opening comment has {len(text)} lines, more than 15"))
    return findings


def check_ascii(tree: SourceTree) -> list[Finding]:
    findings = []
    for path in tree.paths():
        if path.startswith(DATA_FOLDERS) or tree.is_binary(path):
            continue
        for number, line in enumerate(tree.lines(path), start=1):
            if not line.isascii():
                where = next(index for index, character in enumerate(line) if ord(character) > 127)
                findings.append(Finding(path, number, "ascii", f"character U+{ord(line[where]):04X} at column {where + 1}"))
    return findings


def _search(path: str, code: str, patterns: list[tuple[re.Pattern[str], str]], rule: str) -> list[Finding]:
    return [Finding(path, line_of(code, match.end()), rule, f"{match[0].strip()}: {reason}")
            for pattern, reason in patterns for match in pattern.finditer(code)]


def _is_own_member(code: str, match: re.Match[str]) -> bool:
    """True for `abort();` inside a class that defines a member of that name."""
    return bool(match.lastindex and "::" not in match[0]
                and re.search(rf"\b[A-Z]\w*::{re.escape(match[1])}\s*\(", code))


def check_banned_calls(tree: SourceTree) -> list[Finding]:
    findings = []
    for path in tree.paths(*CPP_SUFFIXES, under=("core", "capi")):
        code = without_comments_and_strings(tree.text(path))
        findings += [Finding(path, line_of(code, match.end()), "banned-call", f"{match[0].strip()}: {reason}")
                     for pattern, reason in BANNED_IN_CORE for match in pattern.finditer(code)
                     if not _is_own_member(code, match)]
    for path in tree.paths(*CPP_SUFFIXES, ".java", ".rs", ".py"):
        is_test = path.startswith("tests/") or "/src/test/" in path or "/tests/" in path
        if not is_test or path.startswith("tests/tidy/"):
            continue
        code = tree.text(path)
        code = re.sub(r"#[^\n]*", "", code) if path.endswith(".py") else without_comments_and_strings(code)
        findings += _search(path, code, BANNED_IN_TESTS, "banned-call")
    return findings


def check_todo(tree: SourceTree) -> list[Finding]:
    findings = []
    pattern = re.compile(r"\b(TODO|FIXME|XXX)\b(?:\((\w+)\):\s*(\S)?)?")
    for path in tree.paths(*SOURCE_SUFFIXES, "CMakeLists.txt", "Makefile"):
        if path.startswith("tests/tidy/"):
            continue
        for number, line in enumerate(tree.lines(path), start=1):
            for match in pattern.finditer(line):
                if match[1] != "TODO" or match[2] not in TODO_KINDS or not match[3]:
                    findings.append(Finding(path, number, "todo",
                                            f"'{match[0]}': write TODO(kind): text, kind one of {', '.join(TODO_KINDS)}"))
    return findings


def check_disabled_tests(tree: SourceTree) -> list[Finding]:
    findings = []
    for path in tree.paths(*CPP_SUFFIXES, ".py", ".java", ".rs"):
        if not path.startswith("tests/tidy/"):
            findings += _search(path, tree.text(path), DISABLED_TESTS, "disabled-test")
    return findings


def check_names(tree: SourceTree) -> list[Finding]:
    findings = []
    # Under the names of other projects.
    others = ("bindings/python/shardwright/torch/dcp/", "tests/golden/megatron")
    for path in tree.paths(under=("core", "capi", "include", "bindings", "cli", "tests", "benchmarks", "examples", "tools")):
        found = None if path.startswith(others) else VAGUE.search(path)
        if found:
            findings.append(Finding(path, 0, "name", f"'{found[1]}' says nothing; name it by what it is"))
        if path.startswith("core/") and len(PurePosixPath(path).parts) > 5:
            findings.append(Finding(path, 0, "name", "more than three folder levels below core/"))
    return findings


def check(tree: SourceTree) -> list[Finding]:
    return [*check_opening(tree), *check_ascii(tree), *check_banned_calls(tree), *check_todo(tree),
            *check_disabled_tests(tree), *check_names(tree)]
