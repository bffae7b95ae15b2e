# SPDX-License-Identifier: Apache-2.0
"""Our writer as storage of torch's own save: the library writes the items, and digests lie beside torch's index."""
import os
import pickle

import pytest
import torch
import torch.distributed.checkpoint as theirs
from torch.distributed.checkpoint.filesystem import _StorageInfo

import shardwright
import shardwright.torch.dcp as dcp

pytestmark = pytest.mark.filterwarnings("ignore")


def state(start=0.0):
    return {"model": {"w": torch.arange(600_000.0).reshape(600, 1000) + start, "t": torch.arange(6.0).reshape(2, 3).t(),
                      "b": torch.ones(3, dtype=torch.bfloat16), "scalar": torch.tensor(start), "empty": torch.empty(0, 3),
                      "p": torch.nn.Parameter(torch.ones(2)), "conj": torch.tensor([1 + 2j]).conj()},
            "step": int(start), "pair": (1, "a")}


def emptied():
    found = state()
    for value in found["model"].values():
        value.detach().zero_()
    found["model"]["conj"] = torch.zeros(1, dtype=torch.complex64)
    return found | {"step": None, "pair": None}


def check(path, start):
    for load in (theirs.load, dcp.load):
        target = emptied()
        load(target, checkpoint_id=path)
        for name, value in state(start)["model"].items():
            assert torch.equal(target["model"][name], value), name
        assert target["step"] == int(start) and target["pair"] == (1, "a")


def files(path):
    names = os.listdir(path)
    return (sorted(name for name in names if name.endswith(".distcp")),
            sorted(name for name in names if name.endswith(".digests")))


@pytest.mark.parametrize("options", [{}, {"thread_count": 3}, {"sync_files": False}], ids=str)
def test_items_are_of_the_library_and_have_digests(options, tmp_path):
    theirs.save(state(3.0), storage_writer=dcp.FileSystemWriter(tmp_path, **options))
    check(tmp_path, 3.0)
    (name,), (beside,) = files(tmp_path)
    assert name == f"__0_0.{beside.split('.')[2]}.distcp"
    with open(tmp_path / ".metadata", "rb") as file:
        metadata = pickle.load(file)
    assert {type(place) for place in metadata.storage_data.values()} == {_StorageInfo}
    assert all("digests" not in vars(place) for place in metadata.storage_data.values())
    with shardwright.open(tmp_path) as checkpoint:
        assert checkpoint.info()["digests"], checkpoint.info()


def test_a_flipped_bit_is_found(tmp_path):
    saved = state(1.0)
    theirs.save(saved, storage_writer=dcp.FileSystemWriter(tmp_path))
    (name,), _ = files(tmp_path)
    spoiled = bytearray((tmp_path / name).read_bytes())
    spoiled[spoiled.index(saved["model"]["w"].numpy().tobytes()[:4096]) + 1_200_000] ^= 1
    (tmp_path / name).write_bytes(spoiled)
    with shardwright.open(tmp_path) as checkpoint:
        assert checkpoint["model.w"][0:4].shape == (4, 1000)
        with pytest.raises(shardwright.DataLossError, match=r"model\.w"):
            checkpoint["model.w"][300:301]  # a part, which no checksum of an archive covers


def test_a_checkpoint_that_is_replaced_leaves_nothing(tmp_path):
    theirs.save(state(1.0), checkpoint_id=tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    for start in (2.0, 3.0):
        theirs.save(state(start), storage_writer=dcp.FileSystemWriter(tmp_path))
        assert [len(names) for names in files(tmp_path)] == [1, 1] and (tmp_path / "notes.txt").exists()
        check(tmp_path, start)


def test_planners_that_keep_their_plan_get_new_files(tmp_path):
    planner = theirs.DefaultSavePlanner(enable_plan_caching=True)
    for start in (1.0, 2.0, 3.0):
        theirs.save(state(start), storage_writer=dcp.FileSystemWriter(tmp_path), planner=planner)
        assert [len(names) for names in files(tmp_path)] == [1, 1]
        check(tmp_path, start)


def test_a_planner_says_what_is_written(tmp_path):
    class Doubling(theirs.DefaultSavePlanner):
        def resolve_data(self, write_item):
            data = super().resolve_data(write_item)
            return data * 2 if isinstance(data, torch.Tensor) else data

    theirs.save({"w": torch.ones(4)}, storage_writer=dcp.FileSystemWriter(tmp_path), planner=Doubling())
    with shardwright.open(tmp_path) as checkpoint:
        assert checkpoint.info()["digests"] and list(checkpoint["w"][0:4]) == [2.0] * 4


class Parts:
    """Two shards that one rank holds of a tensor of 4 x 5, by columns."""

    def __init__(self, whole):
        self.whole = whole

    def __create_write_items__(self, fqn, value):
        from items import shard
        return [shard(fqn, [0, start], [4, size], [4, 5], hint=hint) for hint, (start, size) in enumerate(((0, 2), (2, 3)))]


class OfParts(theirs.DefaultSavePlanner):
    def resolve_data(self, write_item):
        if write_item.index.fqn != "s":
            return super().resolve_data(write_item)
        start, size = write_item.tensor_data.chunk.offsets[1], write_item.tensor_data.chunk.sizes[1]
        return self.state_dict["s"].whole[:, start:start + size]


def test_shards_of_one_name_are_in_one_file(tmp_path):
    whole = torch.arange(20.0).reshape(4, 5)
    theirs.save({"s": Parts(whole), "n": 1}, storage_writer=dcp.FileSystemWriter(tmp_path), planner=OfParts())
    assert [len(names) for names in files(tmp_path)] == [1, 1]
    for load in (theirs.load, dcp.load):
        target = {"s": torch.zeros(4, 5)}
        load(target, checkpoint_id=tmp_path)
        assert torch.equal(target["s"], whole)



def test_what_the_library_cannot_describe_is_written_as_torch_does(tmp_path):
    class Casting(theirs.DefaultSavePlanner):
        def resolve_data(self, write_item):  # not what the index says
            data = super().resolve_data(write_item)
            return data.double() if write_item.index.fqn == "cast" else data

    pairs = torch.arange(6, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    saved = {"w": torch.ones(3), "cast": torch.ones(3), "pairs": pairs}
    theirs.save(saved, storage_writer=dcp.FileSystemWriter(tmp_path), planner=Casting())
    assert [len(names) for names in files(tmp_path)] == [2, 1]
    target = {"w": torch.zeros(3), "cast": torch.zeros(3), "pairs": torch.zeros(6, dtype=torch.uint8).view(pairs.dtype)}
    theirs.load(target, checkpoint_id=tmp_path)
    assert target["w"].all() and target["cast"].all() and torch.equal(target["pairs"].view(torch.uint8), pairs.view(torch.uint8))


def test_a_file_per_item_has_no_digests(tmp_path):
    theirs.save({"w": torch.ones(3), "n": 1}, storage_writer=dcp.FileSystemWriter(tmp_path, single_file_per_rank=False))
    assert [len(names) for names in files(tmp_path)] == [2, 0]
    target = {"w": torch.zeros(3), "n": None}
    dcp.load(target, checkpoint_id=tmp_path)
    assert target["w"].all() and target["n"] == 1
