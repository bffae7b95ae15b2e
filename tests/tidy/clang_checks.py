# SPDX-License-Identifier: Apache-2.0
"""clang-format over all C and C++ sources, and clang-tidy over those that changed since the merge base with the main
branch. Both are pinned to version 19; a machine without them fails, it does not pass in silence.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from source_tree import CPP_SUFFIXES, Finding, SourceTree

FORMAT = "clang-format-19"
TIDY = "clang-tidy-19"
GCC_ONLY = ("-fno-gnu-unique", "-Wno-restrict", "-Wno-stringop-overflow")
FOLDERS = ("core", "capi", "cli")
MAIN_BRANCHES = ("origin/main", "origin/master", "main", "master")
_TOGETHER = re.compile(r'^#include "([^"]+)"$', re.M)
_DIAGNOSTIC = re.compile(r"^(?P<path>[^\s:][^:\n]*):(?P<line>\d+):\d+: (?:warning|error): (?P<text>.*)$", re.M)


def formatted_paths(tree: SourceTree) -> list[str]:
    return list(tree.paths(*CPP_SUFFIXES))


def fix_format(tree: SourceTree) -> None:
    """Rewrites the sources in place."""
    assert tree.root is not None
    subprocess.run([FORMAT, "-i", *formatted_paths(tree)], cwd=tree.root, check=True)


def check_format(tree: SourceTree) -> list[Finding]:
    assert tree.root is not None
    paths = formatted_paths(tree)
    if not paths:
        return []
    if not shutil.which(FORMAT):
        return [Finding(".clang-format", 0, "clang-format", f"{FORMAT} is not installed")]
    done = subprocess.run([FORMAT, "--dry-run", "--Werror", *paths], cwd=tree.root, capture_output=True, text=True,
                          check=False)
    first: dict[str, Finding] = {}
    for match in _DIAGNOSTIC.finditer(done.stderr):
        first.setdefault(match["path"], Finding(match["path"], int(match["line"]), "clang-format",
                                                "not formatted; run `make format`"))
    if done.returncode != 0 and not first:
        return [Finding(".clang-format", 0, "clang-format", done.stderr.strip()[:500])]
    return list(first.values())


def changed_paths(root: Path) -> list[str]:
    """Files that differ from the merge base with the main branch; on that branch itself, those of the last commit.
    Changes that are not committed count in both cases."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False).stdout.strip()

    head = git("rev-parse", "HEAD")
    base = ""
    for branch in MAIN_BRANCHES:
        base = git("merge-base", "HEAD", branch)
        if base and base != head:
            break
    if not base or base == head:
        base = git("rev-parse", "--verify", "--quiet", "HEAD~1")
    names = git("diff", "--name-only", "--diff-filter=d", base) if base else git("ls-files")
    return sorted(set(names.split("\n")) - {""})


def one_by_one(entries: list[dict[str, str]]) -> list[dict[str, str]]:
    """Sources that are compiled together, each as if it were compiled alone."""
    found = []
    for entry in entries:
        file = Path(entry["directory"], entry["file"])
        together = _TOGETHER.findall(file.read_text()) if file.parent.name == "Unity" and file.is_file() else []
        found += [entry | {"file": each, "command": entry["command"].replace(str(file), each)} for each in together] or [entry]
    return found


def left_out(build: Path) -> tuple[str, ...]:
    """Folders that this build leaves out because torch or CUDA is not there; a build that has it reads them."""
    cache = build / "CMakeCache.txt"
    known = cache.read_text() if cache.exists() else ""
    folders: tuple[str, ...] = ()
    if "SHW_TORCH_LEFT_OUT:INTERNAL=TRUE" in known:
        folders += ("core/collective/c10d/",)
    if "SHW_CUDA_LEFT_OUT:INTERNAL=TRUE" in known or "SHW_WITH_CUDA:STRING=OFF" in known:
        folders += ("core/base/cuda/", "core/device/cuda/", "core/collective/nccl/")
    return folders


