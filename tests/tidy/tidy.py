# SPDX-License-Identifier: Apache-2.0
"""Runs every source check and prints `path:line: rule: text` per finding, then 'N passed, N failed, N skipped'.

    tidy.py [--fix-format] [--only CHECK] [--build FOLDER]

Each check is one test of `make test`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import clang_checks
import compatibility_rows
import doc_coverage
import doc_links
import include_direction
import registered_tests
import requirements_used
import size_ratchet
import text_rules
import unity_names
from source_tree import Finding, SourceTree

ROOT = Path(__file__).resolve().parents[2]
SHOWN_MAX = 40


def checks(build: Path) -> dict[str, Callable[[SourceTree], list[Finding]]]:
    return {
        "opening": text_rules.check_opening,
        "columns": text_rules.check_columns,
        "ascii": text_rules.check_ascii,
        "banned-calls": text_rules.check_banned_calls,
        "todo": text_rules.check_todo,
        "disabled-tests": text_rules.check_disabled_tests,
        "names": text_rules.check_names,
        "registered-tests": registered_tests.check,
        "include-direction": include_direction.check,
        "unity-names": unity_names.check,
        "size": size_ratchet.check,
        "dead-links": doc_links.check,
        "compatibility-rows": compatibility_rows.check,
        "requirements-used": requirements_used.check,
        "doc-coverage": doc_coverage.check,
        "clang-format": clang_checks.check_format,
        "clang-tidy": lambda tree: clang_checks.check_tidy(tree, build),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Source checks.")
    parser.add_argument("--fix-format", action="store_true", help="rewrite sources with clang-format and stop")
    parser.add_argument("--only", action="append", help="run this check only (may be repeated)")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="build tree with compile_commands.json")
    arguments = parser.parse_args()
    tree = SourceTree.of_repository(ROOT)
    if arguments.fix_format:
        clang_checks.fix_format(tree)
        return 0
    known = checks(arguments.build)
    if arguments.only and not set(arguments.only) <= set(known):
        parser.error(f"checks: {', '.join(known)}")
    failed = 0
    chosen = {name: run for name, run in known.items() if not arguments.only or name in arguments.only}
    for name, run in chosen.items():
        start = time.monotonic()
        findings = run(tree)
        failed += bool(findings)
        print(f"{'FAIL' if findings else 'pass'} {name} ({time.monotonic() - start:.1f} s)", flush=True)
        for finding in findings[:SHOWN_MAX]:
            print(f"     {finding}")
        if len(findings) > SHOWN_MAX:
            print(f"     and {len(findings) - SHOWN_MAX} more")
    print(f"{len(chosen) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
