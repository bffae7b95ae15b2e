# SPDX-License-Identifier: Apache-2.0
"""`save` and `load` of shardwright.torch.dcp in one process: where checkpoints lie, what states may hold, what is raised."""
import collections
import copy
import datetime
import io
import os
import pathlib
import pickle
import subprocess
import sys
import warnings

import numpy
import pytest
import torch
import torch.distributed.checkpoint as theirs
from torch.distributed.checkpoint._extension import ExtensionRegistry, StreamTransformExtension
from torch.distributed.checkpoint.metadata import Metadata

import shardwright
import shardwright.torch.dcp as dcp

FORMATS = ["torch-dcp", "native"]
pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled", "ignore:Detected an existing checkpoint")


def state(start=0.0):
    return {"model": {"w": torch.arange(12.0).reshape(3, 4) + start, "t": (torch.arange(6.0).reshape(2, 3) + start).t()},
            "optimizer": [{"m": torch.full((2,), start)}, {"step": int(start), "note": "x"}], "epoch": int(start)}


def emptied():
    return {"model": {"w": torch.zeros(3, 4), "t": torch.zeros(3, 2)},
            "optimizer": [{"m": torch.zeros(2)}, {"step": -1, "note": ""}], "epoch": -1}


def same(a, b):
    left, right = dcp.planner.flatten_state_dict(a)[0], dcp.planner.flatten_state_dict(b)[0]
    assert list(left) == list(right)
    for key, value in left.items():
        assert torch.equal(value, right[key]) if isinstance(value, torch.Tensor) else value == right[key], key


# ---- places ----

@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kind", [str, pathlib.Path])
def test_a_checkpoint_goes_round_and_is_replaced(format, kind, tmp_path):
    for start in (1.0, 2.0):
        found = dcp.save(state(start), checkpoint_id=kind(tmp_path / "c"), format=format)
        assert isinstance(found, Metadata) and type(found.state_dict_metadata) is dict and type(found) is Metadata
        target = emptied()
        assert dcp.load(target, checkpoint_id=kind(tmp_path / "c")) is None
        same(target, state(start))


@pytest.mark.parametrize("format", FORMATS)
def test_every_reader_reads_what_is_saved(format, tmp_path):
    dcp.save(state(3.0), checkpoint_id=tmp_path / "c", format=format)
    for load, reader in ((dcp.load, dcp.FileSystemReader), (theirs.load, dcp.FileSystemReader),
                         *([(theirs.load, theirs.FileSystemReader), (dcp.load, theirs.FileSystemReader)]
                           if format == "torch-dcp" else [])):
        target = emptied()
        load(target, storage_reader=reader(tmp_path / "c"))
        same(target, state(3.0))


def test_readers_and_writers_take_another_place_by_the_id(tmp_path):
    writer, reader = dcp.FileSystemWriter(tmp_path / "nowhere"), dcp.FileSystemReader(tmp_path / "nowhere")
    dcp.save(state(1.0), checkpoint_id=tmp_path / "c", storage_writer=writer)
    target = emptied()
    dcp.load(target, checkpoint_id=tmp_path / "c", storage_reader=reader)
    same(target, state(1.0))
    assert writer.checkpoint_id == tmp_path / "c" and not (tmp_path / "nowhere").exists()


def test_a_place_must_be_given_and_known():
    for act in (dcp.save, dcp.load):
        with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified"):
            act({})
        with pytest.raises(RuntimeError, match="Cannot detect which StorageReader or StorageWriter to use"):
            act({}, checkpoint_id="nosuchscheme://bucket/c")


def test_the_second_argument_may_be_the_storage_as_before(tmp_path):
    with pytest.warns(UserWarning, match="argument order"):
        dcp.save(state(1.0), dcp.FileSystemWriter(tmp_path / "c"))
    target = emptied()
    with pytest.warns(UserWarning, match="argument order"):
        dcp.load(target, dcp.FileSystemReader(tmp_path / "c"))
    same(target, state(1.0))


