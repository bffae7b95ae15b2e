# SPDX-License-Identifier: Apache-2.0
"""Items of a plan: a plan buffer until they are looked at, a plain list of torch's items from then on."""
import copy
import dataclasses
import gc
import pickle
import struct
import threading

import pytest
import torch
import torch.distributed.checkpoint.default_planner as original
from items import plans, shard, tensor, value
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex
from torch.distributed.checkpoint.planner import SavePlan, WriteItem, WriteItemType

import shardwright.torch.dcp.planner as ours
from shardwright import planning
from shardwright.torch.dcp.planner import _global, _items

STATE = {"w": torch.ones(3, 4), "t": torch.ones(3, 4).t(), "s": torch.tensor(1.0), "e": torch.ones(0, 3), "step": 3,
         "g": torch.nn.Parameter(torch.ones(2, 1, 3)), "m": torch.ones(2, 5, device="meta"), "list": [1, {"a": 2}],
         "b": torch.ones(4, dtype=torch.bfloat16).expand(3, 4)}


def untouched(state=None):
    return ours.create_default_local_save_plan(STATE if state is None else state, True)


def expected(state=None):
    return original.create_default_local_save_plan(STATE if state is None else state, True)


def test_a_plan_says_what_torchs_says():
    plan = untouched()
    assert isinstance(plan.items, list) and plan.items.plan is not None and len(plan.items) == len(STATE)
    assert plan == expected() and expected() == untouched() and list(untouched().items) == expected().items


TOUCHES = {"index": lambda items: items[0], "slice": lambda items: items[1:3], "loop": lambda items: [i for i in items],
           "reverse": lambda items: list(reversed(items)), "in": lambda items: value("step") in items,
           "sum": lambda items: items + [1], "sum from the right": lambda items: [1] + items,  # noqa: RUF005
           "unpacked": lambda items: [*items], "extended": lambda items: [].extend(items) or len(items),
           "copy": lambda items: items.copy(), "count": lambda items: items.count(value("step")),
           "times": lambda items: items * 2, "sorted": lambda items: sorted(items, key=lambda i: i.index.fqn),
           "text": repr, "equal": lambda items: items == [], "tuple": tuple, "zip": lambda items: list(zip(items, items))}


@pytest.mark.parametrize("touch", TOUCHES)
def test_every_look_at_the_items_gives_what_a_list_gives(touch):
    mine, theirs = untouched().items, expected().items
    assert TOUCHES[touch](mine) == TOUCHES[touch](theirs)
    assert type(mine) is not ours.PlanItems


def test_changes_count_from_then_on():
    plan = untouched()
    plan.items.append(value("more"))
    del plan.items[0]
    plan.items[0].tensor_data.properties.dtype = torch.float16
    again = pickle.loads(pickle.dumps(plan))
    assert again == plan and again.items[0].tensor_data.properties.dtype == torch.float16
    assert [item.index.fqn for item in again.items] == [*list(STATE)[1:], "more"]


def test_untouched_items_travel_as_their_buffer():
    plan = untouched()
    sent = pickle.dumps(plan)
    assert plan.items.plan is not None and plan.items.plan in sent
    assert pickle.loads(sent).items.plan == plan.items.plan
    for copied in (copy.copy(plan.items), copy.deepcopy(plan).items, dataclasses.replace(plan, usable=False).items):
        assert copied.plan == plan.items.plan


def test_properties_and_chunks_are_never_shared_between_items():
    items = untouched({"a": torch.ones(2), "b": torch.ones(2)}).items
    items[0].tensor_data.properties.dtype = torch.float16
    items[0].tensor_data.chunk.sizes = torch.Size([7])
    assert items[1].tensor_data.properties.dtype == torch.float32 and items[1].tensor_data.chunk.sizes == torch.Size([2])


def test_items_are_made_once_for_threads_that_look_together():
    plan, gate, found = untouched({f"w{i}": torch.ones(1) for i in range(500)}), threading.Barrier(8), []

    def look():
        gate.wait()
        found.append([id(item) for item in plan.items])

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and all(ids == found[0] and len(ids) == 500 for ids in found)


def test_the_collector_is_as_it_was():
    for on in (True, False):
        (gc.enable if on else gc.disable)()
        list(untouched().items)
        assert gc.isenabled() is on
    gc.enable()


class OtherItem(WriteItem):
    pass


FOREIGN = {"class": lambda: OtherItem(MetadataIndex("o"), WriteItemType.BYTE_IO),
           "moved": lambda: dataclasses.replace(tensor("w", 4), index=MetadataIndex("w", [1])),
           "outside": lambda: shard("w", [3], [2], [4]), "negative": lambda: shard("w", [-1], [2], [4]),
           "hint": lambda: shard("w", [0], [2], [4], hint=5),
           "surrogate": lambda: value("\ud800"), "name": lambda: value(5),
           "dtype": lambda: tensor("w", 4, dtype=torch.quint8),
           "sized": lambda: dataclasses.replace(value("o"), bytes_io_data=4), "none": lambda: None}


