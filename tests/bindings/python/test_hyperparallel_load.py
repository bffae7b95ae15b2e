# SPDX-License-Identifier: Apache-2.0
"""StandardLoadPlanner: what is planned, refused and put back. "The original" in docstrings: seen by running
HyperParallel 0.1.0."""
import io
import pickle

import numpy as np
import pytest
import shardwright
from shardwright.errors import (DataLossError, FailedPreconditionError, InvalidArgumentError, MissingNameError,
                                PermissionDeniedError, UnimplementedError)
from shardwright.hyperparallel import (ChunkStorageMetadata, IncompleteTensorError, LoadItemType, Metadata,
                                          MetadataIndex, MissingEntryError, ReadItem, StandardLoadPlanner,
                                          TensorProperties, TensorStorageMetadata, UnknownNameError, UnsafePickleError,
                                          create_chunk_list_for_tensor, decode_object, encode_object)
from hyperparallel_words import Described, Distributed, LayoutObject, load_into, rows, save_world, stored


def saved(*states, **options):
    """Metadata and held values of a saved world."""
    planners, plans, metadata = save_world(states, **options)
    return metadata, stored(planners, plans)


def configured(state, metadata, rank=0, **options):
    planner = StandardLoadPlanner(**options)
    planner.configure_planner(state, metadata, rank=rank)
    return planner


def tensor(values, dtype="f4"):
    return np.array(values, dtype=dtype)


def whole(shape, layout=None):
    """A destination over a layout of one row of ranks."""
    return Distributed(np.full(shape, -1, "f4"), shape, layout)


# ---- round trips ----

def test_a_world_is_read_by_a_world_of_another_size():
    full = np.arange(24, dtype="f4").reshape(8, 3)
    states = [{"w": Distributed(full[2 * r:2 * r + 2], (8, 3), rows(range(4))), "c": tensor([1, 2]), "step": 7}
              for r in range(4)]
    metadata, held = saved(*states)
    for rank in range(2):
        target = {"w": Distributed(np.zeros((4, 3), "f4"), (8, 3), rows(range(2))), "c": tensor([0, 0]), "step": None}
        load_into(target, metadata, held, rank)
        assert target["w"].local.tolist() == full[4 * rank:4 * rank + 4].tolist()
        assert target["c"].tolist() == [1, 2] and target["step"] == 7


def test_objects_come_back_as_they_were():
    """K11: in the original `bytes` are written raw and read as a pickle, which fails."""
    values = {
        "raw": b"\x80\x04.\x00", "text": "gr\u00fcn\n", "none": None, "int": 2**80, "float": float("inf"),
        "tuple": (1, [2, {"a": 3}]), "keys": {1: "one", "$x": 2}, "flag": True
    }
    metadata, held = saved(values)
    target = dict.fromkeys(values)
    load_into(target, metadata, held)
    assert target == values and all(type(target[key]) is type(values[key]) for key in values)
    assert all(data.startswith(b"SHWO\x01") for data in held.values())


def test_nested_states_are_filled_where_they_lie():
    state = {"model": {"w": tensor([1, 2]), "deep": [tensor([3]), {"lr": 0.5}]}, "config": {"a": 1}, "a/b": tensor([9])}
    metadata, held = saved(state)
    target = {"model": {"w": tensor([0, 0]), "deep": [tensor([0]), None]}, "config": {}, "a/b": tensor([0])}
    deep = target["model"]["deep"]
    load_into(target, metadata, held)
    assert target["model"]["w"].tolist() == [1, 2] and deep[0].tolist() == [3] and deep[1] == {"lr": 0.5}
    assert target["config"] == {"a": 1} and target["a/b"].tolist() == [9]


def test_an_object_inside_a_tuple_cannot_be_replaced():
    metadata, held = saved({"t": [tensor([1]), 5]})
    with pytest.raises(ValueError, match=r"t\.1.*tuple"):
        load_into({"t": (tensor([0]), 0)}, metadata, held)


def test_entries_of_each_rank_come_back_to_it():
    """K1, K2: in the original one rank's value comes back on all."""
    states = [{"rng": [rank], "moment": tensor([rank, rank])} for rank in range(3)]
    metadata, held = saved(*states, entry_kinds=[("rng", "rank_local"), ("moment", "rank_local")])
    for rank in range(3):
        target = {"rng": None, "moment": tensor([-1, -1])}
        plan = load_into(target, metadata, held, rank)
        assert target["rng"] == [rank] and target["moment"].tolist() == [rank, rank]
        assert [item.dest_index.fqn for item in plan.items] == ["rng", "moment"]
        assert plan.items[0].storage_index.fqn == f"rng.rank-{rank}"
    with pytest.raises(RuntimeError, match="rng.*rank 3"):
        configured({"rng": None}, metadata, 3).build_local_plan()


