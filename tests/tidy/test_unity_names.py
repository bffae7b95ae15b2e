# SPDX-License-Identifier: Apache-2.0
"""File-local names that meet in one compiled unit are found, others are not."""

import pytest
import unity_names
from source_tree import SourceTree


def source(body, name="a"):
    return f"namespace shardwright::{name} {{\nnamespace {{\n\n{body}\n\n}}  // namespace\n}}\n"


def found(**bodies):
    """Lines that are found; each keyword is a file of core/x, or of another folder where it begins with it."""
    texts = {path.replace("__", "/") + ".cc": text for path, text in bodies.items()}
    return [(finding.path, finding.line) for finding in unity_names.check(SourceTree.of_texts(texts))]


@pytest.mark.parametrize("body", [
    "Status wrong(std::string_view what) {\n  return {};\n}",
    "constexpr size_t kMost = 16;",
    "constexpr uint64_t bytes_of(uint64_t n) {\n  return n;\n}",
    "struct Item {\n  int a;\n};",
    "class Reader final : public Events {\n};",
    "enum State : uint32_t { kNone };",
])
def test_the_second_of_two_is_named(body):
    assert found(core__x__a=source(body), core__x__b=source(body)) == [("core/x/b.cc", 4)]
    assert not found(core__x__a=source(body), core__y__b=source(body))
    assert not found(core__x__a=source(body), core__x__b=source(body, "b"))


def test_functions_may_differ_in_their_parameters():
    assert not found(core__x__a=source("Status wrong(std::string_view what) {\n}"),
                     core__x__b=source("Status wrong(const Key& key, std::string_view what) {\n}"))
    assert found(core__x__a=source("Status wrong(std::map<int, int> what) {\n}"),
                 core__x__b=source("Status wrong(std::map<int, int> why) {\n}"))


def test_an_alias_may_be_said_again_with_the_same_meaning():
    assert not found(cli__a=source("using Json = nlohmann::json;"), cli__b=source("using Json = nlohmann::json;"))
    assert found(cli__a=source("using Json = nlohmann::json;"), cli__b=source("using Json = Tree;")) == [("cli/b.cc", 4)]


def test_names_in_functions_and_outside_are_nobodys_business():
    body = "void f(int a) {\n  struct Inner {\n  };\n  constexpr int kInner = 1;\n}"
    other = body.replace("f(int a)", "g(int a)")
    assert not found(core__x__a=source(body), core__x__b=source(other))
