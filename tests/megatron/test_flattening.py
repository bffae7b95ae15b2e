# SPDX-License-Identifier: Apache-2.0
"""State dicts by global name and back: names, paths, groups, types of keys; beside the original."""
import pytest
import torch
from shardwright.torch import megatron as ours


def state(kinds):
    def tensor(key, **changed):
        return kinds.ShardedTensor.from_rank_offsets(key, torch.ones(2), **changed)

    return {"model": {"w": tensor("W"), 3: {"b": tensor("B", replica_id=(0, 1))}},
            "list": [tensor("W"), [tensor("L")], {"x": kinds.ShardedObject("O", 7, (2,), (1,))}],
            "mixed": {True: kinds.ShardedObject("O", 8, (2,), (1,)), "y": tensor("Y", replica_id=1)}}


def test_names_paths_and_groups_are_those_of_the_original(original):
    tree = state(original.mapping)
    for only_main in (False, True):
        expected = original.strategies._replace_state_dict_keys_with_sharded_keys(tree, only_main)
        found = ours._replace_state_dict_keys_with_sharded_keys(tree, only_main)
        assert found[0] == dict(expected[0]) and list(found[0]) == list(expected[0])
        assert found[1] == expected[1] and found[2] == dict(expected[2])
    plain = {"a": [1, 2], "b": [torch.ones(1), 3], "t": (torch.ones(1),), "e": {}, "n": [[], [torch.ones(1)]], "m": [{}]}
    assert ours.flatten_state_dict(plain)[1] == original.strategies.flatten_state_dict(plain)[1]


def test_values_come_back_to_their_places(kinds):
    tree = state(kinds)
    grouped, paths, names = ours._replace_state_dict_keys_with_sharded_keys(tree)
    assert names["W"] == ["model.w", "list.0"] and list(grouped)[:2] == ["W", "B"]
    values = {key: [f"{key}#{number}" for number in range(len(leaves))] for key, leaves in grouped.items()}
    found = ours._replace_sharded_keys_with_state_dict_keys(values, paths, names)
    ours._restore_dict_types(found, tree)
    assert found == {"model": {"w": "W#0", 3: {"b": "B#0"}},
                     "list": ["W#1", ["L#0"], {"x": "O/shard_1_2#0"}], "mixed": {True: "O/shard_1_2#1", "y": "Y#0"}}


def test_the_way_back_is_that_of_the_original(original):
    tree = state(original.mapping)
    grouped, paths, names = ours._replace_state_dict_keys_with_sharded_keys(tree)
    values = {key: list(range(len(leaves))) for key, leaves in grouped.items()}
    expected = original.strategies._replace_sharded_keys_with_state_dict_keys(values, paths, names)
    found = ours._replace_sharded_keys_with_state_dict_keys(values, paths, names)
    assert found == expected
    original.strategies._restore_dict_types(expected, tree)
    ours._restore_dict_types(found, tree)
    assert found == expected


def test_two_paths_with_one_name_are_refused():
    with pytest.raises(ValueError, match=r"duplicated flatten key a\.b.*\('a', 'b'\) and \('a\.b',\)"):
        ours.flatten_state_dict({"a": {"b": 1}, "a.b": 2})


def test_what_does_not_fit_is_an_assertion():
    with pytest.raises(AssertionError, match=r"a\.b is a int"):
        ours._replace_state_dict_keys_with_sharded_keys({"a": {"b": 1}})
    with pytest.raises(AssertionError, match="1 values for 2 places"):
        ours._replace_sharded_keys_with_state_dict_keys({"K": [1]}, {}, {"K": ["a", "b"]})
    for loaded, template in (([], {"a": 1}), ({"a": 1}, {"a": [1]}), ({"b": 1}, {"a": 1}), ({"b": 1}, {3: 1})):
        with pytest.raises(AssertionError):
            ours._restore_dict_types(loaded, template)
