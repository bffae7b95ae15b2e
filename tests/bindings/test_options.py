# SPDX-License-Identifier: Apache-2.0
"""Options have one name, one default and the same words in C, Python, Java and Rust."""
import os
import pathlib
import shutil
import subprocess

import options_table as table
import pytest

CALLS = sorted(table.CALLS)


def wanted_fields(call):
    return {field for option in table.CALLS[call] for field in table.option_fields(call, option)}


def differences(language, found, wanted):
    """One line for each name that only one side has."""
    found, wanted = set(found), set(wanted)
    return ([f"{language} lacks {name}" for name in sorted(wanted - found)]
            + [f"{language} has {name}, which the table lacks" for name in sorted(found - wanted)])


def names_of(call):
    return {"C": (set(table.c_fields(call)) - table.C_FRAME, wanted_fields(call)),
            "Python": (table.python_options(call), table.CALLS[call]),
            "Java": (table.java_options(call) - table.JAVA_ARGUMENTS - table.JAVA_ARGUMENTS_OF.get(call, set()),
                     table.CALLS[call]),
            "Rust": (table.rust_options(call), table.CALLS[call])}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("language", ["C", "Python", "Java", "Rust"])
def test_every_language_has_the_options_of_the_call_and_no_other(call, language):
    assert differences(language, *names_of(call)[language]) == []


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("language", ["C", "Python", "Java", "Rust"])
def test_an_option_that_is_missing_is_found(call, language):
    found, wanted = names_of(call)[language]
    for name in sorted(found):
        assert differences(language, set(found) - {name}, wanted) == [f"{language} lacks {name}"]
    assert differences(language, {*found, "new"}, wanted) == [f"{language} has new, which the table lacks"]


@pytest.mark.parametrize("option", sorted(table.WORDS))
def test_every_language_has_the_words_of_the_option(option):
    wanted = table.WORDS[option]
    numbered = dict(zip(table.NUMBERS.get(option, range(len(wanted))), wanted, strict=True))
    assert table.c_words(option) == numbered
    assert {number: word for word, number in table.python_words(option).items()} == numbered
    if option in table.BOOLEANS:
        return
    assert table.java_words(option) == wanted
    assert table.rust_words(option) == wanted


@pytest.mark.parametrize("call", ["save", "load", "open"])
def test_the_type_of_an_option_has_the_words_of_the_option(call):
    numbered = table.python_numbered()
    for option, kind in table.python_typed_options(call).items():
        if option in numbered and option != "kind":  # rules, whose words are those of the type Kind
            assert kind.split(" | ")[0] == numbered[option]


@pytest.mark.parametrize("call", CALLS)
def test_defaults_are_those_of_the_table(call):
    words = {option: word for option, word in table.CALLS[call].items() if table.words_of(call, option) and word != "empty"}
    assert table.python_defaults(call) == words
    java = table.java_defaults(call)
    for option, word in words.items():
        # A format that is not named is native when saving: the C struct and these bindings call that auto.
        expected = "auto" if option == "format" and call != "convert" else word
        assert (call, option) in table.NOT_ZERO or table.WORDS[table.words_of(call, option)].index(expected) == 0
        if option in table.BOOLEANS:
            continue
        assert java[option] == expected
        assert call != "save" or table.rust_save_defaults()[option] == expected


@pytest.mark.parametrize("call", sorted(table.GLOBAL_PLAN))
def test_global_planning_has_the_options_of_planning_but_those_that_it_cannot_have(call):
    functions = {"describe": "describe", "merge": "GlobalPlan.__init__"}
    found = table.keyword_arguments(table.PYTHON_GLOBAL_PLAN, functions[call])
    assert differences("Python", found, set(table.CALLS[call]) - table.GLOBAL_PLAN[call]) == []
    defaults = table.keyword_arguments(table.PYTHON_PLANNING, table.PLANNING[call])
    for name, default in found.items():  # rank and world_size have none: a global plan is always of a known job
        assert default in (None, defaults[name])


@pytest.mark.skipif(not os.environ.get("SHW_BUILD_DIR"), reason="needs the build tree, which the test driver names")
def test_init_functions_give_the_defaults(tmp_path):
    """The functions, not the macros: bindings other than C call them. Zero is the first word of every option."""
    library = pathlib.Path(os.environ["SHW_BUILD_DIR"], "lib")
    lines = ["#include <stdio.h>", "#include <string.h>", "#include <shardwright/shardwright.h>", "int main(void) {"]
    for call in CALLS:
        struct = table.C_STRUCTS[call]
        lines += ["  {", f"    {struct} o;", "    memset(&o, 0xEE, sizeof(o));", f"    {struct}_init(&o, sizeof(o));"]
        lines += [f'    printf("{call} {field} %d\\n", o.{field} != 0);' for field in sorted(wanted_fields(call))]
        lines += ["  }"]
    source = tmp_path / "defaults.c"
    source.write_text("\n".join([*lines, "  return 0;", "}", ""]), encoding="ascii")
    program = tmp_path / "defaults"
    compiler = shutil.which("gcc") or shutil.which("cc")
    subprocess.run([compiler, "-std=c11", f"-I{table.HEADERS.parent}", source, "-o", program, f"-L{library}",
                    "-lshardwright", f"-Wl,-rpath,{library}"], check=True)
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split("\n")
    assert printed[:-1] == [f"{call} {field} 0" for call in CALLS for field in sorted(wanted_fields(call))]
