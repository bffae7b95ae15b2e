# SPDX-License-Identifier: Apache-2.0
"""Directories in the format `megatron`, as unmodified megatron-core reads them, and the other way round."""
import hashlib
import json
import shutil
from pathlib import Path

import pytest
import shardwright
import shardwright.torch
import shardwright.torch.megatron
import torch
from shardwright.torch.megatron.strategies._stored_metadata import read_metadata

pytestmark = pytest.mark.filterwarnings("ignore")
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "megatron"

COMMON = {"iteration": 7, "args": {"lr": 0.25, "name": "run \u00e4", "none": None, "flag": True, "big": 2**80, "inf": float("inf")},
          "groups": [{"betas": [0.9, 0.95], "step": torch.tensor(3)}, {"betas": [0.5, 0.25], "step": torch.tensor(4)}],
          "rng": torch.arange(40, dtype=torch.uint8), "empty": {}, "nothing": [], "counts": {3: "three"}, "half": torch.ones(2, 3).half()}


def tensors(number):
    generator = torch.Generator().manual_seed(number)
    return {"decoder.weight": torch.randn(12, 8, generator=generator), "decoder.bias": torch.randn(5, generator=generator).bfloat16(),
            "large": torch.randn(600, 300, generator=generator), "scalar": torch.tensor(2.5 + number)}


def request_for(kinds, wanted):
    return {key: kinds.ShardedTensor.from_rank_offsets(key, torch.empty_like(value)) for key, value in wanted.items()} | {
        "extra": kinds.ShardedObject("decoder._extra_state", None, (1,), (0,))}


def load(original, path, wanted):
    return original.serialization.load(request_for(original.mapping, wanted), str(path))


def same(a, b):
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def assert_loads(original, path, number, common=COMMON):
    loaded = load(original, path, tensors(number))
    assert loaded.pop("extra") == {"amax": number}
    for key, value in tensors(number).items():
        assert same(loaded.pop(key), value), key
    assert loaded.keys() == common.keys()
    for key, value in common.items():
        assert same(loaded[key], value), (key, loaded[key])


def ours(path, number, common=COMMON, **options):
    state = tensors(number) | {"decoder._extra_state/shard_0_1": [{"amax": number}]}
    if common is not None:
        state["common"] = common
    return shardwright.torch.save(state, path, format="megatron", **options)


def theirs(original, path, number):
    kinds = original.mapping
    state = {key: kinds.ShardedTensor.from_rank_offsets(key, value) for key, value in tensors(number).items()}
    state["extra"] = kinds.ShardedObject("decoder._extra_state", {"amax": number}, (1,), (0,))
    path.mkdir()
    original.serialization.save(state | COMMON, str(path))


def test_it_loads_what_is_written_and_written_over(original, one_rank, tmp_path):
    path = tmp_path / "c"
    for number in (1, 2):
        report = ours(path, number)
        assert report.format == "megatron"
        assert_loads(original, path, number)
        assert (path / "metadata.json").stat().st_size == 119
        names = {file.name for file in path.iterdir()}
        assert {".metadata", "common.pt", "metadata.json", ".lock"} < names and len(names) == 6, names
    assert original.serialization.load_common_state_dict(str(path))["iteration"] == 7


def test_it_loads_what_was_converted_in_both_directions(original, one_rank, tmp_path):
    theirs(original, tmp_path / "theirs", 3)
    shardwright.convert(tmp_path / "theirs", tmp_path / "native", format="native")
    shardwright.convert(tmp_path / "native", tmp_path / "again", format="megatron")
    shardwright.convert(tmp_path / "theirs", tmp_path / "direct", format="megatron")
    for name in ("theirs", "again", "direct"):
        assert_loads(original, tmp_path / name, 3)
    with shardwright.open(tmp_path / "theirs") as first, shardwright.open(tmp_path / "again") as second:
        assert first.digest("sha256") == second.digest("sha256")
        report = second.verify(deep=True).to_dict()
        assert report["digests"] and not report["damage"]


def test_a_save_takes_the_place_of_what_megatron_core_wrote(original, one_rank, tmp_path):
    path = tmp_path / "c"
    theirs(original, path, 4)
    (path / "log.txt").write_text("of the user")
    ours(path, 5)
    assert_loads(original, path, 5)
    assert not (path / "__0_0.distcp").exists() and (path / "log.txt").read_text() == "of the user"


