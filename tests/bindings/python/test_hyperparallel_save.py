# SPDX-License-Identifier: Apache-2.0
"""StandardSavePlanner: what a local plan holds, how plans are merged, what is refused. Where a docstring says "the
original", the result was seen by running HyperParallel 0.1.0, which is on no package index."""
import numpy as np
import pytest
import shardwright
from shardwright.errors import (AlreadyExistsError, FailedPreconditionError, InvalidArgumentError, UnimplementedError)
from shardwright.hyperparallel import (MetadataIndex, SavePlan, StandardSavePlanner, WriteItem, WriteItemType,
                                          decode_object)
from hyperparallel_words import (Described, Distributed, LayoutObject, labels, local_plan, object_item, rows,
                                    save_world, tensor_item)


def sharded(rank, ranks=(0, 1), shape=(4, 2), dtype="f4", **layout):
    """This rank's rows of a tensor."""
    count = shape[0] // len(ranks)
    begin = count * list(ranks).index(rank)
    local = np.arange(np.prod(shape), dtype=dtype).reshape(shape)[begin:begin + count]
    return Distributed(local, shape,
                       LayoutObject((len(ranks),), (0,) + (-1,) * (len(shape) - 1), list(ranks), **layout))


# ---- local plans ----

def test_a_planner_without_state_is_refused():
    with pytest.raises(RuntimeError) as caught:
        StandardSavePlanner().build_local_plan()
    assert isinstance(caught.value, FailedPreconditionError)


def test_items_of_each_kind_of_value():
    local = np.zeros((2, 2), "f4")
    state = {
        "d": sharded(1), "r": Distributed(local, (2, 2), None), "p": np.zeros((3, 0), "f8"), "o": [1, None],
        "z": np.zeros((), "?")
    }
    planner, plan = local_plan(state, 1)
    expected = [tensor_item("d", (2, 0), (2, 2), (4, 2)), tensor_item("r", (0, 0), (2, 2)),
                tensor_item("p", (0, 0), (3, 0), dtype="float64"), object_item("o", [1, None]),
                tensor_item("z", (), (), dtype="bool")]
    assert plan == SavePlan(expected)
    assert planner.get_tensor(MetadataIndex("r", (0, 0))) is local
    assert planner.get_tensor(MetadataIndex("r", (0, 0), 0)) is None


@pytest.mark.parametrize("missing", ["mesh_shape", "tensor_map", "rank_list"])
def test_a_layout_that_lacks_an_attribute_is_refused(missing):
    layout = rows([0, 1])
    setattr(layout, missing, None)
    setattr(layout, "_" + missing, None)
    with pytest.raises(ValueError, match=f"w.*{missing}"):
        local_plan({"w": Distributed(np.zeros((2, 2), "f4"), (4, 2), layout)}, 0)


def test_a_rank_outside_the_layout_is_refused():
    with pytest.raises(ValueError, match="rank 5") as caught:
        local_plan({"w": sharded(0)}, 5)
    assert isinstance(caught.value, InvalidArgumentError) and caught.value.details["rank"] == "5"


def test_private_layout_attributes_count():
    layout = rows([0, 1])
    del layout.tensor_map, layout.rank_list
    assert labels(local_plan({"w": Distributed(np.zeros((2, 2), "f4"), (4, 2), layout)}, 1)[1]) == ["w@2,0"]


def test_uneven_shards():
    """K6: the original raises ValueError for a length that does not divide, and its tensors lose the rest."""
    shape, states = (5, 2), []
    for rank, (begin, end) in enumerate([(0, 2), (2, 4), (4, 5), (5, 5)]):
        states.append({"w": Distributed(np.zeros((end - begin, 2), "f4"), shape, rows(range(4)))})
        assert labels(local_plan(states[-1], rank)[1]) == [f"w@{begin},0"]
    metadata = save_world(states)[2].state_dict_metadata["w"]
    assert metadata.size == shape and sum(chunk.sizes[0] for chunk in metadata.chunks) == 5


