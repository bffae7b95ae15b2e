#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the stages of `make test` and ends with the line 'N passed, N failed, N skipped'.

Cheap stages come first, so that a cheap failure shows first; torch, which installs in the background meanwhile, is
needed by the last stages only. Builds run in a lane of their own, one after the other and at a lower priority, so that
the tests of one tree run while the next tree compiles. A failed build ends the run; a failed test does not. A skip that
tests/expected_skips.txt does not name is a failure. Status 0 means that nothing failed.

    run_tests.py [--soak] [--fail-fast] [STAGE...]

Random tests draw from one number, SHW_SEED, so that nothing fails today that passed yesterday.

--soak runs the long forms (environment SHW_SOAK=1, tests with the label soak, timed fuzzing, coverage), and from a
number of its own, which is printed.
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
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
OUTPUT_LINES_MAX = 60
REASON_CHARACTERS_MAX = 600
EXPECTED_SKIPS = ROOT / "tests" / "expected_skips.txt"
FUZZ_SECONDS = 60  # per target in the long run
SEED = "20260720"  # of random tests in the short run
SHORT_FUZZ_RUNS = 10_000  # per target in the short one
BUILD_PRIORITY = 10  # what is added to the niceness of builds


class BuildFailed(Exception):
    """A configure or compile step failed; its output is already on the terminal."""