def compile_commands(build: Path) -> set[str] | None:
    """Sources that the build compiles, None when it has no database. Leaves a copy of the database without the flags that
    only gcc knows in build/clang-tidy/."""
    database = build / "compile_commands.json"
    if not database.exists():
        return None
    entries = one_by_one(json.loads(database.read_text()))
    for entry in entries:
        entry["command"] = " ".join(word for word in entry["command"].split(" ") if word not in GCC_ONLY)
    copy = build / "clang-tidy"
    copy.mkdir(exist_ok=True)
    (copy / "compile_commands.json").write_text(json.dumps(entries))
    return {os.path.realpath(os.path.join(entry["directory"], entry["file"])) for entry in entries}


def reader_of(tree: SourceTree, path: str, compiled: set[str]) -> str | None:
    """A compiled source through which clang-tidy sees a file; None when there is none."""
    waiting, seen = [path], {path}
    while waiting:
        current = waiting.pop(0)
        if current in compiled:
            return current
        if not current.endswith(".h"):
            continue
        stem = current.removesuffix(".h").removesuffix("_internal")
        include = f'#include "{current}"'
        users = [user for user in tree.paths(*CPP_SUFFIXES, under=FOLDERS) if include in tree.text(user)]
        users.sort(key=lambda user: user.endswith(".h"))  # sources first
        fresh = [user for user in (f"{stem}.cc", f"{stem}.c", *users) if user not in seen]
        seen.update(fresh)
        waiting += fresh
    return None


def sources_to_read(tree: SourceTree, changed: list[str], compiled: set[str]) -> tuple[list[str], list[Finding]]:
    """Sources whose diagnostics cover the changed files: a source itself, and for a header the source of its name, or else
    one that includes it, if only through other headers. What no compiled source covers is a finding."""
    chosen: set[str] = set()
    findings = []
    for path in changed:
        # What nvcc compiles says so by flags that clang-tidy does not know.
        if path.split("/")[0] not in FOLDERS or not path.endswith(CPP_SUFFIXES) or path.endswith(".cu") or not tree.exists(path):
            continue
        found = reader_of(tree, path, compiled)
        if found:
            chosen.add(found)
        else:
            what = "no source that the build compiles includes it" if path.endswith(".h") else "the build does not compile it"
            findings.append(Finding(path, 0, "clang-tidy", f"{what}, so nothing was checked"))
    return sorted(chosen), findings


def check_tidy(tree: SourceTree, build: Path) -> list[Finding]:
    """Diagnostics of the changed sources and headers."""
    assert tree.root is not None
    if not shutil.which(TIDY):
        return [Finding(".clang-tidy", 0, "clang-tidy", f"{TIDY} is not installed")]
    known = compile_commands(build)
    if known is None:
        return [Finding(".clang-tidy", 0, "clang-tidy", f"{build} has no compile_commands.json; run "
                        "`tools/build.sh dev shw_generated` first")]
    root = tree.root
    compiled = {path for path in tree.paths(".cc", ".c") if os.path.realpath(root / path) in known}
    changed = [path for path in changed_paths(root) if not path.startswith(left_out(build))]
    sources, unread = sources_to_read(tree, changed, compiled)

    def run(path: str) -> list[Finding]:
        done = subprocess.run([TIDY, "--quiet", "-p", str(build / "clang-tidy"), path], cwd=root, capture_output=True, text=True,
                              check=False)
        found = []
        for match in _DIAGNOSTIC.finditer(done.stdout):
            name = os.path.relpath(os.path.join(root, match["path"]), root)
            found.append(Finding(name, int(match["line"]), "clang-tidy", match["text"]))
        if done.returncode != 0 and not found:
            found.append(Finding(path, 0, "clang-tidy", (done.stderr or done.stdout).strip()[-500:]))
        return found

    with ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
        return sorted({*unread, *(finding for found in pool.map(run, sources) for finding in found)})