def test_several_axes_on_one_dimension():
    """K20: the original's tensors cannot be split by two mesh axes along one dimension."""
    layout = LayoutObject((2, 2), ((1, 0), -1), [0, 1, 2, 3])
    states = [{"w": Distributed(np.zeros((2, 3), "f4"), (8, 3), layout)} for _ in range(4)]
    assert [chunk.offsets for chunk in save_world(states)[2].state_dict_metadata["w"].chunks] == [
        (0, 0), (2, 0), (4, 0), (6, 0)]


def test_a_local_tensor_that_does_not_fit_its_layout_is_refused():
    with pytest.raises(ValueError, match="w.*3, 2"):
        local_plan({"w": Distributed(np.zeros((3, 2), "f4"), (4, 2), rows([0, 1]))}, 0)


def test_an_interleaved_axis_is_named():
    layout = LayoutObject((2, 2), (1, 0), [0, 1, 2, 3], alias_name=("dp", "interleaved_parallel"))
    with pytest.raises(UnimplementedError, match="interleaved_parallel"):
        local_plan({"w": Distributed(np.zeros((2, 1), "f4"), (4, 2), layout)}, 0)


def test_meshes_are_told_apart_by_all_their_ranks():
    """K7: the original caches meshes by their first and last rank, so (0, 2, 1, 3) becomes (0, 1, 2, 3)."""
    for ranks in ([0, 1, 2, 3], [0, 2, 1, 3]):
        layout = LayoutObject((4,), (0, -1), ranks)
        held = [local_plan({"w": Distributed(np.zeros((1, 2), "f4"), (4, 2), layout)}, rank)[1] for rank in range(4)]
        assert [plan.items[0].index.offset[0] for plan in held] == [ranks.index(rank) for rank in range(4)]


def test_shards_of_this_library():
    array = np.arange(12, dtype="f4").reshape(6, 2)
    pieces = shardwright.Shard(array[:4], (8, 2), boxes=(((0, 0), (2, 2)), ((6, 0), (2, 2))))
    planner, plan = local_plan(
        {"w": pieces, "l": shardwright.Shard(array[:2], (4, 2), layout=shardwright.Layout((2,), [0]))}, 1)
    assert labels(plan) == ["w@0,0", "w@6,0", "l@2,0"]
    assert planner.get_tensor(MetadataIndex("w", (6, 0))).tolist() == array[2:4].tolist()


def test_descriptors_can_be_planned():
    plan = local_plan({"w": Described((3, 4), "bfloat16")}, 0)[1]
    assert plan.items == [tensor_item("w", (0, 0), (3, 4), dtype="bfloat16")]
    with pytest.raises(ValueError):
        local_plan({"w": Described((3, 4), "float31")}, 0)


# ---- summands (K3) ----

@pytest.mark.parametrize("partial", [("sum", None), ["max"], "sum"])
def test_summands_are_refused(partial):
    """K3: the original saves summands as if they were values: a true sum of 3 as 1 on each rank."""
    with pytest.raises(RuntimeError, match="w.*Partial") as caught:
        local_plan({"w": sharded(0, partial=partial)}, 0)
    assert isinstance(caught.value, FailedPreconditionError) and "reduce_partial" in str(caught.value)


def test_summands_can_be_reduced():
    whole = Distributed(np.full((2, 2), 3, "f4"), (2, 2), None)
    states = [{
        "w": Distributed(np.ones((2, 2), "f4"), (2, 2), LayoutObject((2,), (-1, -1), [0, 1], partial=["sum"]), whole)
    } for _ in range(2)]
    planners, plans, metadata = save_world(states, reduce_partial=True)
    item = next(item for plan in plans for item in plan.items)
    assert next(t for p in planners if (t := p.get_tensor(item.index)) is not None).tolist() == [[3, 3], [3, 3]]
    assert metadata.planner_data == {"reduced": {"w": ["sum"]}}


