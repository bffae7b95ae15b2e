# SPDX-License-Identifier: Apache-2.0
"""shardwright.remove_entries: what goes, what stays, and what is refused."""
import numpy as np
import pytest
import shardwright

FORMATS = ("torch-dcp", "megatron")


def saved(path, file_format, **where):
    state = {name: np.full(3, number, "f4") for number, name in enumerate(("layer1.w", "layer10.w", "optimizer.m"))}
    shardwright.save(state | {"optimizer.step": 7, "epoch": 3}, path, format=file_format, **where)
    return path


def names(path, **where):
    with shardwright.open(path, **where) as checkpoint:
        assert checkpoint.verify(deep=True).damage == []
        return set(checkpoint) | set(checkpoint.objects())


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("in_memory", [False, True])
def test_entries_go_and_the_rest_stays(tmp_path, file_format, in_memory):
    where = {"storage": shardwright.MemoryStorage()} if in_memory else {}
    path = saved("p" if in_memory else tmp_path / "p", file_format, **where)
    before = names(path, **where)
    dry = shardwright.remove_entries(path, "optimizer.", **where)
    assert [entry["name"] for entry in dry.removed] == ["optimizer.m", "optimizer.step"] and all(e["bytes"] for e in dry.removed)
    assert dry.operation == "remove" and (dry.files, dry.bytes_files) == (0, 0), "one file, which holds other things, too"
    assert names(path, **where) == before
    done = shardwright.remove_entries(path, "optimizer.", apply=True, **where)
    assert done.removed == dry.removed and done.format == file_format
    assert names(path, **where) == before - {"optimizer.m", "optimizer.step"}
    with pytest.raises(shardwright.NotFoundError, match="optimizer"):
        shardwright.remove_entries(path, "optimizer.", apply=True, **where)


def test_files_that_hold_nothing_else_go_too(tmp_path):
    saved(tmp_path / "one", "torch-dcp")
    shardwright.convert(tmp_path / "one", tmp_path / "p", format="torch-dcp", max_shard_size=1)
    dry = shardwright.remove_entries(tmp_path / "p", "optimizer.")
    assert dry.files >= 1 and dry.bytes_files > 0 and all(entry["bytes"] > 0 for entry in dry.removed)
    files = {file.name for file in (tmp_path / "p").glob("*.distcp")}
    assert shardwright.remove_entries(tmp_path / "p", "optimizer.", apply=True).files == dry.files
    assert len(files - {file.name for file in (tmp_path / "p").glob("*.distcp")}) == dry.files
    assert names(tmp_path / "p") == {"layer1.w", "layer10.w", "epoch"}


def test_whole_parts_leave_names_that_go_on(tmp_path):
    path = saved(tmp_path / "p", "torch-dcp")
    for whole, wanted in ((True, ["layer1.w"]), (False, ["layer1.w", "layer10.w"])):
        assert [each["name"] for each in shardwright.remove_entries(path, "layer1", whole_parts=whole).removed] == wanted


@pytest.mark.parametrize(("prefix", "kind"), [("", shardwright.InvalidArgumentError), ("a\0b", shardwright.InvalidArgumentError),
                                              (None, shardwright.InvalidArgumentError), ("a", shardwright.NotFoundError)])
def test_a_prefix_that_fits_nothing_is_refused(tmp_path, prefix, kind):
    path = saved(tmp_path / "p", "torch-dcp")
    with pytest.raises(kind, match="prefix|begins with 'a'"):
        shardwright.remove_entries(path, prefix, apply=True)
    assert len(names(path)) == 5


def test_what_has_no_such_index_is_refused(tmp_path):
    path = saved(tmp_path / "p", "native")
    with pytest.raises(shardwright.UnimplementedError, match="torch-dcp and megatron"):
        shardwright.remove_entries(path, "optimizer.", apply=True)
    with pytest.raises(shardwright.NotFoundError):
        shardwright.remove_entries(tmp_path / "nowhere", "a")