def test_without_common_entries_the_common_state_is_empty(original, one_rank, tmp_path):
    ours(tmp_path / "c", 6, common=None)
    assert_loads(original, tmp_path / "c", 6, common={})


@pytest.mark.parametrize("common", ["file", "object"])
def test_both_forms_of_the_common_state_are_read_again(tmp_path, common):
    path = tmp_path / "c"
    ours(path, 8, common=COMMON)
    shardwright.torch.save({"common": COMMON} | tensors(8), path, format="megatron", common=common)
    assert (path / "metadata.json").stat().st_size == {"file": 119, "object": 63}[common]
    assert (path / "common.pt").exists() == (common == "file")
    with shardwright.open(path) as checkpoint:
        names = set(checkpoint.objects())
        assert ("common.iteration" in names) == (common == "file") and ("common_state/shard_0_1" in names) == (common == "object")
        report = checkpoint.verify(deep=True).to_dict()
        assert report["digests"] and not report["damage"]


# ---- integrity.json ----

def listed(path):
    said = json.loads((path / "integrity.json").read_text())
    assert said["algorithm"] == "sha256"
    return said["files"]


def hashed(path):
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in path.iterdir()
            if file.name not in (".lock", "integrity.json")}


def test_a_save_lists_the_sha256_of_what_lies_there(original, one_rank, tmp_path):
    path = tmp_path / "c"
    for number, common in ((1, "file"), (2, "object")):
        ours(path, number, common=COMMON)
        assert not (path / "integrity.json").exists()
        shardwright.torch.save({"common": COMMON, "decoder._extra_state/shard_0_1": [{"amax": number}]} | tensors(number), path,
                               format="megatron", common=common, integrity="sha256")
        assert listed(path) == hashed(path) and len(listed(path)) == 5
        shardwright.torch.megatron.verify_integrity_manifest(path)
        if common == "file":
            assert_loads(original, path, number)
    with pytest.raises(shardwright.errors.InvalidArgumentError, match="integrity"):
        shardwright.torch.save(tensors(1), tmp_path / "native", integrity="sha256")


def damage_of(path):
    """What is said of each damaged file; one that opening needs is told by that."""
    try:
        with shardwright.open(path) as checkpoint:
            return [each["message"] for each in checkpoint.find_damage(deep=True).to_dict()["damage"]]
    except shardwright.errors.DataLossError as error:
        return [str(error)]


def test_a_conversion_lists_them_and_a_damaged_byte_is_named(tmp_path):
    shardwright.torch.save(tensors(9), tmp_path / "native")
    path = tmp_path / "c"
    shardwright.convert(tmp_path / "native", path, format="megatron", integrity="sha256")
    assert listed(path) == hashed(path)
    for file in path.iterdir():
        if file.name in (".lock", ".metadata", "integrity.json", "metadata.json"):
            continue
        whole = file.read_bytes()
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        assert any(file.name in each for each in damage_of(path)), file.name
        with pytest.raises(shardwright.torch.megatron.CheckpointingException, match=file.name.replace(".", r"\.")):
            shardwright.torch.megatron.verify_integrity_manifest(path)
        file.write_bytes(whole)
    with shardwright.open(path) as checkpoint:
        assert not checkpoint.verify(deep=True).to_dict()["damage"]


# ---- entries that are taken out ----

def removed_from(path, prefix):
    before = shardwright.open(path).digest("sha256")
    removed = shardwright.remove_entries(path, prefix, apply=True).removed
    assert removed and all(entry["name"].startswith(prefix) for entry in removed)
    with shardwright.open(path) as checkpoint:
        left = checkpoint.digest("sha256")
        assert not checkpoint.verify(deep=True).damage
    assert left == {name: digest for name, digest in before.items() if not name.startswith(prefix)}


def without(number, prefix):
    return {key: value for key, value in tensors(number).items() if not key.startswith(prefix)}


@pytest.mark.parametrize("writer", ["ours", "theirs"])
def test_it_loads_what_entries_were_taken_out_of(original, one_rank, tmp_path, writer):
    path = tmp_path / "c"
    if writer == "ours":
        ours(path, 1, integrity="sha256")
    else:
        theirs(original, path, 1)
    removed_from(path, "decoder.bias")
    if writer == "ours":
        assert listed(path) == hashed(path)
    loaded = load(original, path, without(1, "decoder.bias"))
    assert loaded.pop("extra") == {"amax": 1}
    for key, value in without(1, "decoder.bias").items():
        assert same(loaded.pop(key), value), key
    assert loaded.keys() == COMMON.keys() and all(same(loaded[key], COMMON[key]) for key in COMMON)
    gone = {"b": original.mapping.ShardedTensor.from_rank_offsets("decoder.bias", torch.empty(5).bfloat16())}
    with pytest.raises(BaseException, match="decoder.bias"):  # torch's CheckpointException is one
        original.serialization.load(gone, str(path))


