# SPDX-License-Identifier: Apache-2.0
"""metadata.json, common.pt and integrity.json of a checkpoint, in one process."""
import json
import pathlib
import types

import pytest
import shardwright
import shardwright.torch.megatron as ours
import torch


class Stranger:
    """A class that no list allows."""

    def __eq__(self, other):
        return type(other) is Stranger


def state(fill=1.0, **common):
    return {"w": ours.ShardedTensor.from_rank_offsets("w", torch.full((4,), fill)), **common}


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "c"
    made.mkdir()
    return made


# ---- metadata.json ----

def test_the_marker_says_what_wrote_a_checkpoint(folder):
    assert ours.maybe_load_config(folder) is None and ours.maybe_load_config("") is None
    ours.save_config(ours.CheckpointingConfig("torch_dist", 1), folder)
    assert ours.maybe_load_config(folder) == ours.CheckpointingConfig("torch_dist", 1, "torch", 1)
    assert len((folder / "metadata.json").read_bytes()) == 119 and [p.name for p in folder.iterdir()] == ["metadata.json"]
    (folder / "metadata.json").write_text('{"sharded_backend": "zarr", "later": 5}')
    assert ours.maybe_load_config(folder) == ours.CheckpointingConfig("zarr", 1, "torch", 1)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"sharded_backend": 5}'])
def test_a_torn_marker_is_none(folder, content):
    (folder / "metadata.json").write_text(content)
    assert not ours.check_is_distributed_checkpoint(folder)
    with pytest.raises(ours.CheckpointingException, match="is not a distributed checkpoint"):
        ours.load({}, folder)


def test_other_backends_are_refused_by_name(folder):
    ours.save(state(), folder)
    ours.save_config(ours.CheckpointingConfig("zarr", 1), folder)
    with pytest.raises(ours.CheckpointingException, match=r"load_sharded of \('zarr', 1\); there are \('torch_dist', 1\)"):
        ours.load(state(), folder)


# ---- common.pt ----

def test_objects_of_known_and_allowed_classes_come_back(folder):
    common = {"space": types.SimpleNamespace(a=[1, {"b": (2, None)}]), "path": pathlib.PosixPath("/x"), "t": torch.arange(3)}
    ours.save(state(**common), folder)
    found = ours.load(state(0.0), folder)
    assert {name: found[name] for name in ("space", "path")} == {name: common[name] for name in ("space", "path")}
    assert torch.equal(found["t"], torch.arange(3))
    ours.save(state(own=Stranger()), folder)
    for call in (lambda **options: ours.load(state(0.0), folder, **options),
                 lambda **options: ours.load_common_state_dict(folder, **options)):
        with pytest.raises(shardwright.errors.PermissionDeniedError, match="Stranger"):
            call()
        assert call(allow_types=[Stranger])["own"] == call(trust_pickles=True)["own"] == Stranger()


@pytest.mark.parametrize("layout", ["file", "object"])
def test_objects_of_a_request_are_trusted_as_the_common_state_is(folder, layout):
    tree = {"o": ours.ShardedObject("o", Stranger(), (1,), (0,)), "own": Stranger()}
    ours.save(tree, folder, common_layout=layout)
    assert (folder / "common.pt").exists() == (layout == "file")
    request = {"o": ours.ShardedObject("o", None, (1,), (0,))}
    with pytest.raises(shardwright.errors.ShardwrightError, match="Stranger"):
        ours.load(request, folder)
    found = ours.load(request, folder, allow_types=[Stranger])
    assert found == {"o": Stranger(), "own": Stranger()}


def test_a_damaged_common_state_is_named(folder):
    ours.save(state(iteration=1), folder)
    (folder / "common.pt").write_bytes(b"PK damaged")
    with pytest.raises(ours.CheckpointingException, match="common.pt") as found:
        ours.load(state(), folder)
    assert isinstance(found.value, shardwright.errors.DataLossError)
    torch.save([1], folder / "common.pt")
    with pytest.raises(ours.CheckpointingException, match="holds a list, no dict"):
        ours.load_common_state_dict(folder)


# ---- integrity.json ----

def test_a_flipped_byte_and_a_missing_file_are_named(folder):
    ours.save(state(iteration=1), folder, verify_integrity=True)
    said = json.loads((folder / "integrity.json").read_text())
    assert said["algorithm"] == "sha256" and {"common.pt", "metadata.json", ".metadata"} <= set(said["files"])
    assert "integrity.json" not in said["files"]
    (folder / "extra").write_text("of no matter")
    assert ours.load(state(0.0), folder, verify_integrity=True)["iteration"] == 1
    data = next(folder.glob("*.distcp"))
    whole = data.read_bytes()
    data.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ours.CheckpointingException, match=data.name) as found:
        ours.load(state(0.0), folder, verify_integrity=True)
    assert said["files"][data.name][:16] in str(found.value) and said["files"][data.name] not in str(found.value)
    data.write_bytes(whole)
    ours.verify_integrity_manifest(folder)
    (folder / "common.pt").unlink()
    with pytest.raises(ours.CheckpointingException, match="common.pt is missing"):
        ours.verify_integrity_manifest(folder)