@pytest.mark.parametrize("kind", FOREIGN)
def test_items_that_columns_cannot_hold_stay_objects(kind):
    items = [tensor("a", 2), FOREIGN[kind]()]
    assert _items.described(items) is None
    touched = untouched().items
    touched[:] = items
    if kind != "class":
        assert pickle.loads(pickle.dumps(touched)) == items and type(pickle.loads(pickle.dumps(touched))) is list


def test_names_that_come_twice_apart_stay_objects():
    for items in ([shard("w", [0], [2], [4]), value("o"), shard("w", [2], [2], [4])], [value("o"), value("o")],
                  [shard("w", [0], [2], [4]), shard("w", [2], [2], [5])]):
        assert _items.described(items) is None


def test_shards_of_one_name_are_one_entry():
    items = [shard("w", [2 * i], [2], [8], hint=i) for i in range(4)]
    made = ours.PlanItems(*_items.described(items))
    assert made == items and [item.index.index for item in made] == [0, 1, 2, 3]


NOT_IN_TORCH = 17  # float8_e3m4


def test_damaged_columns_are_refused():
    import shardwright
    from shardwright.torch._library import native
    columns = list(native.items_encode([shard("w", [0], [2], [4]), tensor("t", 3), value("o")]))

    def outcome(place, damaged):
        try:
            return native.items_decode(tuple([*columns[:place], damaged, *columns[place + 1:]]), None)
        except (shardwright.DataLossError, shardwright.UnimplementedError, UnicodeDecodeError) as refused:
            return type(refused).__name__

    lengths = [outcome(place, damaged) for place in range(1, 11)
               for damaged in (columns[place][:-1], columns[place] + b"\1" * 8, b"")]
    assert lengths == ["DataLossError"] * 30
    values = {place: outcome(place, b"\xff" * len(columns[place])) for place in range(1, 11)}
    # Extents and offsets are the host's own and come as they are; all else is looked at.
    assert {place for place, found in values.items() if isinstance(found, list)} == {4, 7, 8}
    assert values[1] == "UnicodeDecodeError" and outcome(3, struct.pack("<3i", NOT_IN_TORCH, 0, 0)) == "DataLossError"
    assert outcome(3, struct.pack("<i", NOT_IN_TORCH) + columns[3][4:]) == "UnimplementedError"
    with pytest.raises(TypeError):
        native.items_decode(5, None)


def test_columns_of_more_boxes_than_values_are_refused():
    import shardwright
    from shardwright.torch._library import native

    def words(*values):
        return struct.pack(f"<{len(values)}Q", *values)

    for ndim, boxes in ((8, 2**61), (64, 2**58), (0, 2**40)):  # 8 x 2^61 is 0 modulo 2^64
        columns = (1, b"w", words(0, 1), struct.pack("<i", shardwright.dtype_number("float32")), words(*[1] * ndim), words(0, ndim),
                   words(0, boxes), b"", b"", b"\0\0", words(0, 2))
        for decode in (lambda given: native.items_decode(given, None), native.items_stored):
            with pytest.raises(shardwright.DataLossError, match="columns"):
                decode(columns)


def test_numbers_of_another_plan_are_refused():
    import shardwright
    from shardwright.torch._library import native
    items = [tensor("w", 2), tensor("v", 2)]
    for numbers in (bytes(4), bytes(12), bytes(7), memoryview(bytes(9))[1:]):
        with pytest.raises(shardwright.InvalidArgumentError, match="numbers"):
            native.items_keep(items, numbers)
        with pytest.raises(shardwright.InvalidArgumentError, match="numbers"):
            native.items_decode(_items.described(items).plan, numbers)
    for numbers in (None, 5, [0, 0]):
        with pytest.raises(TypeError):
            native.items_keep(items, numbers)


def test_a_list_shows_what_its_rank_keeps():
    items = [tensor("a", 2), shard("w", [0], [2], [4]), shard("w", [2], [2], [4]), value("o")]
    numbers = struct.pack("<4I", planning.NOT_KEPT, 7, 2**32 - 2, 0)
    made = ours.PlanItems(_items.described(items).plan, numbers)
    assert len(made) == 3 and made.plan is not None
    again = pickle.loads(pickle.dumps(made))
    assert again.stands_for == made.stands_for and again == made
    assert [(item.index.fqn, item.index.index) for item in made] == [("w", 7), ("w", 2**32 - 2), ("o", None)]
    assert [item.index.index for item in pickle.loads(pickle.dumps(made))] == [7, 2**32 - 2, None]


def test_what_is_kept_is_another_list_than_all_of_it():
    whole = _items.described([tensor("a", 2), tensor("b", 2)])
    parts = [_items.Untouched(whole.plan, struct.pack("<2I", *numbers)) for numbers in ((0, 0), (0, planning.NOT_KEPT))]
    assert len({each.digest for each in [whole, *parts]}) == 3
    plans_of = [SavePlan(ours.PlanItems(*each)) for each in parts]
    assert not ours._compare_save_plans(*plans_of) and ours._compare_save_plans(plans_of[0], SavePlan(ours.PlanItems(*parts[0])))