@pytest.mark.parametrize("writer", ["ours", "torch"])
def test_torch_loads_what_entries_were_taken_out_of(tmp_path, writer):
    import torch.distributed.checkpoint as dcp
    path, state = tmp_path / "c", tensors(2) | {"step": 7}
    if writer == "ours":
        shardwright.torch.save(state, path, format="torch-dcp")
    else:
        dcp.save(state, checkpoint_id=path, no_dist=True)
    before = dcp.FileSystemReader(path).read_metadata()
    removed_from(path, "decoder.")
    after = dcp.FileSystemReader(path).read_metadata()
    gone = {key for key in before.state_dict_metadata if key.startswith("decoder.")}
    assert set(before.state_dict_metadata) - set(after.state_dict_metadata) == gone
    for field in ("state_dict_metadata", "planner_data"):
        assert getattr(after, field) == {key: value for key, value in getattr(before, field).items() if key not in gone}
    assert after.storage_data == {at: place for at, place in before.storage_data.items() if at.fqn not in gone}
    same_save = [(each.version, each.storage_meta.save_id, each.storage_meta.checkpoint_id) for each in (before, after)]
    assert same_save[0] == same_save[1]
    target = {key: torch.zeros_like(value) for key, value in without(2, "decoder.").items()} | {"step": 0}
    dcp.load(target, checkpoint_id=path, no_dist=True)
    assert target.pop("step") == 7 and all(same(target[key], value) for key, value in without(2, "decoder.").items())


@pytest.mark.parametrize("case", ["mc12_tp2_w2", "mc12_flat_optimizer_w4", "mc16_tp2_w2", "mc19_tp2_w2"])
def test_plans_of_ranks_go_with_the_entries_that_they_describe(tmp_path, case):
    """Megatron takes an index whose plans are those of its next save for the index of that save. All else stays."""
    path = tmp_path / "c"
    shutil.copytree(GOLDEN / case / "ckpt", path)
    before = read_metadata(path)
    prefix = min(key for key, entry in before.state_dict_metadata.items() if hasattr(entry, "chunks"))
    removed_from(path, prefix)
    after = read_metadata(path)
    assert set(vars(before)) - set(vars(after)) == {"all_local_plans"} & set(vars(before))
    for field, entries in vars(before).items():
        if field != "all_local_plans" and isinstance(entries, dict):
            left = {key: value for key, value in entries.items() if not getattr(key, "fqn", key).startswith(prefix)}
            assert len(left) < len(entries) or field == "mcore_data"
            assert getattr(after, field) == left, field
        elif field not in ("all_local_plans", "storage_meta"):  # which says anew which load it is
            assert getattr(after, field) == entries, field


# ---- bytes of the common state ----

def test_bytes_of_the_common_state_come_from_files_as_well(original, one_rank, tmp_path):
    """Of a conversion: the object is a part of a file, not of a state in memory."""
    blob = bytes(i * 31 % 251 for i in range(502)) * 6000  # 3 MB
    state = tensors(4) | {"common": {"iteration": 7, "blob": blob, "nested": [{"small": b"\x00\xff"}]}}
    shardwright.torch.save(state, tmp_path / "native")
    shardwright.convert(tmp_path / "native", tmp_path / "converted", format="megatron")
    shardwright.torch.save(state, tmp_path / "saved", format="megatron")
    for path in (tmp_path / "converted", tmp_path / "saved"):
        assert torch.load(path / "common.pt", weights_only=True) == state["common"]
        assert original.serialization.load_common_state_dict(str(path)) == state["common"]
        with shardwright.open(path) as checkpoint:
            assert checkpoint.object("common.blob") == blob
            with checkpoint.open_object("common.blob") as stream:
                stream.seek(1 << 18)
                assert stream.read(100) == blob[1 << 18:(1 << 18) + 100]
    shardwright.convert(tmp_path / "saved", tmp_path / "again", format="native")
    with shardwright.open(tmp_path / "again") as checkpoint:
        assert checkpoint.object("common.blob") == blob and checkpoint.object("common.nested.0.small") == b"\x00\xff"
