# SPDX-License-Identifier: Apache-2.0
"""clang-tidy reads every changed source and header, or says that it could not."""

import clang_checks
from source_tree import SourceTree

TREE = SourceTree.of_texts({
    "core/a/x.cc": '#include "core/a/x.h"\n', "core/a/x.h": '#include "core/a/through.h"\n', "core/a/through.h": "", "core/a/y_internal.h": "", "core/a/y.cc": "",
    "core/a/z.h": "", "core/a/user.cc": '#include "core/a/z.h"\n', "core/a/lonely.h": "", "core/a/new.cc": "",
    "tests/t.cc": '#include "core/a/lonely.h"\n', "tests/only.h": ""})
COMPILED = {"core/a/x.cc", "core/a/y.cc", "core/a/user.cc"}


def chosen(*changed):
    sources, findings = clang_checks.sources_to_read(TREE, list(changed), COMPILED)
    return sources, [(finding.path, finding.text.split(",")[0]) for finding in findings]


def test_a_changed_header_is_read_through_its_source_or_a_user():
    assert chosen("core/a/x.h") == (["core/a/x.cc"], [])
    assert chosen("core/a/y_internal.h") == (["core/a/y.cc"], [])
    assert chosen("core/a/z.h", "core/a/user.cc") == (["core/a/user.cc"], [])
    assert chosen("core/a/through.h") == (["core/a/x.cc"], [])


def test_what_no_compiled_source_covers_is_a_finding():
    assert chosen("core/a/new.cc") == ([], [("core/a/new.cc", "the build does not compile it")])
    assert chosen("core/a/lonely.h") == ([], [("core/a/lonely.h", "no source that the build compiles includes it")])


def test_files_of_other_folders_and_removed_ones_are_left_out():
    assert chosen("tests/only.h", "core/a/removed.cc", "core/a/x.txt") == ([], [])


def test_a_build_without_a_database_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(clang_checks.shutil, "which", lambda name: name)
    (finding,) = clang_checks.check_tidy(SourceTree(tmp_path, {}), tmp_path / "build")
    assert "compile_commands.json" in finding.text


def test_sources_that_are_compiled_together_are_read_one_by_one(tmp_path):
    together = tmp_path / "Unity" / "unity_0_cxx.cxx"
    together.parent.mkdir()
    together.write_text('#include "/a/x.cc"\n\n#include "/a/y.cc"\n')
    alone = {"directory": str(tmp_path), "file": "/a/z.cc", "command": "c++ -c /a/z.cc"}
    entry = {"directory": str(tmp_path), "file": str(together), "command": f"c++ -DX -c {together}"}
    found = clang_checks.one_by_one([entry, alone])
    assert [each["file"] for each in found] == ["/a/x.cc", "/a/y.cc", "/a/z.cc"]
    assert [each["command"] for each in found] == ["c++ -DX -c /a/x.cc", "c++ -DX -c /a/y.cc", "c++ -c /a/z.cc"]


def test_what_needs_torch_is_not_asked_for_where_there_is_none(tmp_path):
    assert clang_checks.left_out(tmp_path) == ()
    (tmp_path / "CMakeCache.txt").write_text("SHW_TORCH_LEFT_OUT:INTERNAL=FALSE\n")
    assert clang_checks.left_out(tmp_path) == ()
    (tmp_path / "CMakeCache.txt").write_text("SHW_TORCH_LEFT_OUT:INTERNAL=TRUE\n")
    assert clang_checks.left_out(tmp_path) == ("core/collective/c10d/",)


def test_what_needs_cuda_is_not_asked_for_where_there_is_none(tmp_path):
    for switch in ("SHW_CUDA_LEFT_OUT:INTERNAL=TRUE", "SHW_WITH_CUDA:STRING=OFF"):
        (tmp_path / "CMakeCache.txt").write_text(f"SHW_TORCH_LEFT_OUT:INTERNAL=FALSE\n{switch}\n")
        assert clang_checks.left_out(tmp_path) == ("core/base/cuda/", "core/device/cuda/", "core/collective/nccl/")