@pytest.mark.parametrize("format", FORMATS)
def test_urls_go_to_fsspec(format):
    url = f"memory://place/{format}"
    for start in (1.0, 2.0):
        dcp.save(state(start), checkpoint_id=url, format=format)
        for storage in ({"checkpoint_id": url}, {"storage_reader": dcp.FsspecReader(url)}):
            target = emptied()
            dcp.load(target, **storage)
            same(target, state(start))
    if format == "torch-dcp":
        target = emptied()
        theirs.load(target, checkpoint_id=url)
        same(target, state(2.0))
    assert dcp.save(state(3.0), storage_writer=dcp.FsspecWriter(url), format=format).state_dict_metadata


def test_what_torch_left_behind_a_url_is_read():
    theirs.save(state(4.0), checkpoint_id="memory://place/torch")
    target = emptied()
    dcp.load(target, checkpoint_id="memory://place/torch")
    same(target, state(4.0))


@pytest.mark.parametrize("format", FORMATS)
def test_a_writer_that_must_not_overwrite_refuses(format, tmp_path):
    def writer():
        return dcp.FileSystemWriter(tmp_path / "c", overwrite=False)

    (tmp_path / "c").mkdir()
    dcp.save(state(1.0), storage_writer=writer(), format=format)
    with pytest.raises(RuntimeError, match="Checkpoint already exists and self.overwrite=False") as caught:
        dcp.save(state(2.0), storage_writer=writer(), format=format)
    assert isinstance(caught.value, shardwright.AlreadyExistsError) and isinstance(caught.value, dcp.CheckpointException)
    target = emptied()
    dcp.load(target, checkpoint_id=tmp_path / "c")
    same(target, state(1.0))


# ---- metadata ----

@pytest.mark.parametrize("format", FORMATS)
def test_the_metadata_is_read_when_it_is_looked_at(format, tmp_path):
    found = dcp.save(state(1.0), checkpoint_id=tmp_path / "c", format=format)
    again = copy.deepcopy(found)
    assert again == found and pickle.loads(pickle.dumps(found)) == found
    assert found.planner_data["optimizer.0.m"] == ("optimizer", 0, "m")
    assert found.state_dict_metadata["model.t"].size == torch.Size([3, 2])
    assert "Metadata(" in repr(dcp.save(state(1.0), checkpoint_id=tmp_path / "d", format=format))
    changed = dcp.save(state(1.0), checkpoint_id=tmp_path / "e", format=format)
    changed.version = "mine"
    assert changed.version == "mine" and "epoch" in changed.state_dict_metadata


def test_the_metadata_of_a_save_that_was_replaced_is_not_that_of_another(tmp_path):
    first = dcp.save({"a": torch.ones(2)}, checkpoint_id=tmp_path / "c", format="native")
    dcp.save({"b": torch.ones(2)}, checkpoint_id=tmp_path / "c", format="native")
    with pytest.raises(shardwright.FailedPreconditionError, match="has been replaced since"):
        first.state_dict_metadata  # noqa: B018 - the look itself


# ---- values ----

ODD = {"tuple": (1, "a", None), "list": [1, [2, 3]], "set": {1, 2}, "bytes": b"\x00x", "nan": float("nan"), "inf": float("inf"),
       "big": 10**30, "complex": 1 + 2j, "none": None, "bool": True, "path": pathlib.Path("/a/b"), "size": torch.Size([1, 2]),
       "dtype": torch.bfloat16, "ordered": collections.OrderedDict(a=(1,)), "date": datetime.date(2026, 1, 2), "empty": "",
       "array": numpy.arange(3), "scalar": numpy.float32(2.5), "surrogate": "\ud800", "deep": [{"x": (torch.ones(2), 1)}]}


