# SPDX-License-Identifier: Apache-2.0
"""Dead links, rows without tests and missing comments are found; documented declarations pass."""

import compatibility_rows
import doc_coverage
import doc_links
import pytest
from source_tree import SourceTree


def links(texts):
    return [finding.text for finding in doc_links.check(SourceTree.of_texts(texts))]


def test_links_to_files_folders_and_headings_pass():
    texts = {"README.md": "[a](docs/a.md) [b](docs/) [c](docs/a.md#two-words) [d](https://example.org/x) [e](#top)\n# Top\n",
             "docs/a.md": "# One\n## Two words\n"}
    assert not links(texts)


@pytest.mark.parametrize("link", ["docs/b.md", "docs/a.md#three", "#nowhere", "../outside.md"])
def test_a_link_that_leads_nowhere_is_found(link):
    assert links({"README.md": f"[x]({link})\n", "docs/a.md": "# One\n"})


def test_links_inside_code_are_not_links():
    assert not links({"README.md": "`[x](nothing)`\n```\n[y](nothing)\n```\n"})


def rows(*cells):
    page = "".join(f"| {first} | {last} |\n" for first, last in (("case", "test"), ("---", "---"), *cells))
    texts = {"docs/compatibility.md": page + "\n| other | words |\n| --- | --- |\n| a | b |\n",
             "tests/core/a_test.cc": "TEST(A, HoldsWater) {}\n", "tests/tidy/x.py": "def test_elsewhere(): pass\n"}
    return [(finding.line, finding.text) for finding in compatibility_rows.check(SourceTree.of_texts(texts))]


def test_rows_that_name_tests_which_exist_pass():
    assert not rows(("a", "`a_test.cc`, `HoldsWater`"), ("b", "`tests/core/a_test.cc`, `A[V4 ...]`"))


def test_rows_without_a_test_or_with_one_that_is_not_there_are_found():
    assert rows(("a", "by eye"), ("b", "`a_test.cc`, `HoldsAir`"), ("c", "`x.py`, `test_elsewhere`")) == [
        (3, "the row names no test"), (4, "HoldsAir: no test of that name"), (5, "test_elsewhere: no test of that name")]


RUNS = "def test_runs(original): original.f()\ndef test_tells():\n    \"\"\"The original.\"\"\"\n    ours.f()\n"


@pytest.mark.parametrize(("cell", "said"), [("`test_runs` (run)", []), ("`test_tells`", []),
                                            ("`test_runs`", ["a test of it runs the original: mark it (run)"]),
                                            ("`test_tells` (run)", ["(run), but no test of it runs the original"])])
def test_rows_say_whether_the_original_runs(cell, said):
    texts = {"docs/compatibility.md": f"| case | test |\n| --- | --- |\n| a | {cell} |\n", "tests/test_a.py": RUNS}
    assert [finding.text for finding in compatibility_rows.check(SourceTree.of_texts(texts))] == said


def test_c_declarations_need_a_comment():
    good = "/* Opens. */\nSHW_API int f(void);\n/* A handle. */\ntypedef struct a a;\n/* Foreign. */\nstruct b;\n"
    assert not doc_coverage.c_findings("a.h", good)
    assert len(doc_coverage.c_findings("a.h", "SHW_API int f(void);\n\ntypedef int32_t b;\n")) == 2


def test_python_publics_need_a_docstring():
    good = '"""M."""\ndef f():\n    """F."""\ndef _g(): pass\nclass C:\n    """C."""\n    def __init__(self): pass\n'
    assert not doc_coverage.python_findings("bindings/python/shardwright/a.py", good)
    bad = "def f(): pass\nclass C:\n    def m(self): pass\n"
    assert len(doc_coverage.python_findings("bindings/python/shardwright/a.py", bad)) == 4
    assert not doc_coverage.python_findings("bindings/python/shardwright/_a.py", bad)


def test_java_publics_need_a_comment_unless_they_override():
    good = "/** A. */\npublic final class A {\n  /** F. */\n  @Deprecated\n  public int f() { return 1; }\n" \
           "  @Override\n  public void close() {}\n  int g() { return 2; }\n}\n"
    assert not doc_coverage.java_findings("A.java", good)
    assert len(doc_coverage.java_findings("A.java", "public class A {\n  public int f() { return 1; }\n}\n")) == 2


def test_members_of_a_private_java_type_are_not_public():
    assert not doc_coverage.java_findings("A.java", "final class A {\n  public int f() { return 1; }\n}\n")
    assert not doc_coverage.java_findings("io/internal/A.java", "public class A {\n  public int f() { return 1; }\n}\n")


def test_a_rust_crate_must_let_the_compiler_refuse_missing_comments():
    assert not doc_coverage.rust_findings("src/lib.rs", "//! Crate.\n#![deny(missing_docs)]\n")
    assert doc_coverage.rust_findings("src/lib.rs", "//! Crate.\n")
    assert doc_coverage.rust_findings("src/a.rs", "#[allow(missing_docs)]\npub fn f() {}\n")
