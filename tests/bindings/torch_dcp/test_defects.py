# SPDX-License-Identifier: Apache-2.0
"""What torch's planner gets wrong on saving, shown on torch first, and what ours does. Loading is in test_load.py, the
cache in test_cache.py."""
import logging

import pytest
import torch
import torch.distributed.checkpoint.default_planner as original
from items import names, plans, shard, stored, tensor
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import SavePlan
from worlds import placed, plain, planned

import shardwright
import shardwright.torch.dcp.planner as ours


def test_an_empty_chunk_inside_another_overlaps_nothing():
    metadata = Metadata({"w": stored([4], ([0], [4]), ([2], [0]))})
    assert "overlapping" in original._validate_global_plan([SavePlan([])], metadata)[0]
    assert ours._validate_global_plan([SavePlan([])] * 2, metadata) == []
    states = [{"w": placed((4,), [((0,), (4,))])}, {"w": placed((4,), [((2,), (0,))])}]
    assert isinstance(planned(original.DefaultSavePlanner, states)[1], ValueError)
    _, final, found = planned(ours.DefaultSavePlanner, states)
    assert [len(plan.items) for plan in final] == [1, 1] and len(found.state_dict_metadata["w"].chunks) == 2


@pytest.mark.parametrize("other", [torch.float16, None])
def test_tensors_that_differ_between_ranks_are_an_error(other):
    ranks = [[shard("w", [0], [2], [4])], [shard("w", [2], [2], [4] if other else [6], dtype=other or torch.float32)]]
    original.create_default_global_save_plan(plans(*ranks))
    for plan in (ours.create_default_global_save_plan, ours.DefaultSavePlanner(flatten_state_dict=False).create_global_plan):
        with pytest.raises(shardwright.InvalidArgumentError, match=r"w.*rank") as caught:
            plan(plans(*ranks))
        assert isinstance(caught.value, (AssertionError, ValueError))


def test_who_writes_may_follow_bytes_and_ranks_in_place_of_set_order():
    ranks = [[tensor("r", 4)] if r in (1, 8) else [] for r in range(9)]
    assert names(original.dedup_save_plans(plans(*ranks)))[8] == "r", "torch: order of a set of rank numbers"

    def writers(ranks, **options):
        final, _ = ours.DefaultSavePlanner(flatten_state_dict=False, **options).create_global_plan(plans(*ranks))
        return names(final)

    assert writers(ranks)[8] == "r"
    assert writers(ranks, owner="balanced")[1] == "r" and writers(ranks, owner="lowest_rank")[1] == "r"
    # Shards weigh their whole tensor in torch, so the replica goes to the rank that writes nearly everything already.
    uneven = [[shard("s", [0], [1], [100]), tensor("x", 50)], [shard("s", [1], [99], [100]), tensor("x", 50)]]
    assert names(original.dedup_save_plans(plans(*uneven))) == writers(uneven) == ["s", "s x"]
    assert writers(uneven, owner="balanced") == ["s x", "s"]


STEPS = [{"step": rank, "same": [1, 2.5], "w": plain((4,))} for rank in range(3)]


def test_values_that_differ_between_ranks_are_reported(caplog):
    assert not isinstance(planned(original.DefaultSavePlanner, STEPS)[1], Exception), "torch merges them in silence"
    planner = ours.DefaultSavePlanner()
    local = []
    for state in STEPS:
        planner.set_up_planner(state, None, True)
        local.append(planner.create_local_plan())
    with caplog.at_level(logging.WARNING):
        planner.create_global_plan(local)
    assert planner.replica_mismatches == ["step"] and "different values under one name" in caplog.text
    strict = ours.DefaultSavePlanner(verify_replicas="error")
    with pytest.raises(ValueError, match="step"):
        strict.create_global_plan(local)
    silent = ours.DefaultSavePlanner(verify_replicas="off")
    silent.create_global_plan(local)
    assert silent.replica_mismatches == []


def test_values_that_are_equal_or_no_plain_data_are_not_reported():
    states = [{"a": {"b": (1, "x", None)}, "f": 0.1, "o": object()} for _ in range(3)]
    planner = ours.DefaultSavePlanner(verify_replicas="error")
    local = []
    for state in states:
        planner.set_up_planner(state, None, True)
        local.append(planner.create_local_plan())
    planner.create_global_plan(local)
    assert planner.replica_mismatches == []


@pytest.mark.parametrize("option", [{"owner": "first"}, {"verify_replicas": "some"}])
def test_options_that_are_none_are_refused(option):
    with pytest.raises(shardwright.InvalidArgumentError, match=next(iter(option.values()))):
        ours.DefaultSavePlanner(**option)


@pytest.mark.parametrize("options", [{}, {"dedup_save_to_lowest_rank": True}])
def test_an_empty_shard_never_hides_its_neighbour(options):
    """Both begin at one offset and are one item to torch, which leaves it on any rank."""
    states = [{"w": placed((10,), [box])} for box in (((0,), (5,)), ((5,), (0,)), ((5,), (5,)))]
    theirs = planned(original.DefaultSavePlanner, states, **options)[1]
    assert isinstance(theirs, ValueError) and "invalid fill" in str(theirs)
    _, mine, metadata = planned(ours.DefaultSavePlanner, states, **options)
    assert [[tuple(item.tensor_data.chunk.sizes) for item in plan.items] for plan in mine] == [[(5,)], [], [(5,)]]
    assert [tuple(chunk.offsets) for chunk in metadata.state_dict_metadata["w"].chunks] == [(0,), (5,)]
    for world in ([states[0], states[2], states[1]], [states[0], states[2]], [states[2], states[0]]):
        assert planned(ours.DefaultSavePlanner, world, **options)[1] == planned(original.DefaultSavePlanner, world, **options)[1]


def test_long_lists_of_findings_are_cut_as_in_torch():
    states = [{f"tensor{i}": placed((4,), [((0,), (3,))]) for i in range(30)}] * 2
    theirs, mine = (planned(c, states)[1] for c in (original.DefaultSavePlanner, ours.DefaultSavePlanner))
    assert str(mine) == str(theirs) and str(mine).endswith("... (truncated)") and isinstance(mine, ValueError)


def test_the_argument_without_effect_is_warned_about(caplog):
    with caplog.at_level(logging.WARNING):
        ours.DefaultSavePlanner(dedup_replicated_tensors=True)
    assert "dedup_replicated_tensors" in caplog.text


def test_planning_touches_no_data():
    gone = torch.ones(3, 4)
    gone.untyped_storage().resize_(0)
    state = {"w": gone, "m": plain((3, 4)), "lazy": torch.nn.Parameter(torch.ones(2, dtype=torch.complex64)).conj()}
    items = ours.create_default_local_save_plan(state, True).items
    assert items == original.create_default_local_save_plan(state, True).items


def test_properties_come_from_the_first_rank_that_lists_a_tensor():
    states = [{"big": plain((100,)), "w": torch.ones(4)}, {"big": plain((100,)), "w": torch.ones(4, requires_grad=True)}]
    _, theirs, found = planned(original.DefaultSavePlanner, states)
    assert names(theirs) == ["big", "w"] and found.state_dict_metadata["w"].properties.requires_grad
    _, mine, found = planned(ours.DefaultSavePlanner, states)
    assert names(mine) == ["big", "w"] and mine[1].items[0].tensor_data.properties.requires_grad
    assert not found.state_dict_metadata["w"].properties.requires_grad