@pytest.mark.parametrize("format", FORMATS)
def test_values_of_many_kinds_come_back(format, tmp_path):
    dcp.save(dict(ODD), checkpoint_id=tmp_path / "c", format=format)
    target = dict.fromkeys(ODD) | {"deep": [{"x": None}], "ordered": collections.OrderedDict(a=None)}
    dcp.load(target, checkpoint_id=tmp_path / "c")
    for name, value in ODD.items():
        if name == "nan":
            assert target[name] != target[name]
        elif name == "array":
            assert numpy.array_equal(target[name], value)
        elif name == "deep":
            assert torch.equal(target[name][0]["x"][0], torch.ones(2)) and target[name][0]["x"][1] == 1
        else:
            assert target[name] == value and type(target[name]) is type(value), name


class Colour:
    def __init__(self):
        self.name = "red"

    def __eq__(self, other):
        return type(other) is Colour and vars(other) == vars(self)


@pytest.mark.parametrize("format", FORMATS)
def test_classes_of_the_program_need_to_be_allowed(format, tmp_path):
    dcp.save({"c": Colour()}, checkpoint_id=tmp_path / "c", format=format)
    target = {"c": None}
    with pytest.raises(shardwright.PermissionDeniedError, match=r"Colour.*allow_types=\[\.\.\.\].*trust_pickles=True") as caught:
        dcp.load(target, checkpoint_id=tmp_path / "c")
    assert isinstance(caught.value, dcp.CheckpointException) and target == {"c": None}
    for options in ({"allow_types": [Colour]}, {"trust_pickles": True}, {"planner": dcp.DefaultLoadPlanner(allow_types=[Colour])},
                    {"planner": dcp.DefaultLoadPlanner(trust_pickles=True)}):
        target = {"c": None}
        dcp.load(target, checkpoint_id=tmp_path / "c", **options)
        assert target == {"c": Colour()}


DTYPES = [torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.uint16, torch.uint64, torch.bool,
          torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu]


@pytest.mark.parametrize("format", FORMATS)
def test_dtypes_come_back_bit_by_bit(format, tmp_path):
    bits = {str(dtype): torch.arange(96, dtype=torch.uint8).view(dtype).reshape(2, -1).clone() if dtype != torch.bool
            else torch.tensor([[True, False]]) for dtype in DTYPES}
    dcp.save(bits, checkpoint_id=tmp_path / "c", format=format)
    for load in (dcp.load, theirs.load) if format == "torch-dcp" else (dcp.load,):
        target = {name: torch.zeros_like(value) for name, value in bits.items()}
        load(target, checkpoint_id=tmp_path / "c")
        for name, value in bits.items():
            assert torch.equal(target[name].view(torch.uint8), value.view(torch.uint8)), name


@pytest.mark.parametrize("format", FORMATS)
def test_packed_dtypes_come_back(format, tmp_path):
    packed = torch.arange(12, dtype=torch.uint8).view(torch.float4_e2m1fn_x2).reshape(3, 4)
    dcp.save({"p": packed}, checkpoint_id=tmp_path / "c", format=format)
    target = {"p": torch.zeros(3, 4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)}
    dcp.load(target, checkpoint_id=tmp_path / "c")
    assert torch.equal(target["p"].view(torch.uint8), packed.view(torch.uint8))


@pytest.mark.parametrize("format", FORMATS)
def test_targets_of_many_shapes_are_filled_where_they_lie(format, tmp_path):
    leaf = torch.nn.Parameter(torch.zeros(3, 4))
    backing = torch.zeros(8, 6)
    targets = {"leaf": leaf, "frozen": torch.nn.Parameter(torch.zeros(2), requires_grad=False), "columns": backing[::2, ::3],
               "turned": torch.zeros(4, 3).t(), "channels": torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last),
               "scalar": torch.tensor(0.0), "empty": torch.zeros(0, 3), "conj": torch.zeros(2, dtype=torch.complex64)}
    stored = {name: torch.randn(value.shape, dtype=value.dtype) for name, value in targets.items()}
    dcp.save({**stored, "conj": stored["conj"].conj()}, checkpoint_id=tmp_path / "c", format=format)
    before = {name: value.data_ptr() for name, value in targets.items()}
    state = dict(targets)
    dcp.load(state, checkpoint_id=tmp_path / "c")
    for name, value in targets.items():
        wanted = stored[name].conj().resolve_conj() if name == "conj" else stored[name]
        assert state[name] is value and value.data_ptr() == before[name] and torch.equal(value.detach(), wanted), name
    assert backing[1].abs().sum() == 0 and leaf.requires_grad