def test_what_a_merge_left_is_merged_again_as_its_items():
    once, _ = _global.merged(plans([tensor("a", 4), tensor("b", 4)], [tensor("a", 4), tensor("b", 4)]), "exact")
    untouched_once, _ = _global.merged([SavePlan(ours.PlanItems(*_items.described(items)))
                                        for items in ([tensor("a", 4), tensor("b", 4)],) * 2], "exact")
    assert [plan.items.plan is not None for plan in untouched_once] == [True, True]
    twice = [_global.merged(each, "exact") for each in (once, untouched_once)]
    assert twice[0] == twice[1]
    assert [[item.index.fqn for item in plan.items] for plan in twice[1][0]] == [["a"], ["b"]]


def test_kept_items_are_those_of_the_host_with_new_hints():
    ranks = plans([tensor("a", 4), value("o"), shard("s", [0], [2], [4])], [tensor("a", 4), shard("s", [2], [2], [4])])
    final, metadata = ours.DefaultSavePlanner(flatten_state_dict=False).create_global_plan(ranks)
    assert [type(plan.items) for plan in final] == [list, list]
    assert final[1].items[-1].tensor_data is ranks[1].items[-1].tensor_data
    assert [item.index.index for item in final[1].items] == [1]
    assert metadata.state_dict_metadata["s"].chunks == [ChunkStorageMetadata(torch.Size([0]), torch.Size([2])),
                                                        ChunkStorageMetadata(torch.Size([2]), torch.Size([2]))]


def test_the_entries_of_a_metadata_are_made_on_touch_and_pickled_as_a_dict():
    planner = ours.DefaultSavePlanner()
    planner.set_up_planner(STATE, None, True)
    _, metadata = planner.create_global_plan([planner.create_local_plan()])
    lazy = metadata.state_dict_metadata
    assert lazy.plan is not None
    again = pickle.loads(pickle.dumps(metadata))
    assert type(again.state_dict_metadata) is dict and again == metadata
    assert list(lazy) == list(planner.state_dict) and len(lazy) == len(planner.state_dict) and "w" in lazy and {**lazy} == dict(lazy)
    assert all(type(entry.chunks) is list for entry in lazy.values() if hasattr(entry, "chunks"))


def test_a_plan_that_is_not_usable_stays_so():
    plan = SavePlan([], usable=False)
    assert pickle.loads(pickle.dumps(dataclasses.replace(untouched(), usable=False))).usable is False and not plan.items


def test_items_are_out_of_the_collectors_sight_and_end_with_their_list():
    import weakref
    items = untouched({"w": torch.ones(3, 4)}).items
    item = items[0]
    assert not any(gc.is_tracked(o) for o in (item, item.index, item.index.offset, item.tensor_data, item.tensor_data.size))
    assert gc.is_tracked(item.tensor_data.properties) and gc.is_tracked(item.tensor_data.chunk)
    ends = [weakref.ref(o) for o in (item, item.tensor_data, item.tensor_data.chunk)]
    del item, items
    assert [end() for end in ends] == [None] * 3


class Parts:
    """A value of the host that is saved as items of these names."""

    def __init__(self, *names):
        self.names = names

    def __create_write_items__(self, fqn, value):
        return [tensor(name.replace("KEY", fqn), 2) for name in self.names]


def other(name):
    """An equal text that is another object, whatever the interpreter shares."""
    made = "".join([name[:1], name[1:]])
    assert made is not name
    return made


PARTS = [{"first": Parts("KEY"), "b": 1}, {"first": Parts("KEY.x", "KEY.y"), "b": torch.ones(2), "c": 3},
         {"first": torch.ones(2), "second": Parts(other("second"))}, {"first": torch.ones(2), "step": 1, "second": Parts(other("step"))},
         {"second": torch.ones(2), "first": Parts(other("second"))}, {"first": Parts(other("second")), "second": torch.ones(2)},
         {"first": Parts(other("second")), "second": 7}, {"first": Parts("KEY", "KEY")},
         {"first": Parts("KEY", "other", "KEY")}, {"first": Parts(other("part")), "second": Parts(other("part"))}]


@pytest.mark.parametrize("state", PARTS)
def test_items_of_the_host_may_have_names_of_their_own(state):
    plan = untouched(state)
    names = [item.index.fqn for item in expected(state).items]
    assert [item.index.fqn for item in plan.items] == names and plan == expected(state)
    assert (untouched(state).items.plan is not None) if len(set(names)) == len(names) else type(plan.items) is list


def test_values_that_are_plain_data_have_digests():
    planner = ours.DefaultSavePlanner(flatten_state_dict=False)
    planner.set_up_planner(STATE | {"parts": Parts("KEY"), "any": object(), "complex": 1j})
    assert list(planner.create_local_plan().items.digests) == ["step", "list", "complex"]
