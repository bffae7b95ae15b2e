# SPDX-License-Identifier: Apache-2.0
"""The greedy distribution: tables, the reference set of eight ranks, random worlds beside the plain rule and the original."""
import random

import oracle
import pytest
import torch
from shardwright.torch.megatron import ShardedTensor, distribute_shards_to_ranks, main_replica_distribution
from shardwright.torch.megatron.distribution import object_id_of, shard_id_of, with_owners

# holders, bytes, cross, ranks -> owner
TABLE = [
    ({"a": [0, 1], "b": [0, 1], "c": [0, 1]}, {"a": 4, "b": 4, "c": 4}, (), 2, {"a": 0, "b": 1, "c": 0}),
    ({"a": [0, 1, 2], "b": [1, 2], "c": [2], "d": [0, 1, 2]}, {"a": 10, "b": 5, "c": 1, "d": 10}, (), 3,
     {"c": 2, "b": 1, "a": 0, "d": 2}),
    ({"a": [0, 1], "b": [0, 1], "c": [0]}, {"a": 8, "b": 8, "c": 100}, ("b",), 2, {"c": 0, "a": 1, "b": 1}),
    ({"a": [0, 1], "b": [0, 1], "c": [0, 1], "d": [0, 1]}, {"a": 0, "b": 0, "c": 5, "d": 5}, (), 2,
     {"c": 0, "d": 1, "a": 0, "b": 0}),
]


@pytest.mark.parametrize(("holders", "sizes", "cross", "ranks", "expected"), TABLE)
def test_tables(holders, sizes, cross, ranks, expected):
    found = distribute_shards_to_ranks(holders, sizes, ranks, set(cross))
    assert found == expected and list(found) == list(expected)


def random_world(number):
    source = random.Random(number)
    ranks = source.randint(1, 12)
    holders, sizes = {}, {}
    for shard in range(source.randint(0, 60)):
        name = (f"k{source.randint(0, 20)}", (shard,), None)
        holders[name] = sorted(source.sample(range(ranks), source.randint(1, ranks)))
        sizes[name] = source.choice([0, 1, 8, 8, 100, source.randint(0, 1000)])
    cross = {name for name in holders if source.random() < 0.2}
    return holders, sizes, cross, ranks


def test_random_worlds_are_distributed_by_the_plain_rule():
    for number in range(500):
        holders, sizes, cross, ranks = random_world(number)
        found = distribute_shards_to_ranks(holders, sizes, ranks, cross)
        assert found == oracle.owners(holders, sizes, ranks, cross), number
        shared = {}  # list objects that several shards share
        again = {name: shared.setdefault(tuple(held), held) for name, held in holders.items()}
        assert distribute_shards_to_ranks(again, sizes, ranks, cross) == found


def test_random_worlds_are_distributed_as_by_the_original(original):
    for number in range(200):
        world = random_world(number)
        found = distribute_shards_to_ranks(*world[:2], world[3], world[2])
        theirs = original.exchange_utils.distribute_shards_to_ranks(*world[:2], world[3], world[2])
        assert found == theirs and list(found) == list(theirs), number


@pytest.mark.parametrize("held", [[], [2], [-1]])
def test_holders_must_be_ranks(held):
    with pytest.raises(ValueError, match="expected ranks below 2"):
        distribute_shards_to_ranks({"a": held}, {"a": 1}, 2)


def reference_state(rank, kinds):
    """Eight ranks, TP = 2: what each holds."""
    tp, dp = rank % 2, rank // 2

    def tensor(key, count, *offsets, replica_id=0):
        return kinds.ShardedTensor.from_rank_offsets(key, torch.ones(count), *offsets, replica_id=replica_id)

    return {"keyB": tensor("keyB", 20, (0, rank, 8)),
            "TP_repl1": tensor("TP_repl1", 10, (0, tp, 2), replica_id=dp),
            "TP_repl2": tensor("TP_repl2", 10, (0, tp, 2), replica_id=dp),
            **{key: tensor(key, count, replica_id=rank) for key, count in (("keyC", 100), ("keyD", 1000), ("keyE", 100))}}


# group, loading -> TP_repl1, TP_repl2, keyD, keyC, keyE as ranks in the group; None = not distributed there
REFERENCE = [
    (range(8), False, ((0, 1), (2, 3), 4, 5, 6)), (range(8), True, ((0, 1), (2, 3), 4, 5, 6)),
    (range(0, 8, 2), False, ((3,), (3,), 0, 1, 2)), (range(0, 8, 2), True, ((3,), (3,), 0, 1, 2)),
    (range(1, 8, 2), False, ((0,), (1,), None, None, None)), (range(1, 8, 2), True, ((0,), (1,), 2, 3, 0)),
]


