#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the stages of `make test` and ends with the line 'N passed, N failed, N skipped'.

Cheap stages come first, so that a cheap failure shows first; torch, which installs in the background meanwhile, is
needed by the last stages only. A failed build ends the run; a failed test does not. Status 0 means that nothing failed.

    run_tests.py [--soak] [--fail-fast] [STAGE...]

--soak runs the long forms (environment SHW_SOAK=1, tests with the label soak, timed fuzzing, coverage).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
OUTPUT_LINES_MAX = 60
FUZZ_SECONDS = 60


class BuildFailed(Exception):
    """A configure or compile step failed; its output is already on the terminal."""


@dataclass
class Counts:
    """Tests by outcome, and the names of those that failed."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, other: Counts) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures


def say(text: str) -> None:
    print(text, flush=True)


def jobs() -> int:
    return int(os.environ.get("SHW_JOBS", os.cpu_count() or 2))


def environment() -> dict[str, str]:
    """What every command sees: tools of .venv first, sanitizer options, colourless output."""
    env = dict(os.environ)
    paths = [str(ROOT / ".venv" / "bin"), env.get("PATH", ""), str(Path.home() / ".cargo" / "bin")]
    env["PATH"] = os.pathsep.join(paths)
    symbolizer = shutil.which("llvm-symbolizer-19")
    if symbolizer:
        for name in ("ASAN_SYMBOLIZER_PATH", "TSAN_SYMBOLIZER_PATH"):
            env[name] = symbolizer
    env.setdefault("ASAN_OPTIONS", "detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1")
    env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    env.setdefault("TSAN_OPTIONS", "halt_on_error=1:second_deadlock_stack=1")
    env.setdefault("OMP_NUM_THREADS", "1")
    return env


# --- counting ---------------------------------------------------------------------------------------------------------


def count_junit(path: Path) -> Counts:
    """Counts of a JUnit file as GoogleTest, pytest and Surefire write it."""
    counts = Counts()
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname', '')}.{case.get('name', '')}".strip(".")
        if case.find("failure") is not None or case.find("error") is not None:
            counts.failed += 1
            counts.failures.append(name)
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            counts.skipped += 1
        else:
            counts.passed += 1
    return counts


def count_output(text: str) -> Counts | None:
    """Counts of the summary lines that cargo and Maven print, or of our own closing line; None when there are none."""
    counts = Counts()
    found = False
    for match in re.finditer(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", text, re.M):
        found = True
        counts.passed += int(match[1])
        counts.failed += int(match[2])
        counts.skipped += int(match[3])
    maven = re.findall(r"Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)\s*$", text, re.M)
    if maven:
        found = True
        run, failures, errors, skipped = (int(number) for number in maven[-1])
        counts.passed += run - failures - errors - skipped
        counts.failed += failures + errors
        counts.skipped += skipped
    for match in re.finditer(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", text, re.M):
        found = True
        counts.passed += int(match[1])
        counts.failed += int(match[2])
        counts.skipped += int(match[3])
    return counts if found else None


def count_ctest_case(case: ElementTree.Element, results: Path) -> Counts:
    """One CTest test: the finest count that its program left, checked against CTest's own verdict."""
    name = case.get("name", "")
    status = case.get("status", "")
    verdict_failed = case.find("failure") is not None or status == "fail"
    output = "".join(node.text or "" for node in case.iter("system-out"))
    detail = results / f"{name}.xml"
    counts: Counts | None = None
    if detail.exists() and detail.stat().st_size:
        try:
            counts = count_junit(detail)
        except ElementTree.ParseError:
            counts = None
    if counts is None:
        counts = count_output(output)
    if counts is None or (counts.passed + counts.failed + counts.skipped == 0):
        skipped = case.find("skipped") is not None or status in ("notrun", "disabled")
        counts = Counts(failed=1) if verdict_failed else Counts(skipped=1) if skipped else Counts(passed=1)
    elif verdict_failed and counts.failed == 0:
        counts.failed = 1  # it crashed, timed out or leaked after the last test had passed
    if counts.failed and not counts.failures:
        counts.failures = [name]
    else:
        counts.failures = [f"{name}: {failure}" for failure in counts.failures]
    mark = "FAIL" if counts.failed else "skip" if not counts.passed else "pass"
    say(f"  {mark} {name} ({counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped, "
        f"{float(case.get('time', 0)):.1f} s)")
    if counts.failed:
        lines = output.splitlines()
        for line in lines[-OUTPUT_LINES_MAX:]:
            say(f"       {line}")
    return counts