def test_a_manifest_that_is_absent_or_unknown_is_told(folder):
    ours.save(state(), folder, verify_integrity=True)
    for content, words in (("{", "cannot be read"), ('{"algorithm": "md5", "files": {}}', "md5"), ('{"algorithm": "sha256"}', "files")):
        (folder / "integrity.json").write_text(content)
        with pytest.raises(ours.CheckpointingException, match=words):
            ours.load(state(), folder, verify_integrity=True)
    ours.save(state(), folder)
    assert not (folder / "integrity.json").exists(), "it would speak of other files"
    with pytest.raises(ours.CheckpointingException, match="verify_integrity=True"):
        ours.load(state(), folder, verify_integrity=True)


def test_removal_keeps_the_manifest_true(folder):
    tree = state(iteration=1) | {"rows": ours.ShardedTensor.from_rank_offsets("rows", torch.ones(3))}
    ours.save(tree, folder, ours.TorchDistSaveShardedStrategy(separation_hint="rows"), verify_integrity=True)
    ours.remove_sharded_tensors(folder, "rows")
    ours.verify_integrity_manifest(folder)
    assert set(ours.load_tensors_metadata(folder)) == {"w"}


def test_removal_skips_what_has_no_files_or_no_entries(folder):
    ours.save(state(iteration=1), folder)
    with pytest.warns(UserWarning, match="no files.*remove_entries"):
        ours.remove_sharded_tensors(folder, "w")
    (folder / "w__0_0.distcp").write_bytes(b"of somebody")
    ours.remove_sharded_tensors(folder, "w")
    assert not ours.load_tensors_metadata(folder) and (folder / "w__0_0.distcp").exists(), "the index never named it"
    with pytest.warns(UserWarning, match="no entries"):
        ours.remove_sharded_tensors(folder, "w")
    assert ours.load_common_state_dict(folder)["iteration"] == 1


# ---- urls, names ----

def test_checkpoints_lie_behind_other_urls_too(tmp_path):
    pytest.importorskip("fsspec")
    url = f"memory://{tmp_path.name}/c"
    ours.save(state(2.0, iteration=1), url)
    assert torch.equal(ours.load(state(0.0), url, strict="raise_all")["w"], torch.full((4,), 2.0))


def test_engines_of_saves_in_the_background_have_both_names():
    for name in ("nvrx", "mcore"):
        found, table = ours.get_async_strategy(name)
        assert found == name and table["AsyncCallsQueue"] is ours.AsyncCallsQueue and table["AsyncRequest"] is ours.AsyncRequest
    assert ours.get_async_strategy(module="AsyncRequest")[1] == {"AsyncRequest": ours.AsyncRequest}
    with pytest.raises(TypeError, match="other"):
        ours.get_async_strategy("other")


def test_strategies_are_registered_by_backend(monkeypatch):
    from shardwright.torch.megatron.strategies import base
    monkeypatch.setattr(base, "_strategies", {})
    action = ours.StrategyAction
    assert isinstance(ours.get_default_strategy(action.LOAD_COMMON, "torch", 1), ours.TorchCommonLoadStrategy)
    assert isinstance(ours.get_default_strategy(action.SAVE_SHARDED, "torch_dist", 1), ours.TorchDistSaveShardedStrategy)
    monkeypatch.setattr(base, "_strategies", {})
    ours.register_default_strategy(action.LOAD_SHARDED, "mine", 2, ours.TorchDistLoadShardedStrategy())
    assert ours.get_default_strategy(action.LOAD_SHARDED, "torch_dist", 1) is not ours.get_default_strategy(action.LOAD_SHARDED, "mine", 2)
    with pytest.raises(ours.CheckpointingException, match="mine"):
        ours.get_default_strategy(action.LOAD_SHARDED, "other", 1)


def test_foreign_strategies_get_plain_states_and_lose_the_marker_first(folder):
    seen = []

    class Foreign:
        backend, version, can_handle_sharded_objects = "mine", 3, True

        def save(self, sharded_state_dict, checkpoint_dir):
            seen.append((set(sharded_state_dict), ours.check_is_distributed_checkpoint(checkpoint_dir)))

    ours.save(state(iteration=1), folder)
    ours.save(state(iteration=2), folder, Foreign())
    assert seen == [({"w"}, False)] and ours.maybe_load_config(folder) == ours.CheckpointingConfig("mine", 3)
    with pytest.raises(ours.CheckpointingException, match="non-async"):
        ours.save(state(), folder, Foreign(), async_sharded_save=True)
    Foreign.can_handle_sharded_objects = False
    with pytest.raises(ours.CheckpointingException, match="takes no ShardedObjects"):
        ours.save({"o": ours.ShardedObject("o", 1, (1,), (0,))}, folder, Foreign())