def test_targets_whose_elements_overlap_are_refused(tmp_path):
    dcp.save({"w": torch.ones(3)}, checkpoint_id=tmp_path / "c")
    with pytest.raises(ValueError, match="overlap"):
        dcp.load({"w": torch.zeros(1).expand(3)}, checkpoint_id=tmp_path / "c")


@pytest.mark.parametrize("format", FORMATS)
def test_tied_weights_and_views_are_saved_under_each_name(format, tmp_path):
    weight = torch.arange(6.0)
    dcp.save({"a": weight, "b": weight, "part": weight[2:4]}, checkpoint_id=tmp_path / "c", format=format)
    shared = torch.zeros(6)
    target = {"a": shared, "b": shared, "part": torch.zeros(2)}
    dcp.load(target, checkpoint_id=tmp_path / "c")
    assert torch.equal(shared, weight) and torch.equal(target["part"], weight[2:4])


@pytest.mark.parametrize("format", FORMATS)
def test_tensors_that_name_their_boxes_are_parts_of_larger_ones(format, tmp_path):
    local = torch.arange(12.0).reshape(4, 3)
    local.global_shape, local.global_offsets = (4, 3), ((0, 0), (2, 0))
    local.local_offsets, local.local_sizes = ((2, 0), (0, 0)), ((2, 3), (2, 3))
    dcp.save({"w": local}, checkpoint_id=tmp_path / "c", format=format)
    target = {"w": torch.zeros(4, 3)}
    dcp.load(target, checkpoint_id=tmp_path / "c")
    assert torch.equal(target["w"], torch.cat([local[2:], local[:2]]))


def test_sparse_tensors_are_refused_by_name(tmp_path):
    with pytest.raises(NotImplementedError, match="model.s is a tensor of the layout torch.sparse_coo"):
        dcp.save({"model": {"s": torch.eye(3).to_sparse(), "w": torch.ones(2)}}, checkpoint_id=tmp_path / "c")
    with pytest.raises(theirs.CheckpointException):
        theirs.save({"s": torch.eye(3).to_sparse()}, checkpoint_id=tmp_path / "t")


class Counter:
    def __init__(self, count):
        self.count = count

    def state_dict(self):
        return {"count": self.count, "t": torch.full((2,), float(self.count))}

    def load_state_dict(self, found):
        self.count = found["count"]
        assert torch.equal(found["t"], torch.full((2,), float(self.count)))


@pytest.mark.parametrize("format", FORMATS)
def test_stateful_values_give_and_take_their_states(format, tmp_path):
    dcp.save({"counter": Counter(3), "module": torch.nn.Linear(2, 2, bias=False)}, checkpoint_id=tmp_path / "c", format=format)
    counter, module = Counter(0), torch.nn.Linear(2, 2, bias=False)
    target = {"counter": counter, "module": module}
    dcp.load(target, checkpoint_id=tmp_path / "c")
    assert counter.count == 3 and target["counter"] is counter and target["module"] is module


# ---- what is wanted and what is stored ----