def test_shards_of_this_library_are_targets():
    metadata, held = saved({"w": np.arange(16, dtype="f4").reshape(8, 2)})
    local = np.zeros((4, 2), "f4")
    target = {"w": shardwright.Shard(local, (8, 2), boxes=(((0, 0), (1, 2)), ((5, 0), (3, 2))))}
    plan = load_into(target, metadata, held)
    assert local.tolist() == [[0, 1], [10, 11], [12, 13], [14, 15]]
    assert [item.dest_index for item in plan.items] == [MetadataIndex("w", (0, 0), 0), MetadataIndex("w", (5, 0), 1)]


def test_a_saved_world_without_collectives_is_a_part():
    """The original reads what is there and leaves the rest at its old values."""
    from hyperparallel_words import local_plan
    planner, plan = local_plan({"w": Distributed(np.ones((2, 2), "f4"), (4, 2), rows([0, 1]))}, 1,
                               remove_redundancy=False)
    metadata = planner.build_global_plan([plan])[1]
    same = configured({"w": Distributed(np.zeros((2, 2), "f4"), (4, 2), rows([0, 1]))}, metadata, 1).build_local_plan()
    assert len(same.items) == 1
    with pytest.raises(RuntimeError, match="w") as caught:
        configured({"w": np.zeros((4, 2), "f4")}, metadata).build_local_plan()
    assert isinstance(caught.value, IncompleteTensorError) and isinstance(caught.value, DataLossError)


# ---- what is refused before anything is read ----

def test_a_planner_without_state_is_refused():
    item = ReadItem(LoadItemType.TENSOR, MetadataIndex("w", (0,)), (0,), MetadataIndex("w", (0,)), (0,), (1,))
    for call in (StandardLoadPlanner().build_local_plan, lambda: StandardLoadPlanner().acquire_tensor(item),
                 lambda: StandardLoadPlanner().apply_bytes(item, b"")):
        with pytest.raises(RuntimeError) as caught:
            call()
        assert isinstance(caught.value, FailedPreconditionError)


def test_missing_names():
    metadata, held = saved({"model.weight": tensor([1]), "model.bias": tensor([2]), "step": 1})
    with pytest.raises(RuntimeError, match="model.weights.*model.weight") as caught:
        configured({"model.weights": tensor([0])}, metadata).build_local_plan()
    assert isinstance(caught.value, MissingEntryError) and isinstance(caught.value, MissingNameError)
    target = {"absent": tensor([5]), "step": 0}
    planner = StandardLoadPlanner(allow_partial_load=True)
    load_into(target, metadata, held, planner=planner)
    assert target["absent"].tolist() == [5] and target["step"] == 1


def test_shapes_must_be_equal():
    """K8: no broadcasting."""
    metadata, _ = saved({"w": np.zeros((4, 2), "f4")})
    for shape in ((1, 2), (4, 1), (8,), (4, 2, 1), ()):
        with pytest.raises(ValueError, match="w.*4, 2"):
            configured({"w": np.zeros(shape, "f4")}, metadata).build_local_plan()


def test_casts_are_refused_unless_allowed():
    """K8: the original casts float data into an int32 destination without a word."""
    metadata, held = saved({"w": tensor([1.5, 2.5])})
    with pytest.raises(ValueError, match="float32.*int32") as caught:
        configured({"w": tensor([0, 0], "i4")}, metadata).build_local_plan()
    assert isinstance(caught.value, InvalidArgumentError)
    target = {"w": tensor([0, 0], "i4")}
    plan = load_into(target, metadata, held, planner=StandardLoadPlanner(dtype_policy="allow_cast"))
    assert target["w"].tolist() == [1, 2] and plan.planner_data == {"casts": {"w": ["float32", "int32"]}}
    with pytest.raises(ValueError, match="dtype_policy"):
        configured(target, metadata, dtype_policy="maybe").build_local_plan()


def test_kinds_must_be_equal():
    metadata, _ = saved({"w": tensor([1]), "o": 1})
    with pytest.raises(ValueError, match="w.*int"):
        configured({"w": 1}, metadata).build_local_plan()
    with pytest.raises(ValueError, match="o.*tensor"):
        configured({"o": tensor([1])}, metadata).build_local_plan()