@pytest.mark.parametrize(("group", "loading", "expected"), REFERENCE, ids=str)
def test_the_reference_set_of_eight_ranks(group, loading, expected, kinds):
    states = [reference_state(rank, kinds) for rank in group]
    found = main_replica_distribution([list(state.values()) for state in states], ignore_groups=loading)
    owner = found.main_rank_for_shard
    assert all(owner[shard_id_of(state["keyB"])] == rank for rank, state in enumerate(states))
    halves = range(2) if len(group) == 8 else [group[0]]
    for name, ranks in zip(("TP_repl1", "TP_repl2"), expected[:2]):
        assert tuple(owner[name, (10 * half,), None] for half in halves) == ranks
    for name, rank in zip(("keyD", "keyC", "keyE"), expected[2:]):
        assert owner.get((name, (0,), None)) == rank
        assert ((name, (0,), None) in found.shards_in_this_group) == (rank is not None)
        assert (name, (0,), None) in found.shard_to_metadata
    assert found.all_ranks_for_shard["TP_repl1", (10 * halves[0],), None] == [r for r, g in enumerate(group) if g % 2 == halves[0]]


def test_the_reference_set_is_that_of_the_original(original, monkeypatch):
    for group, loading, _ in REFERENCE:
        states = [list(reference_state(rank, original.mapping).values()) for rank in group]
        theirs = original.exchange_utils
        monkeypatch.setattr(theirs, "get_pg_size", lambda group: len(states))
        monkeypatch.setattr(torch.distributed, "all_gather_object",
                            lambda out, mine, group: out.__setitem__(slice(None), states))
        expected = theirs.determine_main_replica_uniform_distribution({"s": states[0]}, object(), loading)
        found = main_replica_distribution(states, loading)
        assert found.main_rank_for_shard == expected.main_rank_for_shard
        assert list(found.main_rank_for_shard) == list(expected.main_rank_for_shard)
        assert found.shards_in_this_group == expected.shards_in_this_group
        assert found.all_ranks_for_shard == expected.all_ranks_for_shard
        assert dict(found.shard_to_metadata) == expected.shard_to_metadata


def test_owners_are_set_in_a_copy_and_strangers_are_refused(kinds):
    states = [reference_state(rank, kinds) for rank in range(2)]
    found = main_replica_distribution([list(state.values()) for state in states])
    new = with_owners({"nested": [states[1], "other"]}, found, 1)
    assert new["nested"][0]["keyB"].replica_id == 0 and new["nested"][0]["keyD"].replica_id in (0, 1)
    assert states[1]["keyD"].replica_id == 1 and new["nested"][0]["keyD"] is not states[1]["keyD"]
    assert new["nested"][0]["keyB"].data is states[1]["keyB"].data and new["nested"][1] == "other"
    owned = [with_owners(state, found, rank) for rank, state in enumerate(states)]
    for name in ("keyC", "keyD", "keyE"):
        assert sorted(state[name].replica_id for state in owned) == [0, 1]
    with pytest.raises(RuntimeError, match="new is not part of the distribution"):
        with_owners({"n": kinds.ShardedTensor.from_rank_offsets("new", torch.ones(1))}, found, 0)


def test_the_original_drops_keys_that_are_not_in_the_distribution(original, monkeypatch):
    """Why strangers are refused: there their replica id becomes 1 on all ranks, and nobody saves them."""
    theirs = original.fully_parallel
    monkeypatch.setattr(theirs, "get_pg_size", lambda group: 2)
    monkeypatch.setattr(theirs, "get_pg_rank", lambda group: 0)
    stranger = original.mapping.ShardedTensor.from_rank_offsets("new", torch.ones(1))
    theirs.distribute_main_replicas_with_precomputed_distribution(
        {"n": stranger}, object(), main_replica_distribution([[], []]))
    assert stranger.replica_id == 1


def test_flattened_shards_weigh_their_range_and_are_told_apart():
    def flat(start, stop, replica_id):
        return ShardedTensor.from_rank_offsets_flat("k", torch.ones(stop - start), (4, 3), flattened_range=slice(start, stop),
                                                    replica_id=replica_id)

    found = main_replica_distribution([[flat(0, 2, 0), flat(2, 12, 1)], [flat(0, 2, 1), flat(2, 12, 0)]])
    assert found.main_rank_for_shard == {("k", (0, 0), (2, 12)): 0, ("k", (0, 0), (0, 2)): 1}


def test_ids_of_objects(kinds):
    assert object_id_of(kinds.ShardedObject("k", 1, (2, 3), (1, 2))) == ("k", (1, 2), (2, 3))


def test_a_shard_listed_twice_has_one_holder(kinds):
    def tensor(replica_id):
        return kinds.ShardedTensor.from_rank_offsets("k", torch.ones(2), replica_id=replica_id)

    found = main_replica_distribution([[tensor(1), tensor(1)], [tensor(0)]])
    assert found.all_ranks_for_shard == {("k", (0,), None): [0, 1]}
