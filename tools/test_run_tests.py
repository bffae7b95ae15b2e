# SPDX-License-Identifier: Apache-2.0
"""The test driver counts what each kind of test program reports, and believes no program more than its exit status."""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import run_tests  # noqa: E402

CARGO = "running 3 tests\ntest result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.0s\n" \
        "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n"
MAVEN = "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s\n" \
        "[ERROR] Tests run: 9, Failures: 1, Errors: 1, Skipped: 2\n"
GTEST = """<testsuites><testsuite>
<testcase name="A" classname="S" status="run"/><testcase name="B" classname="S" status="notrun"/>
<testcase name="C" classname="S" status="run"><failure message="x&#10; of C"/></testcase>
<testcase name="D" classname="S" status="run"><skipped message="x"/></testcase></testsuite></testsuites>"""


def numbers(counts):
    return counts.passed, counts.failed, counts.skipped


def case(status="run", name="t", output=""):
    element = ElementTree.Element("testcase", {"name": name, "status": status, "time": "0.1"})
    if status == "fail":
        ElementTree.SubElement(element, "failure")
    if status == "notrun":
        ElementTree.SubElement(element, "skipped")
    ElementTree.SubElement(element, "system-out").text = output
    return element


@pytest.mark.parametrize(("text", "expected"), [
    (CARGO, (3, 2, 1)), (MAVEN, (5, 2, 2)), ("noise\n4 passed, 1 failed, 0 skipped\n", (4, 1, 0))])
def test_summaries_in_the_output_are_counted(text, expected):
    assert numbers(run_tests.count_output(text)) == expected


def test_output_without_a_summary_counts_nothing():
    assert run_tests.count_output("all is well, 3 passed") is None


def test_junit_files_are_counted_and_failures_named(tmp_path):
    path = tmp_path / "t.xml"
    path.write_text(GTEST)
    counts = run_tests.count_junit(path)
    assert numbers(counts) == (1, 1, 2)
    assert counts.failures == ["S.C: x of C"]


def test_figures_that_a_test_recorded_are_shown(tmp_path, capsys):
    (tmp_path / "t.xml").write_text(
        "<testsuites><testsuite><testcase name='Kills' status='run'><properties>"
        "<property name='kills' value='200'/></properties></testcase></testsuite></testsuites>", encoding="utf-8")
    assert numbers(run_tests.count_ctest_case(case(), tmp_path)) == (1, 0, 0)
    assert "Kills: kills 200" in capsys.readouterr().out


def test_a_program_without_detail_is_one_test(tmp_path):
    assert numbers(run_tests.count_ctest_case(case(), tmp_path)) == (1, 0, 0)
    assert numbers(run_tests.count_ctest_case(case("fail"), tmp_path)) == (0, 1, 0)
    assert numbers(run_tests.count_ctest_case(case("notrun"), tmp_path)) == (0, 0, 1)


def test_a_crash_after_the_last_test_is_a_failure(tmp_path):
    (tmp_path / "t.xml").write_text('<testsuite><testcase name="A" status="run"/></testsuite>')
    assert numbers(run_tests.count_ctest_case(case("fail"), tmp_path)) == (1, 1, 0)


def test_a_program_that_ran_no_test_is_a_failure(tmp_path):
    (tmp_path / "t.xml").write_text('<testsuites tests="0"/>')  # a filter that matches nothing
    assert numbers(run_tests.count_ctest_case(case(), tmp_path)) == (0, 1, 0)
    ended_early = case()
    properties = ElementTree.SubElement(ended_early, "properties")
    ElementTree.SubElement(properties, "property", {"name": "cmake_labels", "value": "counted;core"})
    assert numbers(run_tests.count_ctest_case(ended_early, tmp_path / "none")) == (0, 1, 0)
    assert numbers(run_tests.count_ctest_case(case(output="0 passed, 0 failed, 0 skipped\n"), tmp_path / "none")) == (0, 1, 0)


def skips_of(counts, text):
    run_tests.refuse_unexpected_skips(counts, run_tests.expected_skips(text))
    return numbers(counts), counts.failures