# --- running ----------------------------------------------------------------------------------------------------------


def build(preset: str, *targets: str) -> None:
    """Builds targets of a preset; shows the output only when it fails."""
    done = subprocess.run(
        ["tools/build.sh", preset, *targets], cwd=ROOT, env=environment(), text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        lines = done.stdout.splitlines()
        first = next((index for index, line in enumerate(lines) if line.startswith(("FAILED:", "CMake Error"))), 0)
        say("\n".join(lines[first:][:4 * OUTPUT_LINES_MAX] if first else lines[-4 * OUTPUT_LINES_MAX:]))
        raise BuildFailed(f"preset {preset} does not build")


def ctest(tree: Path, *selection: str, env: dict[str, str] | None = None, parallel: int | None = None) -> Counts:
    """Runs the selected tests of one build tree. A selection that matches nothing is a failure: it hides a mistake."""
    results = tree / "test-results"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    report = tree / "ctest-report.xml"
    report.unlink(missing_ok=True)
    if os.environ.get("SHW_SOAK") != "1":
        selection = (*selection, "-LE", "soak") if "-LE" not in selection else tuple(
            f"{word}|soak" if previous == "-LE" else word
            for previous, word in zip(("", *selection), selection, strict=False))
    done = subprocess.run(
        ["ctest", "--test-dir", str(tree), "-j", str(parallel or jobs()), "--output-junit", str(report),
         "--test-output-size-passed", "200000", "--test-output-size-failed", "200000", "--no-tests=error",
         *selection],
        cwd=ROOT, env=env or environment(), text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if not report.exists():
        say(done.stdout)
        return Counts(failed=1, failures=[f"ctest {' '.join(selection)}"])
    counts = Counts()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        counts.add(count_ctest_case(case, results))
    if done.returncode != 0 and counts.failed == 0:
        say(done.stdout)
        counts.add(Counts(failed=1, failures=[f"ctest {' '.join(selection)}"]))
    return counts


def command(name: str, arguments: list[str]) -> Counts:
    """A command that prints its own closing count line, or else counts as one test."""
    done = subprocess.run(arguments, cwd=ROOT, env=environment(), text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    counts = count_output(done.stdout)
    closing = re.compile(r"^\d+ passed, \d+ failed, \d+ skipped$")
    for line in done.stdout.splitlines():
        if not closing.match(line):
            say(f"  {line}")
    if counts is None:
        counts = Counts(passed=int(done.returncode == 0), failed=int(done.returncode != 0))
    elif done.returncode != 0 and counts.failed == 0:
        counts.failed = 1
    if counts.failed:
        counts.failures.append(name)
    return counts


# --- stages -----------------------------------------------------------------------------------------------------------


def stage_lint(soak: bool) -> Counts:
    del soak
    build("dev", "shw_generated")  # clang-tidy reads compile_commands.json and the headers that flatc makes
    python = str(ROOT / ".venv" / "bin" / "python")
    counts = command("tidy", [python, "tests/tidy/tidy.py"])
    report = BUILD / "tidy-tests.xml"
    tests = subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/tidy", "tools",
                            f"--junitxml={report}"],
                           cwd=ROOT, env=environment(), text=True, capture_output=True, check=False)
    own = count_junit(report) if report.exists() else Counts(failed=1, failures=["tests/tidy"])
    say(f"  {'FAIL' if tests.returncode else 'pass'} tests of the checks ({own.passed} passed, {own.failed} failed)")
    if tests.returncode:
        say(tests.stdout[-6000:])
        own.failed = max(own.failed, 1)
    counts.add(own)
    return counts


def stage_core(soak: bool) -> Counts:
    del soak
    build("dev", "shw_core_programs")
    return ctest(BUILD, "-L", "^core$")


def labelled(label: str, parallel: int | None = None) -> Callable[[bool], Counts]:
    """A stage that builds everything and runs the tests with one label."""

    def stage(soak: bool) -> Counts:
        del soak
        build("dev", "all")
        return ctest(BUILD, "-L", f"^{label}$", parallel=parallel)

    return stage


def stage_asan(soak: bool) -> Counts:
    build("asan", "all")
    tree = BUILD / "asan"
    counts = ctest(tree, "-LE", "no_asan|bindings|install|docs|torch|mindspore|cli")
    if soak:
        for program in sorted((tree / "fuzz").glob("fuzz_*")):
            counts.add(fuzz(program))
    return counts


def fuzz(program: Path) -> Counts:
    """New inputs for FUZZ_SECONDS, starting from the committed corpus; findings stay in build/asan/fuzz/."""
    name = program.name.removeprefix("fuzz_")
    work = program.parent / f"work_{name}"
    work.mkdir(exist_ok=True)
    done = subprocess.run(
        [str(program), f"-max_total_time={FUZZ_SECONDS}", f"-artifact_prefix={work}/", str(work),
         *(str(path) for path in [ROOT / "tests" / "fuzz" / "corpus" / name] if path.exists())],
        cwd=program.parent, env=environment(), text=True, errors="replace", capture_output=True, check=False)
    say(f"  {'FAIL' if done.returncode else 'pass'} {program.name} ({FUZZ_SECONDS} s)")
    if done.returncode:
        say(done.stderr[-4000:])
        return Counts(failed=1, failures=[program.name])
    return Counts(passed=1)


def stage_tsan(soak: bool) -> Counts:
    del soak
    build("tsan", "shw_tsan_programs")
    return ctest(BUILD / "tsan", "-L", "^tsan$")


def stage_with(framework: str) -> Callable[[bool], Counts]:
    """A stage that waits for a framework's install and runs the tests with its label."""

    def stage(soak: bool) -> Counts:
        del soak
        waited = subprocess.run(["tools/bootstrap.sh", f"{framework}-wait"], cwd=ROOT, check=False)
        if waited.returncode != 0:
            return Counts(failed=1, failures=[f"installing {framework}"])
        build("dev", "all")
        return ctest(BUILD, "-L", f"^{framework}$", parallel=1)

    return stage


def stage_coverage(soak: bool) -> Counts:
    del soak
    build("coverage", "all")
    return command("coverage", [sys.executable, "tools/coverage.py"])


@dataclass(frozen=True)
class Stage:
    name: str
    run: Callable[[bool], Counts]
    soak_only: bool = False


STAGES = [
    Stage("lint", stage_lint),
    Stage("core", stage_core),
    Stage("capi", labelled("(capi|abi)")),
    Stage("cli", labelled("cli")),
    Stage("fuzz", labelled("fuzz")),
    Stage("crash", labelled("crash")),
    Stage("bindings", labelled("bindings")),
    Stage("install", labelled("install")),
    Stage("asan", stage_asan),
    Stage("tsan", stage_tsan),
    Stage("torch", stage_with("torch")),
    Stage("mindspore", stage_with("mindspore")),
    Stage("docs", labelled("docs", parallel=1)),
    Stage("coverage", stage_coverage, soak_only=True),
]


def run_stages(stages: list[Stage], soak: bool, fail_fast: bool) -> Counts:
    total = Counts()
    for stage in stages:
        say(f"== {stage.name}")
        start = time.monotonic()
        try:
            counts = stage.run(soak)
        except BuildFailed as failure:
            total.add(Counts(failed=1, failures=[f"{stage.name}: {failure}"]))
            break
        total.add(Counts(counts.passed, counts.failed, counts.skipped,
                         [f"{stage.name}: {failure}" for failure in counts.failures]))
        say(f"== {stage.name}: {counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped "
            f"in {time.monotonic() - start:.0f} s")
        if counts.failed and fail_fast:
            break
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs the stages of make test.")
    parser.add_argument("--soak", action="store_true", help="long forms, and coverage")
    parser.add_argument("--fail-fast", action="store_true", help="stop after the first stage with a failure")
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=", ".join(stage.name for stage in STAGES))
    arguments = parser.parse_args()
    known = {stage.name for stage in STAGES}
    for name in arguments.stages:
        if name not in known:
            parser.error(f"no stage '{name}'; stages: {', '.join(sorted(known))}")
    if arguments.soak:
        os.environ["SHW_SOAK"] = "1"
    chosen = [stage for stage in STAGES
              if (stage.name in arguments.stages if arguments.stages else arguments.soak or not stage.soak_only)]
    total = run_stages(chosen, arguments.soak, arguments.fail_fast)
    if total.failures:
        say("failed:")
        for failure in total.failures:
            say(f"  {failure}")
    say(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
