# SPDX-License-Identifier: Apache-2.0
"""Proof of whole tensors and grids, beside a count of every element, and the strictness table."""
import enum
import logging
import random

import oracle
import pytest
import torch
from shardwright.torch.megatron import (CheckpointingException, ShardedObject, ShardedTensor, StrictHandling, parse_strict_flag,
                                        validate_integrity_and_strict_load, validate_sharding_integrity)
from shardwright.torch.megatron.validation import compare_common_state_dicts


def shard(key="k", shape=(4,), *offsets, replica_id=0, kinds=None, **changed):
    made = (kinds.ShardedTensor if kinds else ShardedTensor).from_rank_offsets(key, torch.ones(shape), *offsets,
                                                                               replica_id=replica_id, **changed)
    return made.without_data()


def test_a_whole_grid_passes(kinds):
    ranks = [[shard("k", (4,), (0, 0, 2), (1, r, 3), prepend_axis_num=1, kinds=kinds),
              shard("k", (4,), (0, 1, 2), (1, r, 3), prepend_axis_num=1, kinds=kinds),
              shard("r", (2, 2), replica_id=(0, r), kinds=kinds), kinds.ShardedObject("o", None, (3,), (r,)),
              kinds.ShardedObject("one", None, (), (), replica_id=r)] for r in range(3)]
    validate_sharding_integrity(ranks)


BROKEN = [
    ("hole", [[shard("k", (4,), (0, 0, 3))], [shard("k", (4,), (0, 2, 3))]], r"1 of 3 shards .* position \(1,\)"),
    ("twice", [[shard("k", (4,), (0, 0, 2))], [shard("k", (4,), (0, 0, 2)), shard("k", (4,), (0, 1, 2))]], r"ranks \[0, 1\]"),
    ("no main", [[shard(replica_id=1)], [shard(replica_id=(0, 1))]], "1 of 1 shards"),
    ("dtype", [[shard()], [shard(replica_id=1).__class__("k", None, torch.int8, (4,), (4,), (0,), (1,), 1)]], "dtype is torch.float32 on rank 0"),
    ("shape", [[shard("k", (4,))], [shard("k", (4,), (0, 1, 2))]], "global_shape is"),
    ("kind", [[shard()], [ShardedObject("k", None, (1,), (0,))]], "a tensor on one rank"),
    ("object twice", [[ShardedObject("o", None, (1,), (0,))]] * 2, r"Duplicate ShardedObject keys: \['o/shard_0_1'\]"),
    ("object missing", [[ShardedObject("o", None, (3,), (1,))]], "2 ShardedObject are missing"),
    ("object grids", [[ShardedObject("o", None, (1,), (0,))], [ShardedObject("o", None, (2,), (1,))]], "extents"),
]