def test_a_rank_outside_the_layout_must_be_declared():
    """The original skips such tensors in silence."""
    metadata, _ = saved({"w": np.zeros((4, 2), "f4")})
    target = {"w": Distributed(np.zeros((2, 2), "f4"), (4, 2), rows([0, 1]))}
    with pytest.raises(ValueError, match="w.*rank 7"):
        configured(target, metadata, 7).build_local_plan()
    assert len(configured(target, metadata, 7, absent=["w*"]).build_local_plan().items) == 0
    assert create_chunk_list_for_tensor(target["w"], rank=7) == []


@pytest.mark.parametrize("chunks,words", [
    ([((0,), (2,)), ((3,), (1,))], "2"), ([((0,), (3,)), ((2,), (2,))], "2")], ids=["hole", "overlap"])
def test_what_is_wanted_must_be_stored_once(chunks, words):
    """K4: the original leaves old values in holes, and of overlapping chunks the last one wins."""
    entry = TensorStorageMetadata(TensorProperties("float32"), (4,), [ChunkStorageMetadata(*chunk) for chunk in chunks])
    with pytest.raises(RuntimeError, match="w") as caught:
        configured({"w": tensor([0] * 4)}, Metadata({"w": entry})).build_local_plan()
    assert words in str(caught.value) and isinstance(caught.value, DataLossError)


def test_a_read_only_target_is_refused():
    metadata, _ = saved({"w": tensor([1])})
    target = tensor([0])
    target.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        configured({"w": target}, metadata).build_local_plan()


def test_replicas_are_read_once():
    metadata, held = saved(*[{"w": tensor([1, 2])}] * 3, remove_redundancy=False)
    plan = load_into({"w": tensor([0, 0])}, metadata, held)
    assert len(metadata.state_dict_metadata["w"].chunks) == 3
    assert [item.storage_index.index for item in plan.items] == [0]


def test_incomplete_layouts_mean_the_whole():
    for layout in (None, LayoutObject(None, None, None)):
        assert create_chunk_list_for_tensor(whole((4, 2), layout)) == [ChunkStorageMetadata((0, 0), (4, 2))]
    assert create_chunk_list_for_tensor(np.zeros(())) == [ChunkStorageMetadata((), ())]
    assert create_chunk_list_for_tensor(Distributed(np.zeros((2, 2)), (4, 2), rows([0, 1]))) == [
        ChunkStorageMetadata((0, 0), (2, 2))]
    for value in (7, "text", np.float32(1)):
        with pytest.raises(ValueError):
            create_chunk_list_for_tensor(value)


def test_plans_of_all_ranks_are_as_they_were():
    metadata, _ = saved({"w": tensor([1])})
    planner = configured({"w": tensor([0])}, metadata)
    plans = [planner.build_local_plan()]
    assert planner.build_global_plan(plans) is plans and planner.finalize_plan(plans[0]) is plans[0]


# ---- putting it back ----

def test_acquire_gives_a_view_and_apply_copies_once():
    metadata, _ = saved({"w": np.arange(16, dtype="f4").reshape(8, 2)})
    local = np.zeros((4, 2), "f4")
    planner = configured({"w": Distributed(local, (8, 2), rows([0, 1]))}, metadata, 1)
    item = planner.build_local_plan().items[0]
    view = planner.acquire_tensor(item)
    assert view.base is local or view is local
    view[...] = 3
    local[0, 0] = 5
    planner.apply_tensor(item, view)
    assert local.tolist() == [[5, 3], [3, 3], [3, 3], [3, 3]]
    planner.apply_tensor(item, None)
    planner.apply_tensor(item, planner.acquire_tensor(item))
    assert local[0, 0] == 5
    planner.apply_tensor(item, np.full((4, 2), 7, "f4"))
    assert local.tolist() == [[7, 7]] * 4
    for wrong in (np.zeros((1, 2), "f4"), np.zeros((4,), "f4"), np.zeros((4, 2), "f8")):
        with pytest.raises(ValueError):
            planner.apply_tensor(item, wrong)
    assert local.tolist() == [[7, 7]] * 4


