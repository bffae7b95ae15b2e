# SPDX-License-Identifier: Apache-2.0
"""Directories that are written here, as unmodified torch reads them, and the other way round."""
import os
import pickle
import pickletools
import zipfile

import pytest
import shardwright
import shardwright.torch
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp
from torch.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys

pytestmark = pytest.mark.filterwarnings("ignore")

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64,
          torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.bool, torch.complex32, torch.complex64,
          torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz,
          torch.float8_e8m0fnu]


def filled(dtype, *shape):
    count = torch.empty(shape, dtype=dtype).numel() * torch.empty((), dtype=dtype).element_size()
    raw = (torch.arange(count) * 37 + 11).to(torch.uint8)
    if dtype == torch.bool:
        raw = raw % 2
    return raw.view(dtype).reshape(shape).clone() if count else torch.empty(shape, dtype=dtype)


def same(a, b):
    return (a.dtype == b.dtype and a.shape == b.shape
            and torch.equal(a.contiguous().reshape(-1).view(torch.uint8), b.contiguous().reshape(-1).view(torch.uint8)))


def all_of(path):
    """The checkpoint as torch gives it without knowing what is in it."""
    dcp_to_torch_save(path, str(path) + ".pt")
    return torch.load(str(path) + ".pt", weights_only=False)


def state():
    return {"model": {"w": filled(torch.float32, 300, 101), "b": filled(torch.float32, 7), "scalar": torch.tensor(2.5),
                      "empty": torch.empty(0, 3), "large": filled(torch.bfloat16, 1100, 1000)},
            "optim": [{"m": filled(torch.float64, 5)}, {"m": filled(torch.float64, 6)}],
            "step": 7, "lr": 0.125, "name": "run \u00e4", "none": None, "flag": True, "big": 2**80, "nan": float("inf"),
            "pair": (1, "a"), "nested": {"list": [1, 2.5, ["x"]], "dict": {"k": [None]}}, "blob": b"\x00\xffbytes"}


def test_torch_loads_what_is_written(tmp_path):
    saved = state()
    shardwright.torch.save(saved, tmp_path / "c", format="torch-dcp")
    loaded = all_of(tmp_path / "c")
    for name, tensor in saved["model"].items():
        assert same(loaded["model"][name], tensor), name
    for i in range(2):
        assert same(loaded["optim"][i]["m"], saved["optim"][i]["m"])
    for name in ("step", "lr", "name", "none", "flag", "big", "nan", "pair", "nested", "blob"):
        assert loaded[name] == saved[name], name
    assert _load_state_dict_from_keys({"model.b", "step"}, checkpoint_id=tmp_path / "c")["step"] == 7
    target = {"model": {"w": torch.zeros(300, 101)}, "step": 0}
    dcp.load(target, checkpoint_id=tmp_path / "c")
    assert torch.equal(target["model"]["w"], saved["model"]["w"]) and target["step"] == 7


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_goes_both_ways_with_equal_digests(dtype, tmp_path):
    saved = {"t": filled(dtype, 6, 4), "s": filled(dtype), "e": filled(dtype, 0, 2)}
    shardwright.torch.save(saved, tmp_path / "ours", format="torch-dcp")
    dcp.save(saved, checkpoint_id=tmp_path / "torchs")
    loaded = all_of(tmp_path / "ours")
    for name, tensor in saved.items():
        assert same(loaded[name], tensor), name
    with shardwright.open(tmp_path / "ours") as ours, shardwright.open(tmp_path / "torchs") as torchs:
        assert ours.digest("sha256") == torchs.digest("sha256")


def test_pairs_of_four_bits_are_those_of_torch(tmp_path):
    pairs = torch.arange(24, dtype=torch.uint8).reshape(4, 6).view(torch.float4_e2m1fn_x2)
    dcp.save({"q": pairs}, checkpoint_id=tmp_path / "torchs")
    shardwright.convert(tmp_path / "torchs", tmp_path / "ours", format="torch-dcp")
    loaded = all_of(tmp_path / "ours")["q"]
    assert loaded.dtype == pairs.dtype and torch.equal(loaded.view(torch.uint8), pairs.view(torch.uint8))