@dataclass
class Counts:
    """Tests by outcome, the names of those that failed, and name and reason of those that were skipped."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list[str] = field(default_factory=list)
    skips: list[tuple[str, str]] = field(default_factory=list)

    def add(self, other: Counts) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures
        self.skips += other.skips

    def total(self) -> int:
        return self.passed + self.failed + self.skipped


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
    # PyTorch asks for the names of both ends of each connection: a name server that answers late must not make tests wait.
    env.setdefault("RES_OPTIONS", "timeout:1 attempts:1")
    return env


# --- counting ---------------------------------------------------------------------------------------------------------


def reason_of(failures: list[ElementTree.Element]) -> str:
    """What failures of a JUnit file say, in a line: the closing list of a run is what is read first."""
    said = " | ".join(each.get("message") or each.text or "" for each in failures)
    return " ".join(said.split())[:REASON_CHARACTERS_MAX]


def count_junit(path: Path) -> Counts:
    """Counts of a JUnit file as GoogleTest, pytest and Surefire write it."""
    counts = Counts()
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname', '')}.{case.get('name', '')}".strip(".")
        failures = [each for kind in ("failure", "error") for each in case.findall(kind)]
        if failures:
            counts.failed += 1
            counts.failures.append(f"{name}: {reason_of(failures)}")
        elif (skipped := case.find("skipped")) is not None or case.get("status") in ("notrun", "disabled"):
            counts.skipped += 1
            # pytest says why a whole file was left out in the text, beside the message "collection skipped".
            reason = "" if skipped is None else f"{skipped.get('message') or ''} {skipped.text or ''}"
            counts.skips.append((name, " ".join(reason.split())))
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
    for match in re.finditer(r"^skipped: (.+?): (.+)$", text, re.M):
        counts.skips.append((match[1], match[2]))
    for _ in range(counts.skipped - len(counts.skips)):
        counts.skips.append(("?", "no reason was printed"))
    return counts if found else None


def expected_skips(text: str) -> list[tuple[str, str]]:
    """Lines `glob of names | glob of reasons`."""
    pairs = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, reason = (part.strip() for part in line.partition("|"))
            assert name and reason, line
            pairs.append((name, reason))
    return pairs


def refuse_unexpected_skips(counts: Counts, expected: list[tuple[str, str]]) -> None:
    """Turns skips that no pair of globs names into failures."""
    for name, reason in counts.skips:
        if not any(fnmatchcase(name, names) and fnmatchcase(reason, reasons) for names, reasons in expected):
            counts.skipped -= 1
            counts.failed += 1
            counts.failures.append(f"{name} was skipped, which {EXPECTED_SKIPS.name} does not expect: {reason or 'no reason'}")
    counts.skips = []


def figures_of(path: Path) -> list[str]:
    """What the tests of a GoogleTest program recorded beside their outcome, such as 'kills 200'."""
    try:
        cases = ElementTree.parse(path).getroot().iter("testcase") if path.exists() else []
        return [f"{case.get('name')}: {each.get('name')} {each.get('value')}"
                for case in cases for each in case.iter("property")]
    except ElementTree.ParseError:
        return []  # a torn file is counted as a failure elsewhere


def has_label(case: ElementTree.Element, label: str) -> bool:
    return any(label in (node.get("value") or "").split(";")
               for node in case.iter("property") if node.get("name") == "cmake_labels")


def count_ctest_case(case: ElementTree.Element, results: Path) -> Counts:
    """One CTest test: the finest count that its program left, checked against CTest's own verdict. A program that counts
    its tests in a file (label `counted`) and counted none has tested nothing, whatever its exit status says."""
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
    if counts is None or counts.total() == 0:
        skipped = case.find("skipped") is not None or status in ("notrun", "disabled")
        ran_none = counts is not None or has_label(case, "counted")
        if skipped and not verdict_failed:
            lines = output.strip().splitlines()
            counts = Counts(skipped=1, skips=[("", lines[-1].strip() if lines else "")])
        elif verdict_failed or ran_none:
            if not verdict_failed:
                output += f"\n{name} ran no test: a filter that matches nothing, or a program that ended early"
            counts = Counts(failed=1)
        else:
            counts = Counts(passed=1)
    elif verdict_failed and counts.failed == 0:
        counts.failed = 1  # it crashed, timed out or leaked after the last test had passed
    counts.skips = [(f"{name}: {skip}" if skip else name, reason) for skip, reason in counts.skips]
    if counts.failed and not counts.failures:
        counts.failures = [name]
    else:
        counts.failures = [f"{name}: {failure}" for failure in counts.failures]
    mark = "FAIL" if counts.failed else "skip" if not counts.passed else "pass"
    say(f"  {mark} {name} ({counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped, "
        f"{float(case.get('time', 0)):.1f} s)")
    for figure in figures_of(detail):
        say(f"       {figure}")
    if counts.failed:
        lines = output.splitlines()
        for line in lines[-OUTPUT_LINES_MAX:]:
            say(f"       {line}")
    return counts


# --- running ----------------------------------------------------------------------------------------------------------


def build(preset: str, *targets: str) -> None:
    """Builds targets of a preset; shows the output only when it fails."""
    done = subprocess.run(
        ["nice", "-n", str(BUILD_PRIORITY), "tools/build.sh", preset, *targets], cwd=ROOT, env=environment(), text=True,
        errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        lines = done.stdout.splitlines()
        first = next((index for index, line in enumerate(lines) if line.startswith(("FAILED:", "CMake Error"))), 0)
        say("\n".join(lines[first:][:4 * OUTPUT_LINES_MAX] if first else lines[-4 * OUTPUT_LINES_MAX:]))
        raise BuildFailed(f"preset {preset} does not build")


class BuildLane:
    """Builds (preset, target) in the order given, in one thread of its own. Thread-compatible."""

    def __init__(self, wanted: list[tuple[str, str]]) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1)
        self._done: dict[tuple[str, str], Future[None]] = {
            each: self._executor.submit(build, *each) for each in dict.fromkeys(wanted)}

    def wait_for(self, wanted: tuple[tuple[str, str], ...]) -> None:
        """Returns when these are built; BuildFailed when one does not build."""
        for each in wanted:
            self._done[each].result()

    def close(self) -> None:
        """Forgets what has not begun, and waits for what has."""
        self._executor.shutdown(wait=True, cancel_futures=True)


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


def labelled(label: str, parallel: int | None = None) -> Callable[[bool], Counts]:
    """Runs the tests with one label."""

    def stage(soak: bool) -> Counts:
        del soak
        return ctest(BUILD, "-L", f"^{label}$", parallel=parallel)

    return stage


def stage_asan(soak: bool) -> Counts:
    tree = BUILD / "asan"
    counts = ctest(tree, "-LE", "no_asan|install|docs|torch|cuda|mindspore")
    with ThreadPoolExecutor(max_workers=jobs()) as pool:
        programs = sorted((tree / "fuzz").glob("fuzz_*"))
        for one in pool.map(lambda program: fuzz(program, soak), [path for path in programs if path.is_file()]):
            counts.add(one)
    return counts


def fuzz(program: Path, soak: bool) -> Counts:
    """New inputs, starting from the committed corpus, which is never written to. The long form runs for its seconds; the
    short form makes the same inputs in each run, as far as a program with threads can: what guides it is the same where
    addresses are. Inputs that fail stay in build/asan/fuzz/findings_NAME/; the seed that is printed makes them again
    (SHW_SEED). Leaks are looked for when the program ends: after each input it takes a hundred times as long as the
    input."""
    name = program.name.removeprefix("fuzz_")
    corpus = ROOT / "tests" / "fuzz" / "corpus" / name
    findings = program.parent / f"findings_{name}"
    grown = program.parent / f"grown_{name}"
    for folder in (findings, grown):
        folder.mkdir(exist_ok=True)
    for path in grown.iterdir():
        path.unlink()
    seed = os.environ["SHW_SEED"]
    length = [f"-max_total_time={FUZZ_SECONDS}"] if soak else [f"-runs={SHORT_FUZZ_RUNS}", "-use_cmp=0"]
    done = subprocess.run(
        [*same_addresses(), str(program), *length, f"-seed={seed}", f"-artifact_prefix={findings}/", "-detect_leaks=0",
         str(grown), str(corpus)],
        cwd=program.parent, env=environment(), text=True, errors="replace", capture_output=True, check=False)
    ran = re.search(r"^Done (\d+) runs", done.stderr, re.M)
    good = done.returncode == 0 and ran is not None and int(ran[1]) > 0
    say(f"  {'pass' if good else 'FAIL'} {program.name} ({ran[1] if ran else 'no'} inputs, seed {seed})")
    if not good:
        say(done.stderr[-4000:])
        return Counts(failed=1, failures=[program.name])
    return Counts(passed=1)


@cache
def same_addresses() -> tuple[str, ...]:
    """The command in front of a program that is to run at the same addresses each time, where the machine lets it."""
    prefix = ("setarch", "-R")
    may = shutil.which("setarch") and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
    return prefix if may else ()


def stage_tsan(soak: bool) -> Counts:
    del soak
    return ctest(BUILD / "tsan", "-L", "^tsan$")


def stage_with(framework: str) -> Callable[[bool], Counts]:
    """A stage that waits for a framework's install and runs the tests with its label."""

    def stage(soak: bool) -> Counts:
        del soak
        waited = subprocess.run(["tools/bootstrap.sh", f"{framework}-wait"], cwd=ROOT, check=False)
        if waited.returncode != 0:
            return Counts(failed=1, failures=[f"installing {framework}"])
        build("dev", "all")  # what is made only where the framework is
        return ctest(BUILD, "-L", f"^{framework}$", parallel=1)

    return stage


