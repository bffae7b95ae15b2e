# SPDX-License-Identifier: Apache-2.0
"""The ratchet measures functions of four languages and holds its exceptions to what they need."""

import size_ratchet
from source_tree import SourceTree

CPP = """namespace a {
class Box {
 public:
  Box(int x, int y) : x_{x}, y_(y) {
    use(x);
  }
  int area() const noexcept { return 1; }
  struct Inner { int z = f({1, 2}); };
};
const std::vector<int> kTable = {
  1, 2,
  3,
};
#define SHW_LOOP(x) do { x; } while (0)
template <typename T>
Result<T> long_one(std::span<const T> values,
                   int count) {
  auto run = [&](int i) {
    return "}" + i;
  };
  return run(count);  // }
}
}  // namespace a
"""


def names(text, path="core/a.cc"):
    return {function.name: function.lines for function in size_ratchet.functions_of(path, text)}


def test_functions_of_cpp_are_found_with_their_lines():
    assert names(CPP) == {"Box": 3, "area": 1, "long_one": 8}


def test_functions_of_java_are_found():
    text = "@Timeout(value = 60)\npublic final class A implements B {\n  /** x. */\n  @Test\n  public int f(int a) throws X {\n    return g(() -> {\n" \
           "      h();\n    });\n  }\n}\n"
    assert names(text, "a/A.java") == {"f": 6}


def test_functions_of_rust_are_found():
    text = "impl<'a> A<'a> {\n    pub fn f<T>(&self, c: char) -> T\n    where T: B {\n        match c { '{' => 1, _ => 2 }\n" \
           "    }\n}\n"
    assert names(text, "a/a.rs") == {"f": 4}


def test_docstrings_of_python_do_not_count():
    text = 'def f():\n    """One.\n\n    Two.\n    """\n    return 1\n'
    assert names(text, "a.py") == {"f": 2}


def check(texts):
    return [str(finding) for finding in size_ratchet.check(SourceTree.of_texts(texts))]


def test_a_long_function_is_named_and_can_be_allowed():
    text = "void slow() {\n" + "  step();\n" * 80 + "}\n"
    assert check({"core/a.cc": text}) == ["core/a.cc: size: function slow has 82 lines, more than 70"]
    assert not check({"core/a.cc": text, size_ratchet.ALLOW_FILE: "core/a.cc:slow 82 a flat table\n"})


def test_an_exception_that_is_too_generous_fails():
    text = "void slow() {\n" + "  step();\n" * 80 + "}\n"
    assert check({"core/a.cc": text, size_ratchet.ALLOW_FILE: "core/a.cc:slow 90 a flat table\n"})
    assert check({size_ratchet.ALLOW_FILE: "core/gone.cc 700 was long once\n"})


def test_a_long_file_is_named():
    assert check({"core/a.cc": "int x;\n" * 601})
    assert check({"include/shardwright/a.h": "int x;\n" * 401})
    assert not check({"core/a.cc": "int x;\n" * 600})
