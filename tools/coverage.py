#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of build/coverage and prints line coverage per folder of core/ and capi/.

A folder below MINIMUM_PERCENT, or of which no line was seen, fails; the closing line counts folders as tests. The full
listing is in build/coverage/coverage.txt.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TREE = ROOT / "build" / "coverage"
PROFILES = TREE / "profiles"
MINIMUM_PERCENT = 75.0


def run_tests() -> int:
    PROFILES.mkdir(exist_ok=True)
    for old in PROFILES.glob("*.profraw"):
        old.unlink()
    environment = dict(os.environ, LLVM_PROFILE_FILE=str(PROFILES / "%p-%m.profraw"))
    return subprocess.run(["ctest", "--test-dir", str(TREE), "-j", str(os.cpu_count() or 2), "--output-on-failure", "-LE",
                           "soak|bindings|install|docs|torch|mindspore"], env=environment, check=False).returncode


def source_name(recorded: str) -> str | None:
    """Path from the root of a recorded file name, which is absolute, or from the root, or from the build folder."""
    for base in (TREE, ROOT):
        name = os.path.relpath(os.path.join(base, recorded), ROOT).removeprefix("build/coverage/")
        if (ROOT / name).is_file():
            return name
    return None


def folder_of(name: str) -> str:
    return "/".join(name.split("/")[:2]) if name.startswith("core/") else "capi"


def all_folders() -> set[str]:
    """Those that have sources of their own, generated ones and plugins aside."""
    sources = [path.relative_to(ROOT).as_posix() for top in ("core", "capi") for path in (ROOT / top).rglob("*.cc")]
    return {folder_of(name) for name in sources}


def lines_by_folder() -> dict[str, list[int]]:
    """Covered and all lines per folder of the sources, from every test program and the library."""
    merged = TREE / "coverage.profdata"
    subprocess.run(["llvm-profdata-19", "merge", "-sparse", "-o", str(merged), *map(str, PROFILES.glob("*.profraw"))],
                   check=True)
    programs = [path for folder in ("tests", "fuzz") for path in sorted((TREE / folder).glob("*"))
                if path.is_file() and os.access(path, os.X_OK)]
    programs.append(TREE / "lib" / "libshardwright.so.0")
    objects = [word for path in programs if path.exists() for word in ("-object", str(path))]
    exported = subprocess.run(["llvm-cov-19", "export", "-summary-only", f"-instr-profile={merged}", *objects],
                              check=True, capture_output=True, text=True).stdout
    folders: dict[str, list[int]] = {folder: [0, 0] for folder in all_folders()}
    listing = []
    for entry in json.loads(exported)["data"][0]["files"]:
        name = source_name(entry["filename"])
        if name is None or not name.startswith(("core/", "capi/")):
            continue
        lines = entry["summary"]["lines"]
        folder = folder_of(name)
        folders[folder][0] += lines["covered"]
        folders[folder][1] += lines["count"]
        listing.append(f"{lines['percent']:6.1f} %  {lines['covered']:6}/{lines['count']:<6} {name}")
    (TREE / "coverage.txt").write_text("\n".join(sorted(listing)) + "\n")
    return folders


def main() -> int:
    tests_failed = run_tests() != 0
    failed = int(tests_failed)
    passed = int(not tests_failed)
    for folder, (covered, count) in sorted(lines_by_folder().items()):
        percent = 100.0 * covered / max(count, 1)
        good = percent >= MINIMUM_PERCENT
        passed += good
        failed += not good
        print(f"{'pass' if good else 'FAIL'} {folder}: {percent:.1f} % of {count} lines")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