def test_no_partial_status_is_no_partial():
    assert labels(local_plan({"w": sharded(0, partial=[None, "None"])}, 0)[1]) == ["w@0,0"]


# ---- nested states (K11) ----

def test_nested_states_are_flattened():
    """K11: in the original a nested dict is one pickled object, and a distributed tensor inside it cannot be saved."""
    state = {
        "model": {"a/b": np.zeros(2, "f4"), "list": [sharded(0), {"lr": 0.1}]}, "config": {"x": {"y": 1}},
        "raw": b"\x00"
    }
    planner, plan = local_plan(state, 0)
    assert labels(plan) == ["model.a/b@0", "model.list.0@0,0", "model.list.1", "config", "raw"]
    assert plan.items[3].bytes_io_data == {"x": {"y": 1}}
    _, metadata = planner.build_global_plan([plan])
    assert metadata.planner_data["paths"] == {"model.a/b": '["model","a/b"]', "model.list.0": '["model","list",[0]]',
                                             "model.list.1": '["model","list",[1]]'}


def test_flattening_can_be_switched_off():
    planner = StandardSavePlanner(objects="pickle")
    planner.configure_planner({"model": {"a": {1, 2}, "b": 2}, "x": 1})
    planner.flatten_state_dict = False
    assert labels(planner.build_local_plan()) == ["model", "x"]


def test_two_entries_of_one_name_are_refused():
    with pytest.raises(AlreadyExistsError, match=r"a\.b"):
        local_plan({"a": {"b": np.zeros(2, "f4")}, "a.b": np.zeros(2, "f4")}, 0)


def test_a_state_that_holds_itself_is_refused():
    loop = {}
    loop["loop"] = loop
    with pytest.raises(ValueError, match="holds itself"):
        local_plan(loop, 0)
    with pytest.raises(ValueError):
        local_plan([("w", 1)], 0)


def test_values_that_are_neither_tensor_nor_json_are_refused_by_name():
    with pytest.raises(ValueError, match="model.thing"):
        local_plan({"model": {"thing": object()}}, 0)
    planner, plan = local_plan({"model": {"thing": {1, 2}}}, 0, objects="pickle")
    final = planner.finalize_plan(planner.build_global_plan([plan])[0][0])
    assert decode_object(final.items[0].bytes_io_data, "x", trust_pickle=True) == {1, 2}


# ---- merging ----

def test_replicas_that_differ_are_refused_and_both_ranks_named():
    """K1: in the original, optimizer state made as plain local tensors is taken for replicas: rank 0's shard comes back
    on every rank, without an error."""
    states = [{"exp_avg": np.full((2, 2), rank, "f4"), "same": np.ones(2, "f4")} for rank in range(3)]
    with pytest.raises(ValueError, match="exp_avg") as caught:
        save_world(states)
    assert "rank 0" in str(caught.value) and "rank 1" in str(caught.value) and "rank_local" in str(caught.value)


def test_objects_that_differ_are_refused():
    """K2: in the original one rank's random state or data position comes back on all ranks."""
    for values in ((1, 2), ("a", "bb"), ({"x": 1}, {"x": 1.5})):
        with pytest.raises(ValueError, match="rng.*rank 0.*rank 1"):
            save_world([{"rng": value} for value in values])


def test_comparison_of_content_can_be_chosen():
    states = [{"w": np.full(2, rank, "f4"), "o": f"{rank}"} for rank in range(2)]
    for choice in ("metadata", "off"):
        assert labels(save_world(states, verify_replicas=choice)[1][0]) == ["w@0"]
    different = [{"w": Distributed(np.full((2, 2), rank, "f4"), (2, 2), LayoutObject((2,), (-1, -1), [0, 1]))}
                 for rank in range(2)]
    save_world(different)
    with pytest.raises(ValueError, match="w.*rank 0.*rank 1"):
        save_world(different, verify_replicas="digest")
    with pytest.raises(ValueError):
        save_world(states, verify_replicas="sometimes")
    with pytest.raises(ValueError, match="o.*size"):
        save_world([{"o": "short"}, {"o": "longer"}], verify_replicas="metadata")