def test_a_skip_that_is_not_expected_is_a_failure_with_its_reason(tmp_path):
    (tmp_path / "t.xml").write_text(GTEST.replace('<skipped message="x"/>', '<skipped message="no disk"/>'))
    names = "# what a machine lacks\nt: S.* | no disk\n"
    found = run_tests.count_ctest_case(case(), tmp_path)
    assert skips_of(found, names + "t: S.B | \n".replace("| ", "| *")) == ((1, 1, 2), ["t: S.C: x of C"])
    found = run_tests.count_ctest_case(case(), tmp_path)
    outcome, failures = skips_of(found, "t: S.B | *\nt: S.D | no memory\n")
    assert outcome == (1, 2, 1) and failures[1].startswith("t: S.D was skipped") and failures[1].endswith(": no disk")


def test_skips_of_contracts_and_of_whole_programs_carry_their_reasons(tmp_path):
    found = run_tests.count_ctest_case(case(output="skipped: words: not in C\n1 passed, 0 failed, 2 skipped\n"), tmp_path)
    assert found.skips == [("t: words", "not in C"), ("t: ?", "no reason was printed")]
    found = run_tests.count_ctest_case(case("notrun", output="noise\nno mounts here\n"), tmp_path)
    assert found.skips == [("t", "no mounts here")]


def test_every_expected_skip_says_which_and_why():
    assert run_tests.expected_skips(run_tests.EXPECTED_SKIPS.read_text())
    with pytest.raises(AssertionError):
        run_tests.expected_skips("t: S.D |\n")


def test_a_torn_result_file_is_not_believed(tmp_path):
    (tmp_path / "t.xml").write_text("<testsuite><testc")
    assert numbers(run_tests.count_ctest_case(case("fail"), tmp_path)) == (0, 1, 0)


def test_a_failed_build_ends_the_run_and_counts_as_a_failure():
    ran = []

    def broken(soak):
        raise run_tests.BuildFailed("no")

    stages = [run_tests.Stage("one", lambda soak: run_tests.Counts(passed=2), ()), run_tests.Stage("two", broken, ()),
              run_tests.Stage("three", lambda soak: ran.append(1) or run_tests.Counts(), ())]
    total = run_tests.run_stages(stages, soak=False, fail_fast=False)
    assert numbers(total) == (2, 1, 0)
    assert total.failures == ["two: no"]
    assert not ran


def test_builds_run_once_each_in_order_and_stages_wait_for_theirs(monkeypatch):
    built = []

    def build(preset, target):
        built.append((preset, target))
        if preset == "broken":
            raise run_tests.BuildFailed("no")

    monkeypatch.setattr(run_tests, "build", build)
    seen = []
    first, second, broken = ("dev", "all"), ("asan", "all"), ("broken", "all")

    def looking(soak):
        seen.append(list(built))
        return run_tests.Counts(passed=1)

    total = run_tests.run_stages([run_tests.Stage("one", looking, (first,)), run_tests.Stage("two", looking, (first, second)),
                                  run_tests.Stage("three", looking, (broken,)), run_tests.Stage("four", looking, (first,))],
                                 soak=False, fail_fast=False)
    assert built == [first, second, broken]
    assert first in seen[0] and second in seen[1] and len(seen) == 2
    assert numbers(total) == (2, 1, 0) and total.failures == ["three: no"]


@pytest.mark.parametrize(("status", "expected"), [(0, (3, 0, 0)), (1, (0, 0, 1))])
def test_without_cuda_its_stage_is_one_skip_that_is_expected(monkeypatch, status, expected):
    done = run_tests.subprocess.CompletedProcess([], status)
    monkeypatch.setattr(run_tests.subprocess, "run", lambda *words, **options: done)
    monkeypatch.setattr(run_tests, "build", lambda *words: None)
    monkeypatch.setattr(run_tests, "ctest", lambda *words, **options: run_tests.Counts(passed=3))
    counts = run_tests.stage_cuda(soak=False)
    assert numbers(counts) == expected
    run_tests.refuse_unexpected_skips(counts, run_tests.expected_skips(run_tests.EXPECTED_SKIPS.read_text()))
    assert numbers(counts) == expected
