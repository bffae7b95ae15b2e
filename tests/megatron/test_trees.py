# SPDX-License-Identifier: Apache-2.0
"""Functions on trees, beside those of the original, and lists that keep their positions."""
import copy

import pytest
import torch
from shardwright.torch import megatron as ours
from shardwright.torch.megatron import trees

TREES = [{}, [], {"a": 1, "b": {"c": 2, "d": [3, 4, {"e": 5}], "f": {}}, "g": [], 7: [[], {}]}, [1, [2, 3], {"x": 4}], {"t": (1, 2)}]


@pytest.mark.parametrize("tree", TREES, ids=str)
@pytest.mark.parametrize("lists_as_dicts", [False, True])
def test_splitting_is_that_of_the_original(tree, lists_as_dicts, original):
    for test in (lambda v: v == 3, lambda v: True, lambda v: isinstance(v, int) and v % 2 == 1):
        expected = original.dict_utils.extract_matching_values(copy.deepcopy(tree), test, lists_as_dicts)
        assert trees.extract_matching_values(tree, test, lists_as_dicts) == expected


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_walks_and_maps_are_those_of_the_original(tree, original):
    theirs = original.dict_utils
    assert list(trees.nested_values(tree)) == list(theirs.nested_values(tree))
    assert list(trees.nested_items_iter(tree)) == list(theirs.nested_items_iter(tree))
    assert trees.dict_list_map_outplace(str, tree) == theirs.dict_list_map_outplace(str, tree)
    one, other = copy.deepcopy(tree), copy.deepcopy(tree)
    assert trees.dict_list_map_inplace(str, one) is one
    assert one == theirs.dict_list_map_inplace(str, other)
    one, other = copy.deepcopy(tree), copy.deepcopy(tree)
    trees.dict_map_with_key(lambda k, v: (k, v), one)
    theirs.dict_map_with_key(lambda k, v: (k, v), other)
    assert one == other
    trees.dict_map(lambda v: None, one)
    assert all(value is None for value in trees.nested_values(one))


def test_a_leaf_at_the_top():
    assert trees.dict_list_map_inplace(str, 3) == trees.dict_list_map_outplace(str, 3) == "3"
    with pytest.raises(ValueError, match="Unexpected top-level object type"):
        trees.extract_matching_values(3, bool)


def test_merging_adds_in_place_and_names_what_occurs_twice(original):
    for merge in (trees.merge, original.dict_utils.merge):
        target = {"a": {"b": 1}, "l": [{"x": 1}, {}]}
        assert merge(target, {"a": {"c": 2}, "l": [{}, {"y": 2}], "n": 3}) is target
        assert target == {"a": {"b": 1, "c": 2}, "l": [{"x": 1}, {"y": 2}], "n": 3}
        with pytest.raises(ValueError, match="Duplicate non-dict and non-list values"):
            merge({"a": {"b": 1}}, {"a": {"b": 2}})
        with pytest.raises(ValueError, match="different lengths"):
            merge([1], [1, 2])
    with pytest.raises(ValueError, match=r"a\.b"):
        trees.merge({"a": {"b": 1}}, {"a": {"b": 2}})


def test_differences_are_named_with_their_types():
    left = {"a": 1, "t": torch.tensor([1, 2]), "l": [1, 2, 3], "only": 0, "s": ours.ShardedObject("k", {"v": 1}, (1,), (0,))}
    right = {"a": "1", "t": torch.tensor([1, 3]), "l": [1, 5], "more": 0, "s": ours.ShardedObject("k", {"v": 2}, (1,), (0,))}
    only_left, only_right, mismatch = trees.diff(left, right)
    assert only_left == [("only",), ("l", 2)] and only_right == [("more",)]
    assert mismatch == [(("a",), int, str), (("t",), torch.Tensor, torch.Tensor), (("l", 1), int, int),
                        (("s", ours.ShardedObject, "v"), int, int)]
    assert trees.diff(left, dict(left)) == ([], [], [])
    assert trees.diff({"t": torch.ones(2)}, {"t": torch.ones(3)})[2]


def test_reducing_groups_by_key():
    assert trees.map_reduce([1, 2, 3, 4], lambda x: x % 2, lambda x: x * 10, sum) == {1: 40, 0: 60}
    assert trees.map_reduce("aba") == {"a": ["a", "a"], "b": ["b"]}


def test_a_list_of_sharded_and_other_values_cannot_be_merged_again_by_the_original(original):
    tree = {"l": [{"x": 1.5}, 3]}
    sharded, common = original.dict_utils.extract_matching_values(copy.deepcopy(tree), lambda v: isinstance(v, float))
    with pytest.raises(ValueError, match="Duplicate non-dict and non-list values"):
        original.dict_utils.merge(common, sharded)


@pytest.mark.parametrize("tree", TREES[2:] + [{"l": [{"x": 1.5}, 3]}, [1.5, 2, [3, 2.5]]], ids=str)
def test_parts_are_joined_at_the_positions_that_they_had(tree):
    parts = trees.extract_matching_values(tree, lambda v: isinstance(v, float) or v == 3, return_lists_as_dicts=True)
    assert trees.join_like(tree, *parts) == tree


def test_joining_names_positions_without_a_value_or_with_two():
    with pytest.raises(ValueError, match=r"0 values for the position l\.1"):
        trees.join_like({"l": [1, 2]}, {"l": {0: 1}})
    with pytest.raises(ValueError, match="2 values for the position a"):
        trees.join_like({"a": 1}, {"a": 1}, {"a": 2})


def factory(**changed):
    def build(key, data, replica_id, flattened_range):
        half = data.shape[0] // 2
        return [ours.ShardedTensor.from_rank_offsets(f"{key}_{name}", part, replica_id=replica_id)
                for name, part in (("w", data[:half]), ("v", data[half:]))]
    return ours.ShardedTensorFactory(**({"key": "k", "data": torch.arange(4), "build_fn": build, "merge_fn": torch.cat} | changed))


def test_factories_build_and_merge_at_their_positions():
    tree = {"a": [factory(replica_id=(0, 1)), {"b": factory()}]}
    template, _ = trees.extract_matching_values(tree, lambda v: True, return_lists_as_dicts=True)
    built = ours.with_factories_applied(tree)
    assert isinstance(tree["a"][0], ours.ShardedTensorFactory)
    assert [leaf.key for leaf in built["a"][0]] == ["k_w", "k_v"] and built["a"][0][0].replica_id == (0, 1)
    loaded = trees.dict_list_map_outplace(lambda leaf: leaf.data, built)
    for recorded in (template, tree):
        merged = ours.apply_factory_merges(copy.deepcopy(loaded), recorded)
        assert merged["a"][0].tolist() == merged["a"][1]["b"].tolist() == [0, 1, 2, 3]
    ours.apply_factories(tree)
    assert tree["a"][1]["b"][1].key == "k_v" and factory().without_data().data is None


@pytest.mark.parametrize(("loaded", "recorded", "text"), [
    ({"a": [1]}, {"b": [1]}, "Different dict keys"), ({"a": [1]}, {"a": [1, 2]}, "different lengths"),
    ({"a": [1]}, {"a": {"x": 1}}, "non-integer"), ({"a": [1]}, {"a": {3: 1}}, "out of bound"), ({"a": 1}, {"a": 1}, "Duplicate"),
])
def test_merges_name_a_wrong_structure(loaded, recorded, text, original):
    for merge in (ours.apply_factory_merges, original.mapping.apply_factory_merges):
        with pytest.raises(ValueError, match=text):
            merge(copy.deepcopy(loaded), recorded)