@pytest.mark.parametrize("format", FORMATS)
def test_what_does_not_fit_is_told_in_the_words_and_types_of_torch(format, tmp_path):
    dcp.save({"w": torch.ones(3), "n": 1}, checkpoint_id=tmp_path / "c", format=format)
    rows = [({"gone": torch.zeros(1)}, RuntimeError, shardwright.MissingNameError, "Missing key in checkpoint state_dict: gone."),
            ({"gone": 1}, RuntimeError, shardwright.MissingNameError, "Missing key in checkpoint state_dict: gone."),
            ({"w": torch.zeros(4)}, ValueError, shardwright.InvalidArgumentError,
             r"Size mismatch between saved torch.Size\(\[3\]\) and current: torch.Size\(\[4\]\) for w"),
            ({"w": 5}, ValueError, shardwright.InvalidArgumentError, "expected BytesStorageMetadata but found")]
    for target, kind, ours, text in rows:
        with pytest.raises(kind, match=text) as caught:
            dcp.load(target, checkpoint_id=tmp_path / "c")
        error = caught.value
        assert isinstance(error, dcp.CheckpointException) and isinstance(error, dcp.CheckpointError) and isinstance(error, ours)
        assert list(error.failures) == [0] and isinstance(error.failures[0][0], kind)
        again = pickle.loads(pickle.dumps(error))
        assert isinstance(again, kind) and isinstance(again, dcp.CheckpointException) and str(again) == str(error)
    with pytest.raises(AssertionError, match="metadata is None; global metadata read failed") as caught:
        dcp.load({"w": torch.zeros(3)}, checkpoint_id=tmp_path / "nothing")
    assert isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize("format", FORMATS)
def test_a_stored_object_replaces_a_tensor_of_the_state(format, tmp_path):
    dcp.save({"n": 7}, checkpoint_id=tmp_path / "c", format=format)
    target = {"n": torch.zeros(2)}
    dcp.load(target, checkpoint_id=tmp_path / "c")
    assert target == {"n": 7}


@pytest.mark.parametrize("format", FORMATS)
def test_partial_loads_and_casts_are_noted_with_the_planner(format, tmp_path, caplog):
    dcp.save({"w": torch.tensor([1.5, 2.7]), "other": 1}, checkpoint_id=tmp_path / "c", format=format)
    planner = dcp.DefaultLoadPlanner(allow_partial_load=True)
    target = {"w": torch.zeros(2, dtype=torch.int32), "gone": torch.ones(1)}
    dcp.load(target, checkpoint_id=tmp_path / "c", planner=planner)
    assert target["w"].tolist() == [1, 2] and target["gone"].tolist() == [1]
    assert planner.missing_keys == ["gone"] and planner.unexpected_keys == ["other"]
    assert planner.casts == {"w": (torch.float32, torch.int32)}
    assert [r.getMessage() for r in caplog.records if "cast" in r.getMessage()] == [
        "1 tensors are cast while they are loaded: w: torch.float32 to torch.int32"]
    with pytest.raises(ValueError, match="cast"):
        dcp.load({"w": torch.zeros(2, dtype=torch.int32)}, checkpoint_id=tmp_path / "c", cast="error")


def test_equal_names_are_refused(tmp_path):
    for format in FORMATS:
        with pytest.raises(ValueError, match="duplicated flatten key.*a.b"):
            dcp.save({"a.b": 1, "a": {"b": 2}}, checkpoint_id=tmp_path / "c", format=format)


def test_options_that_are_not_known_are_named(tmp_path):
    for options, text in (({"format": "zip"}, "format 'zip' is none of"), ({"verify_replicas": "maybe"}, "verify_replicas 'maybe'"),
                          ({"durable": True}, "no option 'durable'|durable")):
        with pytest.raises(ValueError, match=text):
            dcp.save({"w": torch.ones(1)}, checkpoint_id=tmp_path / "c", **options)
    with pytest.raises(ValueError, match="format"):
        dcp.save({"w": torch.ones(1)}, storage_writer=theirs.FileSystemWriter(tmp_path / "c"), format="native")
    with pytest.raises(ValueError, match="threads"):
        dcp.load({"w": torch.ones(1)}, storage_reader=theirs.FileSystemReader(tmp_path / "c"), threads=2)