def test_pickles_are_what_torch_loads(tmp_path):
    value = {1, 2, frozenset("ab")}
    shardwright.save({"p": value}, tmp_path / "c", format="torch-dcp", objects="pickle")
    assert all_of(tmp_path / "c")["p"] == value
    target = {"p": set()}
    shardwright.load(tmp_path / "c", into=target)
    assert target["p"] == value


def test_a_checkpoint_of_torch_is_written_over_in_place(tmp_path):
    dcp.save({"w": torch.ones(5), "gone": torch.ones(2)}, checkpoint_id=tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    for number in (1, 2):
        shardwright.torch.save({"w": torch.full((5,), float(number))}, tmp_path, format="torch-dcp")
        names = sorted(os.listdir(tmp_path))
        assert len([n for n in names if n.endswith(".distcp")]) == 1 and "__0_0.distcp" not in names
        assert (tmp_path / "notes.txt").read_text() == "mine"
        target = {"w": torch.zeros(5)}
        dcp.load(target, checkpoint_id=tmp_path)
        assert target["w"][0] == number
    dcp.save({"w": torch.zeros(5)}, checkpoint_id=tmp_path)  # and torch over ours
    target = {"w": torch.ones(5)}
    shardwright.torch.load(tmp_path, target)
    assert not target["w"].any()


def test_the_index_is_one_that_torch_could_have_made(tmp_path):
    shardwright.torch.save(state(), tmp_path, format="torch-dcp")
    with open(tmp_path / ".metadata", "rb") as file:
        assert max(code.proto for code, _, _ in pickletools.genops(file.read())) <= 4
    metadata = FileSystemReader(tmp_path).read_metadata()
    assert metadata.version == "1.0.0" and metadata.storage_meta.checkpoint_id == str(tmp_path)
    assert set(metadata.planner_data) == set(metadata.state_dict_metadata)
    assert metadata.planner_data["optim.1.m"] == ("optim", 1, "m")
    hints = [index.index for index in metadata.storage_data if index.fqn == "model.w"]
    assert hints == [0]
    again = pickle.loads(pickle.dumps(metadata))
    assert again.state_dict_metadata == metadata.state_dict_metadata


def test_items_are_sound_archives(tmp_path):
    shardwright.torch.save(state(), tmp_path, format="torch-dcp")
    metadata = FileSystemReader(tmp_path).read_metadata()
    for index, place in metadata.storage_data.items():
        with open(tmp_path / place.relative_path, "rb") as file:
            file.seek(place.offset)
            item = file.read(place.length)
        (tmp_path / "item").write_bytes(item)
        with zipfile.ZipFile(tmp_path / "item") as archive:
            assert archive.testzip() is None, index
        torch.load(tmp_path / "item", weights_only=False)


def test_entries_of_a_rank_are_plain_keys_to_torch(tmp_path):
    saved = {"rng": {"state": torch.arange(4)}, "position": 12}
    shardwright.torch.save(saved, tmp_path, format="torch-dcp",
                           kind={"rng.*": "rank_local", "position": "rank_local"})
    loaded = all_of(tmp_path)
    assert torch.equal(loaded["rng"]["state.rank-0"], saved["rng"]["state"]) and loaded["position.rank-0"] == 12
    target = {"rng": {"state": torch.zeros(4, dtype=torch.int64)}, "position": 0}
    shardwright.torch.load(tmp_path, target)
    assert torch.equal(target["rng"]["state"], saved["rng"]["state"]) and target["position"] == 12
    for name in os.listdir(tmp_path):  # the rule in the index is enough
        if name.endswith(".digests"):
            os.remove(tmp_path / name)
    target["rng"]["state"].zero_()
    shardwright.torch.load(tmp_path, target)
    assert torch.equal(target["rng"]["state"], saved["rng"]["state"])


def test_a_flipped_bit_is_found_by_whole_and_ranged_reads(tmp_path):
    saved = {"w": filled(torch.float32, 900, 500), "text": "hello"}
    shardwright.torch.save(saved, tmp_path, format="torch-dcp")
    name, = (n for n in os.listdir(tmp_path) if n.endswith(".distcp"))
    sound = (tmp_path / name).read_bytes()
    place = sound.index(saved["w"].numpy().tobytes()[:4096])
    spoiled = bytearray(sound)
    spoiled[place + 1_200_000] ^= 8
    (tmp_path / name).write_bytes(spoiled)
    with pytest.raises(shardwright.DataLossError, match="'w'"):
        shardwright.torch.load(tmp_path, {"w": torch.zeros(900, 500), "text": ""})
    with shardwright.open(tmp_path) as checkpoint:
        assert checkpoint["w"][0:4].shape == (4, 500)
        with pytest.raises(shardwright.DataLossError, match="'w'"):
            checkpoint["w"][600:601]
    (tmp_path / name).write_bytes(sound.replace(b"hello", b"hallo"))
    with pytest.raises(shardwright.DataLossError, match="'text'"):
        shardwright.load(tmp_path)


def test_conversions_end_where_torch_begins(tmp_path):
    saved = state()
    torch.save({"w": saved["model"]["w"], "step": 3}, tmp_path / "x.pt")
    shardwright.convert(tmp_path / "x.pt", tmp_path / "c", format="torch-dcp")
    assert same(all_of(tmp_path / "c")["w"], saved["model"]["w"])
    torch_save_to_dcp(tmp_path / "x.pt", tmp_path / "d")
    shardwright.convert(tmp_path / "d", tmp_path / "e", format="torch-dcp")
    assert same(all_of(tmp_path / "e")["w"], saved["model"]["w"])


def test_items_of_a_host_with_an_index_of_its_own(tmp_path):
    """What a storage writer inside of torch's save does: items by us, the index by torch's classes, digests beside it."""
    from torch.distributed.checkpoint.filesystem import _StorageInfo
    from torch.distributed.checkpoint.metadata import (BytesStorageMetadata, ChunkStorageMetadata, Metadata,
                                                       MetadataIndex, TensorProperties, TensorStorageMetadata)
    generation = "0123456789abcdef" * 2
    values = {"w": filled(torch.float32, 400, 100), "b": filled(torch.bfloat16, 3), "e": torch.empty(0, 4)}
    metadata = Metadata({}, {}, {})
    results = []
    for rank, names in enumerate((["w", "step"], ["b", "e"])):
        name = f"__{rank}_0.{generation}.distcp"
        state = {n: values[n] for n in names if n in values} | ({"step": 5} if "step" in names else {})
        places, result = shardwright.torch.write_items(state, tmp_path, name)
        results.append(result)
        assert {key for key, _, _ in places} == set(names)
        for key, offset, length in places:
            if key == "step":
                index, entry = MetadataIndex(key), BytesStorageMetadata()
            else:
                size = values[key].size()
                index = MetadataIndex(key, torch.Size([0] * len(size)), 0)
                entry = TensorStorageMetadata(TensorProperties(values[key].dtype), size,
                                              [ChunkStorageMetadata(index.offset, size)])
            metadata.state_dict_metadata[key] = entry
            metadata.planner_data[key] = (key,)
            metadata.storage_data[index] = _StorageInfo(name, offset, length)
    data = pickle.dumps(metadata)
    shardwright.torch.write_digests(tmp_path, data, results)
    (tmp_path / ".metadata").write_bytes(data)
    loaded = all_of(tmp_path)
    assert all(same(loaded[name], value) for name, value in values.items()) and loaded["step"] == 5
    with shardwright.open(tmp_path) as checkpoint:
        assert checkpoint.info()["digests"], checkpoint.info()
    file = tmp_path / f"__0_0.{generation}.distcp"
    sound = file.read_bytes()
    spoiled = bytearray(sound)
    spoiled[sound.index(values["w"].numpy().tobytes()) + 100_000] ^= 1
    file.write_bytes(spoiled)
    with pytest.raises(shardwright.DataLossError, match="'w'"):
        shardwright.torch.load(tmp_path, {"w": torch.zeros(400, 100)})
    with pytest.raises(shardwright.AlreadyExistsError):
        shardwright.torch.write_items({"w": values["w"]}, tmp_path, file.name)
    with pytest.raises(shardwright.InvalidArgumentError, match="name"):
        shardwright.torch.write_items({"w": values["w"]}, tmp_path, "__0_0.distcp")