def test_entries_of_each_rank_for_itself():
    states = [{"rng": [rank] * 3, "moment": np.full(2, rank, "f4"), "w": sharded(rank)} for rank in range(2)]
    _, plans, metadata = save_world(states, entry_kinds={"rng": "rank_local", "mom*": "rank_local"})
    assert [labels(plan) for plan in plans] == [["rng.rank-0", "moment.rank-0@0", "w@0,0"],
                                                ["rng.rank-1", "moment.rank-1@0", "w@2,0"]]
    assert metadata.planner_data == {"rank_local": ["moment", "rng"]}


def test_a_distributed_tensor_can_be_rank_local_too():
    _, plans, metadata = save_world([{"w": sharded(rank)} for rank in range(2)], entry_kinds=[("w", "rank_local")])
    assert labels(plans[1]) == ["w.rank-1@0,0"] and metadata.state_dict_metadata["w.rank-1"].size == (2, 2)


def test_a_plain_tensor_cannot_be_declared_sharded():
    with pytest.raises(ValueError, match="exp_avg.*layout"):
        local_plan({"exp_avg": np.zeros(2, "f4")}, 0, entry_kinds={"exp*": "sharded"})
    assert labels(local_plan({"w": sharded(1)}, 1, entry_kinds={"w": "sharded"})[1]) == ["w@2,0"]


@pytest.mark.parametrize("one,other,words", [
    (tensor_item("w", (0, 0), (4, 4), (8, 4)), tensor_item("w", (0, 0), (4, 2), (8, 4)), r"4, ?2|0:2"),
    (tensor_item("w", (0,), (4,)), tensor_item("w", (0,), (4,), dtype="bfloat16"), "bfloat16"),
    (tensor_item("w", (0,), (2,), (4,)), tensor_item("w", (2,), (4,), (6,)), "6"),
    (tensor_item("w", (0,), (4,)), object_item("w"), "object"),
], ids=["sizes", "dtype", "shape", "kind"])
def test_plans_that_disagree_are_refused(one, other, words):
    """K5: the original looks at name and offset, and only at items that survive: a dropped duplicate of another dtype,
    shape or size goes unnoticed; of a tensor and an object of one name both are written and the tensor wins."""
    for plans in ([one, other], [other, one]):
        with pytest.raises(ValueError, match=words) as caught:
            StandardSavePlanner().build_global_plan([SavePlan([item]) for item in plans])
        assert "0" in str(caught.value) and "1" in str(caught.value)


def test_properties_that_differ_are_refused():
    with pytest.raises(ValueError, match="requires_grad"):
        item = tensor_item("w", (0,), (4,))
        other = tensor_item("w", (0,), (4,))
        other.tensor_data["properties"] = type(other.tensor_data["properties"])("float32", True)
        StandardSavePlanner().build_global_plan([SavePlan([item]), SavePlan([other])])


def test_an_item_twice_in_one_plan_is_refused():
    for items in ([tensor_item("w", (0,), (4,))] * 2, [object_item("o")] * 2):
        with pytest.raises(ValueError, match="twice|w|o"):
            StandardSavePlanner().build_global_plan([SavePlan(items), SavePlan([])])


@pytest.mark.parametrize(
    "item", [WriteItem(MetadataIndex("w"), "strange"),
             WriteItem(MetadataIndex("w"), WriteItemType.TENSOR)])
def test_items_of_no_known_type_are_refused(item):
    with pytest.raises(ValueError, match="w"):
        StandardSavePlanner().build_global_plan([SavePlan([item])])