def test_keys_of_old_checkpoints_are_found(tmp_path):
    state = {"a": {"b": 1}, "m": {"w": torch.ones(2)}}
    flat, paths = dcp.planner.flatten_state_dict(state, "2.3")

    class Old(dcp.DefaultSavePlanner):
        def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
            super().set_up_planner(state_dict, storage_meta, is_coordinator)
            self.state_dict, self.mappings = flat, paths

    dcp.save(state, checkpoint_id=tmp_path / "c", planner=Old())
    for planner in (None, dcp.DefaultLoadPlanner(allow_partial_load=True)):
        target = {"a": {"b": None}, "m": {"w": torch.zeros(2)}}
        dcp.load(target, checkpoint_id=tmp_path / "c", planner=planner)
        assert target["a"] == {"b": 1} and torch.equal(target["m"]["w"], torch.ones(2))


# ---- by keys, and other functions ----

@pytest.mark.parametrize("format", FORMATS)
def test_entries_are_loaded_by_key_and_prefix(format, tmp_path):
    load = dcp.state_dict_loader._load_state_dict_from_keys
    dcp.save(state(1.0), checkpoint_id=tmp_path / "c", format=format)
    same(load(checkpoint_id=tmp_path / "c"), state(1.0))
    assert set(load("model", checkpoint_id=tmp_path / "c")["model"]) == {"w", "t"}
    assert load({"epoch"}, checkpoint_id=tmp_path / "c") == {"epoch": 1}
    found = load({"model.w", "optimizer.1"}, checkpoint_id=tmp_path / "c")
    assert set(found) == {"model", "optimizer"} and list(found["model"]) == ["w"]


@pytest.mark.parametrize("format", FORMATS)
def test_files_of_torch_save_become_checkpoints_and_back(format, tmp_path):
    torch.save(state(2.0), tmp_path / "m.pt")
    dcp.format_utils.torch_save_to_dcp(tmp_path / "m.pt", tmp_path / "c")
    target = emptied()
    theirs.load(target, checkpoint_id=tmp_path / "c")
    same(target, state(2.0))
    dcp.save(state(3.0), checkpoint_id=tmp_path / "d", format=format)
    dcp.format_utils.dcp_to_torch_save(tmp_path / "d", tmp_path / "n.pt")
    same(torch.load(tmp_path / "n.pt", weights_only=False), state(3.0))
    assert sorted(os.listdir(tmp_path)) == ["c", "d", "m.pt", "n.pt"]
    target = emptied()
    dcp.load(target, checkpoint_id=tmp_path / "n.pt")
    same(target, state(3.0))


class Evil:
    def __reduce__(self):
        return os.system, ("exit 1",)


def test_conversions_run_nothing(tmp_path):
    torch.save({"e": Evil()}, tmp_path / "m.pt")
    with pytest.raises(shardwright.PermissionDeniedError, match="system"):
        dcp.format_utils.torch_save_to_dcp(tmp_path / "m.pt", tmp_path / "c")
    theirs.save({"e": Evil(), "w": torch.ones(1)}, checkpoint_id=tmp_path / "d")
    with pytest.raises(shardwright.PermissionDeniedError, match="system"):
        dcp.format_utils.dcp_to_torch_save(tmp_path / "d", tmp_path / "n.pt")
    assert not (tmp_path / "n.pt").exists() and not (tmp_path / "c").exists()
    with pytest.raises(RuntimeError, match="holds a list, no mapping"):
        torch.save([1], tmp_path / "l.pt")
        dcp.format_utils.torch_save_to_dcp(tmp_path / "l.pt", tmp_path / "c")


def test_the_program_of_conversions(tmp_path):
    def run(*arguments):
        return subprocess.run([sys.executable, "-m", "shardwright.torch.dcp.format_utils", *map(str, arguments)],
                              capture_output=True, text=True, check=False, timeout=120)

    torch.save(state(2.0), tmp_path / "m.pt")
    assert run("torch_to_dcp", tmp_path / "m.pt", tmp_path / "c").returncode == 0
    assert run("dcp_to_torch", tmp_path / "c", tmp_path / "n.pt").returncode == 0
    same(torch.load(tmp_path / "n.pt", weights_only=False), state(2.0))
    done = run("dcp_to_torch", tmp_path / "nothing", tmp_path / "x.pt")
    assert done.returncode == 0 and "No checkpoint found at" in done.stdout and not (tmp_path / "x.pt").exists()
    torch.save({"e": Evil()}, tmp_path / "evil.pt")
    done = run("torch_to_dcp", tmp_path / "evil.pt", tmp_path / "e")
    assert done.returncode == 4 and "system" in done.stderr and "RuntimeWarning" not in done.stderr


