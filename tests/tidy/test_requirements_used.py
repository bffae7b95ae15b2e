# SPDX-License-Identifier: Apache-2.0
"""Packages, options and licence rows that nothing uses are found."""

import requirements_used
from source_tree import SourceTree

LISTS = {"tools/requirements/apt.txt": "# a list\nlibfmt-dev\ngit  git\n", "core/a.cc": "#include <fmt/core.h>\n",
         "tools/a.sh": "git status\n"}


def found(**texts):
    tree = SourceTree.of_texts(LISTS | {path.replace("__", "/"): text for path, text in texts.items()})
    return [finding.text.split(":")[0] for finding in requirements_used.check(tree)]


def test_packages_that_are_used_pass():
    assert not found()


def test_a_package_that_nothing_uses_is_found():
    assert found(**{"core/a.cc": "#include <xxhash.h>\n"}) == ["libfmt-dev"]


def test_a_page_or_a_list_is_no_use():
    assert found(**{"core/a.cc": "", "README.md": "#include <fmt/core.h>\n"}) == ["libfmt-dev"]


def test_a_package_without_a_row_is_found():
    assert found(**{"tools/requirements/base.txt": "leftpad==1.0\n"}) == ["leftpad"]


def test_an_option_that_only_reaches_a_text_is_found():
    texts = {"cmake/ShwOptions.cmake": 'option(SHW_A "A." ON)\noption(SHW_B "B." ON)\n',
             "capi/CMakeLists.txt": "set(SHW_BUILD_INFO_A false)\nif(SHW_A)\n  set(SHW_BUILD_INFO_A true)\nendif()\n",
             "cmake/ShwDependencies.cmake": "if(SHW_A)\nendif()\n", "cli/CMakeLists.txt": "if(SHW_B)\nendif()\n"}
    assert found(**texts) == ["SHW_A"]


def test_a_licence_row_without_a_package_is_found():
    row = "| project | version |\n| --- | --- |\n| fmt | 9.1 |\n| liburing | 2.3 |\n"
    assert found(**{"LICENSES.md": row}) == ["liburing"]
