# SPDX-License-Identifier: Apache-2.0
"""The greedy distribution: tables, the reference set of eight ranks, random worlds beside the plain rule and the original."""
import itertools
import random

import oracle
import pytest
import torch
import shardwright.torch.megatron as ours
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


# ---- shards without elements ----

def line(kinds, counts, main=True):
    """One rank per count: a line that is cut into so many elements each."""
    starts = [sum(counts[:rank]) for rank in range(len(counts))]
    return [[kinds.ShardedTensor("k", torch.ones(count), torch.float32, (count,), (sum(counts),), (start,), None,
                                 replica_id=0 if main else 1)] for count, start in zip(counts, starts)]


@pytest.mark.parametrize("loading", [False, True])
def test_empty_shards_leave_the_distribution(kinds, loading):
    for counts, owners in (([5, 0, 5], {0: 0, 5: 2}), ([0, 5], {0: 1}), ([0, 0, 3, 0], {0: 2}), ([0, 0], {})):
        found = main_replica_distribution(line(kinds, counts), loading)
        assert found.main_rank_for_shard == {("k", (start,), None): rank for start, rank in owners.items()}
        assert found.shards_in_this_group == set(found.shard_to_metadata) == set(found.main_rank_for_shard)
        assert found.all_ranks_for_shard == {shard: [rank] for shard, rank in found.main_rank_for_shard.items()}
        for rank, (leaf,) in enumerate(line(kinds, counts)):
            applied = with_owners({"k": leaf}, found, rank)["k"].replica_id
            assert applied == (0 if counts[rank] or loading else 1), "in a save nobody writes nothing; a load needs nobody for it"


def test_in_the_original_an_empty_shard_owns_its_neighbour(original, monkeypatch):
    """Its ids have no sizes. An owner that holds none of a shard's elements saves none."""
    theirs = original.exchange_utils
    for counts, saved in (([5, 0, 5], 5), ([0, 5], 0)):
        states = line(original.mapping, counts)
        monkeypatch.setattr(theirs, "get_pg_size", lambda group: len(states))
        monkeypatch.setattr(torch.distributed, "all_gather_object",
                            lambda out, mine, group: out.__setitem__(slice(None), states))
        owners = theirs.determine_main_replica_uniform_distribution({"s": states[0]}, object(), False).main_rank_for_shard
        assert sum(counts[rank] for rank in owners.values()) == saved


def grid_world(kinds, source):
    """What some ranks hold of some tensors: cells of random cuts, empty ones among them, each on one rank or several, of
    which one is main."""
    ranks = source.randint(1, 6)
    held, shapes = [[] for _ in range(ranks)], {}
    for number in range(source.randint(1, 4)):
        shape = tuple(source.choice([1, 2, 5, 7]) for _ in range(source.randint(1, 2)))
        cuts = [sorted(source.choices(range(extent + 1), k=source.randint(0, 3))) for extent in shape]
        edges = [[0, *cut, extent] for cut, extent in zip(cuts, shape)]
        shapes[f"k{number}"] = shape
        for cell in itertools.product(*(range(len(edge) - 1) for edge in edges)):
            offset = tuple(edge[place] for edge, place in zip(edges, cell))
            sizes = tuple(edge[place + 1] - edge[place] for edge, place in zip(edges, cell))
            for replica, rank in enumerate(source.sample(range(ranks), source.randint(1, ranks))):
                held[rank].append(kinds.ShardedTensor(f"k{number}", torch.ones(sizes), torch.float32, sizes, shape, offset,
                                                      None, replica_id=replica))
    return held, shapes


@pytest.mark.parametrize("loading", [False, True])
def test_every_element_has_one_writer(loading):
    for number in range(300):
        held, shapes = grid_world(ours, random.Random(number))
        found = main_replica_distribution(held, loading)
        written = {key: [] for key in shapes}
        for rank, leaves in enumerate(held):
            mine = {}
            for leaf in ours.nested_values(with_owners(leaves, found, rank)):
                if leaf.replica_id == 0:
                    mine[shard_id_of(leaf), leaf.local_shape] = leaf
            for leaf in mine.values():
                written[leaf.key].append((leaf.global_offset, leaf.local_shape))
        for key, boxes in written.items():
            assert set(oracle.counts(shapes[key], boxes).values()) == {1}, number