# ---- hostile and broken indexes ----

def test_an_index_that_would_call_something_is_refused_by_our_reader_inside_torch(tmp_path):
    dcp.save({"w": torch.ones(2)}, storage_writer=theirs.FileSystemWriter(tmp_path / "c"))
    with open(tmp_path / "c" / ".metadata", "rb") as file:
        metadata = pickle.load(file)
    metadata.planner_data = Evil()
    with open(tmp_path / "c" / ".metadata", "wb") as file:
        pickle.dump(metadata, file)
    for load, reader in ((theirs.load, dcp.FileSystemReader), (dcp.load, dcp.FileSystemReader)):
        with pytest.raises(dcp.CheckpointException, match="system"):
            load({"w": torch.zeros(2)}, storage_reader=reader(tmp_path / "c"))


def test_a_thread_of_a_writer_that_fails_fails_the_save(tmp_path):
    class Failing(dcp.DefaultSavePlanner):
        def resolve_data(self, write_item):
            if write_item.index.fqn == "w7":
                raise OSError("no bytes today")
            return super().resolve_data(write_item)

    tensors = {f"w{i}": torch.ones(100) for i in range(8)}
    for save in (theirs.save, dcp.save):
        with pytest.raises(theirs.CheckpointException, match="no bytes today"):
            save(tensors, storage_writer=dcp.FileSystemWriter(tmp_path / "c", thread_count=3), planner=Failing())
    assert not (tmp_path / "c" / ".metadata").exists()


def test_an_item_that_was_not_written_is_not_published(tmp_path):
    class Forgetful(dcp.FileSystemWriter):
        def write_data(self, plan, planner):
            future = super().write_data(plan, planner)
            kept = [result for result in future.value() if result.index.fqn != "b"]
            shorter = torch.futures.Future()
            shorter.set_result(kept)
            return shorter

    with pytest.raises(shardwright.DataLossError, match="b at .* was written by no rank"):
        dcp.save({"a": torch.ones(1), "b": torch.ones(1)}, storage_writer=Forgetful(tmp_path / "c"))


def test_one_process_is_told_once_as_torch_tells_it(tmp_path):
    for act in (lambda: dcp.save({"n": 1}, checkpoint_id=tmp_path / "c"), lambda: dcp.load({"n": 0}, checkpoint_id=tmp_path / "c")):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            act()
        texts = [w for w in caught if "torch.distributed is disabled" in str(w.message)]
        assert len(texts) == 1 and texts[0].filename == __file__


@pytest.mark.parametrize("save", [dcp.save, theirs.save])
def test_text_that_looks_like_a_dtype_or_device_stays_text_and_they_stay_what_they_are(save, tmp_path):
    values = {"text": "torch.bfloat16", "dtype": torch.bfloat16, "pair": ("cpu", torch.device("cpu"), torch.device("cuda", 1)),
              "deep": {"list": [torch.int8, "cuda:0"]}}
    save(copy.deepcopy(values), checkpoint_id=tmp_path / "c")
    target = {"text": None, "dtype": None, "pair": None, "deep": {"list": None}}
    dcp.load(target, checkpoint_id=tmp_path / "c")
    assert target == values and all(type(a) is type(b) for a, b in zip(target["pair"], values["pair"], strict=True))


@pytest.mark.parametrize("format", FORMATS)
def test_keys_that_are_no_text_are_filled_in_their_place(format, tmp_path):
    dcp.save({"layers": {0: {"w": torch.ones(2)}, 1: 5}}, checkpoint_id=tmp_path / "c", format=format)
    target = {"layers": {0: {"w": torch.zeros(2)}, 1: None}}
    dcp.load(target, checkpoint_id=tmp_path / "c")
    assert list(target["layers"]) == [0, 1] and target["layers"][1] == 5 and torch.equal(target["layers"][0]["w"], torch.ones(2))