def stage_cuda(soak: bool) -> Counts:
    """The plugin for GPUs, which is optional: where CUDA cannot be installed, that is one skip with its reason."""
    del soak
    waited = subprocess.run(["tools/bootstrap.sh", "cuda-wait"], cwd=ROOT, check=False)
    if waited.returncode != 0:
        return Counts(skipped=1, skips=[("cuda", "CUDA could not be installed, so its plugin was not built")])
    build("dev", "all")  # what is made only where CUDA is
    return ctest(BUILD, "-L", "^cuda$", parallel=1)


def stage_coverage(soak: bool) -> Counts:
    del soak
    return command("coverage", [sys.executable, "tools/coverage.py"])


@dataclass(frozen=True)
class Stage:
    """Tests, and the builds (preset, target) that must be done before they run."""

    name: str
    run: Callable[[bool], Counts]
    builds: tuple[tuple[str, str], ...] = (("dev", "all"),)
    soak_only: bool = False


STAGES = [
    Stage("lint", stage_lint, (("dev", "shw_generated"),)),  # clang-tidy reads the headers that flatc makes
    Stage("core", labelled("core"), (("dev", "shw_core_programs"),)),
    Stage("capi", labelled("(capi|abi)")),
    Stage("cli", labelled("cli")),
    Stage("fuzz", labelled("fuzz")),
    Stage("crash", labelled("crash")),
    Stage("bindings", labelled("bindings")),
    Stage("install", labelled("install")),
    Stage("torch", stage_with("torch")),
    Stage("cuda", stage_cuda),
    Stage("mindspore", stage_with("mindspore")),
    Stage("docs", labelled("docs", parallel=1)),
    Stage("tsan", stage_tsan, (("tsan", "shw_tsan_programs"),)),
    Stage("asan", stage_asan, (("asan", "all"),)),
    Stage("coverage", stage_coverage, (("coverage", "all"),), soak_only=True),
]


def run_stages(stages: list[Stage], soak: bool, fail_fast: bool) -> Counts:
    total = Counts()
    expected = expected_skips(EXPECTED_SKIPS.read_text())
    lane = BuildLane([each for stage in stages for each in stage.builds])
    try:
        for stage in stages:
            say(f"== {stage.name}")
            start = time.monotonic()
            try:
                lane.wait_for(stage.builds)
                built = time.monotonic()
                counts = stage.run(soak)
            except BuildFailed as failure:
                total.add(Counts(failed=1, failures=[f"{stage.name}: {failure}"]))
                break
            refuse_unexpected_skips(counts, expected)
            total.add(Counts(counts.passed, counts.failed, counts.skipped,
                             [f"{stage.name}: {failure}" for failure in counts.failures]))
            say(f"== {stage.name}: {counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped "
                f"in {time.monotonic() - built:.0f} s, after {built - start:.0f} s of waiting for a build")
            if counts.failed and fail_fast:
                break
    finally:
        lane.close()
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
    drawn = str(int.from_bytes(os.urandom(3)) + 1)
    say(f"SHW_SEED={os.environ.setdefault('SHW_SEED', drawn if arguments.soak else SEED)}")
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