@pytest.mark.parametrize("boxes,words", [
    ([((0,), (2,)), ((3,), (3,))], "2"), ([((0,), (4,)), ((3,), (3,))], "3"), ([((0,), (4,)), ((4,), (3,))], "6|7")],
    ids=["hole", "overlap", "outside"])
def test_chunks_must_tile_their_tensor(boxes, words):
    """K4: the original writes overlapping chunks, holes and chunks outside the tensor without a word."""
    plans = [SavePlan([tensor_item("w", offsets, sizes, (6,))]) for offsets, sizes in boxes]
    with pytest.raises(ValueError, match=words) as caught:
        StandardSavePlanner().build_global_plan(plans)
    assert "w" in str(caught.value)


def test_replicas_are_no_overlap_without_removal():
    planners, plans, metadata = save_world([{"w": np.ones(3, "f4")} for _ in range(3)], remove_redundancy=False)
    assert [plan.items[0].index.index for plan in plans] == [0, 1, 2]
    assert len(metadata.state_dict_metadata["w"].chunks) == 3 and planners


def test_one_plan_alone_may_be_a_part():
    planner, plan = local_plan({"w": sharded(1)}, 1, remove_redundancy=False)
    plans, metadata = planner.build_global_plan([plan])
    assert metadata.state_dict_metadata["w"].size == (4, 2) and labels(plans[0]) == ["w@2,0"]


def test_finalize_keeps_what_is_in_the_plan():
    planner, plan = local_plan({"a": np.ones(2, "f4"), "b": np.ones(3, "f4"), "o": 1}, 0)
    plans, _ = planner.build_global_plan([plan])
    kept = SavePlan([item for item in plans[0].items if item.index.fqn != "a"])
    assert planner.finalize_plan(kept) is kept
    assert planner.get_tensor(MetadataIndex("b", (0,), 0)).shape == (3,)
    for absent in (MetadataIndex("b", (0,)), MetadataIndex("a", (0,), 0)):
        assert planner.get_tensor(absent) is None
    assert decode_object(kept.items[-1].bytes_io_data, "o") == 1
    planner.configure_planner({"c": np.ones(1, "f4")})
    planner.finalize_plan(planner.build_global_plan([planner.build_local_plan()])[0][0])
    assert planner.get_tensor(MetadataIndex("b", (0,), 0)) is None


def test_plans_of_unequal_names():
    _, plans, metadata = save_world([{"w": sharded(0), "only0": 1}, {"w": sharded(1), "t1": np.zeros(2, "f4")}, {}])
    assert [labels(plan) for plan in plans] == [["w@0,0", "only0"], ["w@2,0", "t1@0"], []]
    assert list(metadata.state_dict_metadata) == ["only0", "w", "t1"]


@pytest.mark.parametrize("remove_redundancy", [True, False])
@pytest.mark.parametrize("listed", [{0}, {1}, {0, 1}])
def test_plans_that_became_lists_on_some_ranks_merge_with_the_others(listed, remove_redundancy):
    """A host may hand on `list(plan.items)`: what is not known of such items, the sizes of objects, is not compared."""
    states = [{"o": {"lr": [1, 2]}, "w": np.ones(3, "f4"), f"own{rank}": "x" * rank} for rank in range(2)]
    planners, plans = zip(*(local_plan(state, rank, save_to_minimum_rank=False, remove_redundancy=remove_redundancy)
                            for rank, state in enumerate(states)), strict=True)
    expected, metadata = planners[0].build_global_plan(list(plans))
    changed = [SavePlan(list(plan.items), plan.storage_data, plan.planner_data) if rank in listed else plan
               for rank, plan in enumerate(plans)]
    found, found_metadata = planners[0].build_global_plan(changed)
    assert [labels(plan) for plan in found] == [labels(plan) for plan in expected] and found_metadata == metadata