# ---- streams that writers transform ----

class Shifting(StreamTransformExtension):
    """Adds 13 to each byte."""

    @staticmethod
    def from_descriptor(version):
        return Shifting()

    @staticmethod
    def registry_name():
        return "stream.shift"

    def get_descriptor(self):
        return "stream.shift/1"

    def transform_to(self, output):
        class Shifted(io.RawIOBase):
            def write(self, data):
                output.write(bytes((byte + 13) % 256 for byte in bytes(data)))
                return len(data)

        return Shifted()

    def transform_from(self, input):
        return io.BytesIO(bytes((byte - 13) % 256 for byte in input.read(-1)))


@pytest.mark.parametrize("save", [dcp.save, theirs.save])
def test_items_behind_a_transform_are_read_by_its_code(save, tmp_path, monkeypatch):
    kind = dcp.FileSystemWriter if save is dcp.save else theirs.FileSystemWriter
    save(state(1.0), storage_writer=kind(tmp_path / "c", _extensions=[Shifting()]))
    registry = ExtensionRegistry()
    registry.extensions["stream.shift"] = Shifting
    for load in (dcp.load, theirs.load):
        target = emptied()
        load(target, storage_reader=dcp.FileSystemReader(tmp_path / "c", registry))
        same(target, state(1.0))
    with pytest.raises(ValueError, match="Unknown extension"):
        dcp.load(emptied(), checkpoint_id=tmp_path / "c")
    monkeypatch.setattr(ExtensionRegistry, "from_descriptor_list", registry.from_descriptor_list)
    target = emptied()
    dcp.load(target, checkpoint_id=tmp_path / "c")
    same(target, state(1.0))


# ---- the end of a program ----

@pytest.mark.parametrize("stager", ["None", "dcp.staging.DefaultStager(dcp.staging.StagingOptions(False, False, True, False))"])
@pytest.mark.parametrize("format", FORMATS)
def test_a_program_that_ends_keeps_the_save_that_it_began(stager, format, tmp_path):
    code = (f"import torch, shardwright.torch.dcp as dcp\n"
            f"dcp.async_save({{'w': torch.arange(1000000.0)}}, checkpoint_id={str(tmp_path / 'c')!r}, format={format!r}, "
            f"async_stager={stager})\n")
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)
    target = {"w": torch.zeros(1000000)}
    dcp.load(target, checkpoint_id=tmp_path / "c")
    assert torch.equal(target["w"], torch.arange(1000000.0))


def test_the_planner_of_torch_for_sharded_optimizers_runs_nothing(tmp_path):
    from torch.distributed.checkpoint.optimizer import _ReaderWithOffset
    theirs.save({"evil": Evil(), "lr": 0.5}, checkpoint_id=tmp_path / "c")
    reader = dcp.optimizer._Careful(dcp.FileSystemReader(tmp_path / "c"))
    target = {"lr": 0}
    theirs.load(target, storage_reader=reader, planner=_ReaderWithOffset({}))
    assert target == {"lr": 0.5}
    with pytest.raises(theirs.CheckpointException, match="system"):
        theirs.load({"evil": None}, storage_reader=reader, planner=_ReaderWithOffset({}))


@pytest.mark.parametrize("load", [dcp.load, theirs.load])
def test_checkpoints_of_megatron_are_read_as_what_their_index_of_torch_says(load, tmp_path):
    theirs.save(state(1.0), checkpoint_id=tmp_path / "c")
    (tmp_path / "c" / "metadata.json").write_text('{"sharded_backend": "torch_dist", "sharded_backend_version": 1}')
    target = emptied()
    load(target, storage_reader=dcp.FileSystemReader(tmp_path / "c"))
    same(target, state(1.0))
