# SPDX-License-Identifier: Apache-2.0
"""Test files that nothing runs are found."""

import registered_tests
from source_tree import SourceTree


def found(lists, *paths, folder="tests/x"):
    tree = SourceTree.of_texts({f"{folder}/CMakeLists.txt": lists} | {path: "" for path in paths})
    return [finding.path for finding in registered_tests.check(tree)]


def test_a_compiled_test_must_be_named():
    assert not found("shw_test(a SOURCES a_test.cc sub/b_test.cc)", "tests/x/a_test.cc", "tests/x/sub/b_test.cc")
    assert found("shw_test(a SOURCES a_test.cc)", "tests/x/a_test.cc", "tests/x/ba_test.cc") == ["tests/x/ba_test.cc"]
    assert found("shw_fuzz_target(a SOURCES a_fuzz.cc)", "tests/x/b_fuzz.cc") == ["tests/x/b_fuzz.cc"]


def test_a_loop_over_names_counts():
    lists = "foreach(name IN ITEMS tensor plan)\n  shw_c_test(capi_${name} SOURCES ${name}_test.c)\nendforeach()\n"
    assert not found(lists, "tests/x/plan_test.c")
    assert found(lists, "tests/x/planning_test.c") == ["tests/x/planning_test.c"]


def test_a_python_test_must_lie_below_a_path_of_pytest():
    assert not found("shw_pytest(a PATHS . LABELS core)", "tests/x/deep/test_a.py")
    assert not found("shw_pytest(a PATHS test_a.py LABELS core)", "tests/x/test_a.py")
    assert found("shw_pytest(a PATHS test_a.py LABELS core)", "tests/x/test_b.py") == ["tests/x/test_b.py"]


def test_what_the_driver_runs_needs_no_list():
    assert not found("", "tests/tidy/test_a.py")