def test_parts_of_items_made_by_hand():
    metadata, _ = saved({"w": np.zeros((4, 2), "f4"), "s": np.zeros((), "f4")})
    state = {"w": np.zeros((4, 2), "f4"), "s": np.zeros((), "f4"), "o": 1}
    planner = configured(state, metadata, allow_partial_load=True)

    def item(name, offsets=(), begin=(), sizes=()):
        return ReadItem(LoadItemType.TENSOR, MetadataIndex(name, offsets), begin, MetadataIndex(name, offsets), begin,
                        sizes)

    planner.apply_tensor(item("w", (0, 0), (1, 1), (2, 1)), np.full((2, 1), 4, "f4"))
    planner.apply_tensor(item("s"), np.float32(3) + np.zeros((), "f4"))
    assert state["w"].tolist() == [[0, 0], [0, 4], [0, 4], [0, 0]] and state["s"] == 3
    assert planner.acquire_tensor(item("w", (9, 9))).shape == (4, 2)
    for name in ("absent", "o"):
        with pytest.raises(KeyError) as caught:
            planner.acquire_tensor(item(name))
        assert isinstance(caught.value, UnknownNameError) and isinstance(caught.value, MissingNameError)


def test_objects_without_a_place_go_to_the_top():
    planner, state = StandardLoadPlanner(), {}
    planner.configure_planner(state, Metadata({}))
    item = ReadItem(LoadItemType.BYTE_IO, MetadataIndex("new"), (0,), MetadataIndex("new"), (0,), (0,))
    planner.apply_bytes(item, io.BytesIO(encode_object({"a": 1}, "new")))
    assert state == {"new": {"a": 1}}
    planner.apply_bytes(item, memoryview(encode_object(b"raw", "new")))
    assert state == {"new": b"raw"}


RAN = []


def run(value):
    """What a pickle could do."""
    RAN.append(value)


class Mark:
    """A value whose pickle runs code."""

    def __reduce__(self):
        return run, (1,)


def test_pickles_are_run_only_when_they_are_trusted():
    """K14: the original unpickles whatever it finds."""
    RAN.clear()
    for data in (pickle.dumps(Mark()), encode_object(Mark(), "o", pickles=True), b"raw bytes", pickle.dumps(1, 0)):
        with pytest.raises(PermissionError, match="o.*trust_pickle") as caught:
            decode_object(data, "o")
        assert isinstance(caught.value, UnsafePickleError) and isinstance(caught.value, PermissionDeniedError)
    assert not RAN
    decode_object(pickle.dumps(Mark()), "o", trust_pickle=True)
    assert RAN == [1]
    planner, state = StandardLoadPlanner(trust_pickle=True), {"o": None}
    planner.configure_planner(state, Metadata({}))
    planner.apply_bytes(ReadItem(LoadItemType.BYTE_IO, MetadataIndex("o"), (0,), MetadataIndex("o"), (0,), (0,)),
                        pickle.dumps({1, 2}))
    assert state == {"o": {1, 2}}


class Kept:
    """A class of the program."""

    def __init__(self, value):
        self.value = value


def test_objects_of_classes_that_are_allowed_are_read_without_trust():
    stored = [pickle.dumps(Kept(3)), encode_object(Kept(3), "o", pickles=True)]
    for data in stored:
        assert decode_object(data, "o", allow_types=[Kept]).value == 3
        with pytest.raises(UnsafePickleError, match=rf"{__name__}\.Kept.*allow_types"):
            decode_object(data, "o")
        planner, state = StandardLoadPlanner(allow_types=iter([Kept])), {"o": None}
        planner.configure_planner(state, Metadata({}))
        planner.apply_bytes(ReadItem(LoadItemType.BYTE_IO, MetadataIndex("o"), (0,), MetadataIndex("o"), (0,), (0,)), data)
        assert state["o"].value == 3
    assert decode_object(encode_object({1, 2}, "o", pickles=True), "o") == {1, 2}  # runs nothing
    with pytest.raises(shardwright.InvalidArgumentError, match="allow_types"):
        StandardLoadPlanner(allow_types=["Kept"])


@pytest.mark.parametrize("data,error", [
    (b"SHWO", DataLossError), (b"SHWO\x01\x10appl", DataLossError), (b"SHWO\x02\x00", UnimplementedError),
    (b"SHWO\x01\x03a/b1", UnimplementedError), (b"SHWO\x01\x10application/json{", DataLossError)])
def test_damaged_objects_are_named(data, error):
    with pytest.raises(error, match="name"):
        decode_object(data, "name")


def test_trusted_pickles_that_cannot_be_read_are_named():
    with pytest.raises(DataLossError, match="name"):
        decode_object(b"\x80\x04nonsense", "name", trust_pickle=True)


def test_descriptors_can_be_planned_but_not_filled():
    metadata, _ = saved({"w": np.zeros((4, 2), "f4")})
    assert len(configured({"w": Described((4, 2))}, metadata).build_local_plan().items) == 1
