# SPDX-License-Identifier: Apache-2.0
"""The checks of text_rules find what they name and leave correct files alone."""

import pytest
import text_rules
from source_tree import SourceTree

OPENING = "// SPDX-License-Identifier: Apache-2.0\n//\n// What it is for.\n"


def found(check, path, text):
    return [finding.text for finding in check(SourceTree.of_texts({path: text}))]


def test_a_file_with_licence_and_purpose_passes():
    assert not found(text_rules.check_opening, "core/base/a.h", OPENING + "#pragma once\n")


def test_a_python_file_may_begin_with_a_shebang():
    text = "#!/usr/bin/env python3\n# SPDX-License-Identifier: Apache-2.0\n\"\"\"Does one thing.\"\"\"\n"
    assert not found(text_rules.check_opening, "tools/a.py", text)


def test_a_source_may_leave_the_words_to_its_header():
    texts = {"core/base/a.h": OPENING, "core/base/a.cc": "// SPDX-License-Identifier: Apache-2.0\n#include <a>\n"}
    assert not text_rules.check_opening(SourceTree.of_texts(texts))


@pytest.mark.parametrize("text", [
    "#pragma once\n",
    "// SPDX-License-Identifier: Apache-2.0\n#pragma once\n",
    "// SPDX-License-Identifier: Apache-2.0\n" + "// long\n" * 20,
])
def test_a_file_that_opens_badly_is_named(text):
    assert found(text_rules.check_opening, "core/base/a.h", text)


def test_long_lines_are_found_outside_raw_strings():
    line = "// " + "x" * 98 + "\n"
    assert found(text_rules.check_columns, "core/a.cc", "int a;\n" + line) == ["101 columns, more than 100"]
    assert not found(text_rules.check_columns, "core/a.cc", line[1:])
    assert not found(text_rules.check_columns, "core/a.cc", 'const char* a = R"json(\n' + line + ')json";\n')


def test_a_character_outside_ascii_is_named_with_its_code():
    assert found(text_rules.check_ascii, "docs/a.md", "fine\ncaf\u00e9\n") == ["character U+00E9 at column 4"]


@pytest.mark.parametrize("code", [
    "void f() { abort(); }", "void f() { if (x) exit(1); }", "void f() { std::terminate(); }", "std::cerr << 1;",
    "printf(\"x\");", "fprintf(stderr, \"x\");", "using namespace std;", "  ::abort();",
])
def test_core_may_not_end_the_process_or_print(code):
    assert found(text_rules.check_banned_calls, "core/base/a.cc", code)


@pytest.mark.parametrize("code", [
    "Status abort(int rank);", "writer->abort();", "// abort();", "log(\"abort();\");", "snprintf(text, 3, \"x\");",
    "Status File::abort() {\n}\nvoid File::close() { abort(); }",
])
def test_words_that_only_look_like_banned_calls_pass(code):
    assert not found(text_rules.check_banned_calls, "core/base/a.cc", code)


def test_a_sleep_in_a_test_is_found_in_every_language():
    for path, code in (("tests/core/a_test.cc", "std::this_thread::sleep_for(x);"), ("tests/x/test_a.py", "time.sleep(1)"),
                       ("bindings/java/src/test/java/A.java", "Thread.sleep(5);"),
                       ("bindings/rust/shardwright/tests/a.rs", "thread::sleep(d);")):
        assert found(text_rules.check_banned_calls, path, code), path


@pytest.mark.parametrize("text", ["// TODO: x", "// TODO(now): x", "// TODO(soon):", "// FIXME later", "// XXX"])
def test_work_left_behind_needs_a_kind_and_a_text(text):
    assert found(text_rules.check_todo, "core/a.cc", text)


def test_a_todo_with_kind_and_text_passes():
    assert not found(text_rules.check_todo, "core/a.cc", "// TODO(perf): try larger blocks.")


@pytest.mark.parametrize(("path", "text"), [
    ("tests/a_test.cc", "TEST(A, DISABLED_Works) {"), ("tests/a_test.cc", "GTEST_SKIP();"),
    ("tests/test_a.py", "@pytest.mark.skip\ndef test_a(): ..."), ("tests/test_a.py", "@pytest.mark.skipif(x)"),
    ("a/ATest.java", "@Disabled\nvoid a() {}"), ("a/a.rs", "#[ignore]\nfn a() {}"),
])
def test_a_disabled_test_without_a_reason_is_found(path, text):
    assert found(text_rules.check_disabled_tests, path, text)


@pytest.mark.parametrize(("path", "text"), [
    ("tests/a_test.cc", 'GTEST_SKIP() << "no io_uring";'), ("tests/test_a.py", '@pytest.mark.skip(reason="needs root")'),
    ("a/ATest.java", '@Disabled("needs a 4 GiB file")'), ("a/a.rs", '#[ignore = "slow"]'),
])
def test_a_disabled_test_with_a_reason_passes(path, text):
    assert not found(text_rules.check_disabled_tests, path, text)


def test_a_name_that_says_nothing_is_found():
    assert found(text_rules.check_names, "core/base/string_util.h", "")
    assert found(text_rules.check_names, "core/common/a.h", "")
    assert not found(text_rules.check_names, "tests/golden/megatron/a/common.pt", "")
    assert not found(text_rules.check_names, "core/base/utility_of_ranks.h", "")
    assert not found(text_rules.check_names, "bindings/python/shardwright/torch/dcp/utils.py", "")