@pytest.mark.parametrize(("ranks", "text"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_what_is_broken_is_named(ranks, text):
    with pytest.raises(CheckpointingException, match=text):
        validate_sharding_integrity(ranks)


@pytest.mark.parametrize("case", [1, 2, 3, 6, 7])
def test_the_original_refuses_those_too(case, original, one_rank):
    theirs = original.mapping
    ranks = [[theirs.ShardedObject(leaf.key, None, leaf.global_shape, leaf.global_offset) if isinstance(leaf, ShardedObject)
              else theirs.ShardedTensor(leaf.key, None, leaf.dtype, leaf.local_shape, leaf.global_shape, leaf.global_offset,
                                        leaf.axis_fragmentations, leaf.replica_id) for leaf in rank] for rank in BROKEN[case][1]]
    with pytest.raises((AssertionError, theirs.CheckpointingException)):
        original.validation.validate_sharding_integrity(ranks)


def irregular(offset, sizes, shape, replica_id=0):
    return ShardedTensor("k", None, torch.float32, tuple(sizes), tuple(shape), tuple(offset), None, replica_id)


def test_irregular_grids_are_proved_too(original, one_rank):
    whole = [[irregular((0,), (5,), (8,))], [irregular((5,), (3,), (8,))], [irregular((8,), (0,), (8,))]]
    validate_sharding_integrity(whole)
    gap = whole[:1]
    original.validation.validate_sharding_integrity(gap)  # the original leaves it to a later step
    with pytest.raises(CheckpointingException, match="5 of 8 elements"):
        validate_sharding_integrity(gap)
    with pytest.raises(CheckpointingException, match="of rank 0 .* and of rank 1 .* overlap"):
        validate_sharding_integrity([[irregular((0,), (5,), (8,))], [irregular((4,), (4,), (8,))]])
    with pytest.raises(CheckpointingException, match="overlap"):
        validate_sharding_integrity([[irregular((), (), ())], [irregular((), (), ())]])


def split(source, offset, sizes, depth):
    """Random guillotine cuts of a box."""
    axis = source.randrange(len(sizes))
    if depth == 0 or sizes[axis] < 2:
        return [(offset, sizes)]
    cut = source.randint(0, sizes[axis])
    first, second = list(sizes), list(sizes)
    first[axis], second[axis] = cut, sizes[axis] - cut
    moved = list(offset)
    moved[axis] += cut
    return split(source, offset, first, depth - 1) + split(source, moved, second, depth - 1)


def test_random_irregular_worlds_agree_with_a_count_of_every_element():
    for number in range(300):
        source = random.Random(number)
        shape = [source.randint(1, 5) for _ in range(source.randint(1, 3))]
        boxes = split(source, [0] * len(shape), shape, 4)
        if source.random() < 0.5:
            del boxes[source.randrange(len(boxes))]
        if source.random() < 0.5:
            offset = [source.randrange(extent) for extent in shape]
            boxes.append((offset, [source.randint(0, extent - o) for o, extent in zip(offset, shape)]))
        whole = set(oracle.counts(shape, boxes).values()) == {1}
        try:
            validate_sharding_integrity([[irregular(offset, sizes, shape)] for offset, sizes in boxes] + [[]])
            found = True
        except CheckpointingException:
            found = False
        assert found == (whole or not boxes), number


def test_flattened_ranges_must_fill_their_shard():
    def flat(start, stop):
        return ShardedTensor.from_rank_offsets_flat("k", torch.ones(stop - start), (4, 3), flattened_range=slice(start, stop))

    validate_sharding_integrity([[flat(5, 12)], [flat(0, 5)]])
    for ranks, text in (([[flat(0, 5)], [flat(6, 12)]], "a hole before element 6"), ([[flat(0, 5)]], "ends at element 5 of 12"),
                        ([[flat(0, 5)], [flat(4, 12)]], "two holders of element 4"), ([[flat(0, 12)], [shard("k", (4, 3))]], "flattened on one")):
        with pytest.raises(CheckpointingException, match=text):
            validate_sharding_integrity(ranks)


def test_a_million_cells_cost_nothing_when_few_are_held():
    tensor = ShardedTensor.from_rank_offsets("k", torch.ones(1), (0, 0, 10**6), (1, 0, 10**6), prepend_axis_num=2)
    with pytest.raises(CheckpointingException, match=f"{10**12 - 1} of {10**12}"):
        validate_sharding_integrity([[tensor]])


def test_differing_common_state_is_told_per_rank():
    found = compare_common_state_dicts([{"a": 1, "b": 2}, {"a": 1, "b": 2}, {"a": 2}])
    assert len(found) == 1 and "Rank 2 common state dict differs" in found[0] and "('b',)" in found[0]


# ---- strictness ----

STORED = {leaf.key if isinstance(leaf, ShardedTensor) else leaf.unique_key: leaf for leaf in (
    shard("TenA"), shard("TenB"), ShardedObject("ObjA", None, (1,), (0,)), ShardedObject("ObjB", None, (2,), (0,)),
    ShardedObject("ObjB", None, (2,), (1,)), ShardedObject("common_state", None, (1,), (0,)))}


def request():
    return {"b": shard("TenB"), "d": shard("UnexpectedTenD"), "l": [ShardedObject("ObjA", None, (1,), (0,)),
                                                                    ShardedObject("UnexpectedObjD", None, (1,), (0,))]}


MISSING, UNEXPECTED = {"TenA", "ObjB"}, {"UnexpectedTenD", "UnexpectedObjD"}
TABLE = [("assume_ok_unexpected", set(), set(), 4), ("log_unexpected", set(), UNEXPECTED, 2), ("log_all", MISSING, UNEXPECTED, 2),
         ("return_unexpected", set(), UNEXPECTED, 2), ("return_all", MISSING, UNEXPECTED, 2), ("ignore_all", set(), set(), 2),
         ("raise_unexpected", set(), UNEXPECTED, None), ("raise_all", MISSING, UNEXPECTED, None)]


@pytest.mark.parametrize(("flag", "missing", "unexpected", "left"), TABLE, ids=[row[0] for row in TABLE])
def test_the_strictness_table(flag, missing, unexpected, left, caplog):
    strict = parse_strict_flag(flag)
    wanted = request()
    everyone = [list(leaf for leaf in (wanted["b"], wanted["d"], *wanted["l"]))]
    caplog.set_level(logging.WARNING)
    if left is None:
        with pytest.raises(CheckpointingException, match="Unexpected keys") as caught:
            validate_integrity_and_strict_load(wanted, strict, False, None, everyone, STORED)
        assert all(repr(key) in str(caught.value) for key in missing | unexpected)
        assert ("Missing keys (for all ranks)" in str(caught.value)) == bool(missing)
        return
    state, *found = validate_integrity_and_strict_load(wanted, strict, False, None, everyone, STORED)
    assert found == [missing, unexpected]
    assert sum(len(value) if isinstance(value, list) else 1 for value in state.values()) == left
    assert len(wanted["l"]) == 2
    assert bool(caplog.records) == flag.startswith("log")
    assert StrictHandling.requires_explicit_ckpt_mismatch_check(strict) == (flag != "assume_ok_unexpected")
    assert StrictHandling.requires_global_app_metadata(strict) == flag.endswith("all")
    assert StrictHandling.requires_returning_mismatch_keys(strict) == flag.startswith("return")


def test_the_sets_are_those_of_the_original(original):
    theirs = original.mapping
    stored = {name: theirs.ShardedObject(leaf.key, None, leaf.global_shape, leaf.global_offset) if isinstance(leaf, ShardedObject)
              else leaf for name, leaf in STORED.items() if leaf.key != "common_state"}
    wanted = request()
    everyone = [wanted["b"], wanted["d"], *wanted["l"]]
    found = original.validation._determine_missing_and_unexpected_keys(stored, everyone, [everyone])
    assert found == (MISSING, UNEXPECTED)


def test_a_missing_cell_of_a_grid_is_noticed(original):
    """The original compares keys and sees nothing."""
    one = ShardedObject("ObjB", None, (2,), (0,))
    stored = {name: leaf for name, leaf in STORED.items() if leaf.key == "ObjB"}
    assert original.validation._determine_missing_and_unexpected_keys(stored, [one], [[one]]) == (set(), set())
    _, missing, _ = validate_integrity_and_strict_load({"o": one}, StrictHandling.RETURN_ALL, False, None, [[one]], stored)
    assert missing == {"ObjB/shard_1_2"}
    other = ShardedObject("ObjB", None, (3,), (2,))
    state, _, unexpected = validate_integrity_and_strict_load({"o": one, "p": other}, StrictHandling.RETURN_UNEXPECTED, False,
                                                              None, None, stored)
    assert unexpected == {"ObjB/shard_2_3"} and state == {"o": one}


def test_flags_and_descriptions_that_are_needed():
    with pytest.raises(ValueError, match="Invalid strict flag"):
        parse_strict_flag("strictest")
    assert parse_strict_flag(StrictHandling.LOG_ALL) is StrictHandling.LOG_ALL
    with pytest.raises(CheckpointingException, match="ckpt_sharded_metadata=None"):
        validate_integrity_and_strict_load({}, StrictHandling.RAISE_ALL, False)
    with pytest.raises(CheckpointingException, match=r"global_metadata \(None\)"):
        validate_integrity_and_strict_load({}, StrictHandling.ASSUME_OK_UNEXPECTED, True)
    with pytest.raises(CheckpointingException, match="1 of 2 shards"):
        validate_integrity_and_strict_load({}, StrictHandling.ASSUME_OK_UNEXPECTED, True, None, [[shard("k", (4,), (0, 0, 2))]])


def test_members_of_the_original_are_taken_for_ours(original, caplog):
    theirs = original.validation.StrictHandling
    for member in theirs:
        mine = StrictHandling(member.value)
        assert parse_strict_flag(member) is member and original.validation.parse_strict_flag(member) is member
        for rule in ("requires_explicit_ckpt_mismatch_check", "requires_global_app_metadata", "requires_returning_mismatch_keys"):
            assert getattr(StrictHandling, rule)(member) == getattr(StrictHandling, rule)(mine) == getattr(theirs, rule)(member)
    stranger = {"k": shard("stranger", (4,), (0, 0, 1))}
    with pytest.raises(CheckpointingException, match="stranger"):
        validate_integrity_and_strict_load(stranger, theirs.RAISE_UNEXPECTED, False, None, None, STORED)
    left, missing, unexpected = validate_integrity_and_strict_load(stranger, theirs.RETURN_UNEXPECTED, False, None, None, STORED)
    assert (left, missing, unexpected) == ({}, set(), {"stranger"})
    other = enum.Enum("Other", {"RAISE_ALL": "raise_all"})
    with pytest.raises(ValueError, match="Invalid strict flag"):
        parse_strict_flag(other.RAISE_ALL)
