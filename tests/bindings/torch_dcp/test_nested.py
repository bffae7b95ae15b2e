# SPDX-License-Identifier: Apache-2.0
"""Nested dicts and flat names: what each traversal opens, paths, and the way back."""
import pytest
import torch
from torch.distributed.checkpoint import _nested_dict, _version

import shardwright.torch.dcp.planner as ours

T = torch.ones(1)
NEW_AND_OLD = [
    ({"a": {"b": 1}}, ["a.b"], ["a"]),
    ({"a": {"b": T, "c": 2}}, ["a.b", "a.c"], ["a.b", "a.c"]),
    ({"a": [1, 2]}, ["a"], ["a"]),
    ({"a": []}, ["a"], ["a"]),
    ({"a": [T, 2]}, ["a.0", "a.1"], ["a.0", "a.1"]),
    ({"a": [[1], [T]]}, ["a.0", "a.1.0"], ["a.0", "a.1.0"]),
    ({"a": (T, 1)}, ["a"], ["a"]),
    ({"a": [{"x": 1}]}, ["a.0.x"], ["a"]),
    ({"a": {}}, [], ["a"]),
    ({"a": [{}]}, [], ["a"]),
    ({"a": {"b": {"c": {}}}}, [], ["a"]),
    ({"a": [[], {}]}, ["a.0"], ["a"]),
    ({0: {1: T}}, ["0.1"], ["0.1"]),
    ({"x": {1, 2}, "y": None, "z": "text"}, ["x", "y", "z"], ["x", "y", "z"]),
]


def by_torch(state, version):
    _version._derived_version = "2_3" if version == "2.3" else None
    try:
        return _nested_dict.flatten_state_dict(state)
    finally:
        _version._derived_version = None


@pytest.mark.parametrize(("state", "new", "old"), NEW_AND_OLD)
def test_both_traversals_give_the_names_of_torch(state, new, old):
    for version, expected in (("2.4", new), ("2.3", old)):
        flat, paths = ours.flatten_state_dict(state, version)
        assert list(flat) == list(paths) == expected
        theirs = by_torch(state, version)
        assert list(theirs[0]) == expected and theirs[1] == paths
        assert all(flat[name] is theirs[0][name] for name in flat)


def test_paths_tell_positions_from_keys():
    _, paths = ours.flatten_state_dict({"a": [T, {"0": T}], 5: {6: T}})
    assert paths == {"a.0": ("a", 0), "a.1.0": ("a", 1, "0"), "5.6": ("5", "6")}


def test_two_paths_of_one_name_are_refused():
    state = {"a.b": 1, "a": {"b": 2}}
    with pytest.raises(ValueError, match="duplicated flatten key a.b"):
        ours.flatten_state_dict(state)
    assert list(ours.flatten_state_dict(state, "2.3")[0]) == ["a.b", "a"]


def test_a_version_that_is_none_is_refused():
    with pytest.raises(ValueError, match=r"2\.5"):
        ours.flatten_state_dict({}, "2.5")


def test_the_way_back_gives_the_nested_dict():
    state = {"a": [T, {"b": 1}], "c": {"d": {"e": T}}, "f": 3}
    assert ours.unflatten_state_dict(*ours.flatten_state_dict(state)) == state


def test_set_element_makes_containers_and_fills_lists():
    root = {}
    ours.set_element(root, ("a", 2, "b"), 1)
    ours.set_element(root, ("a", 0), 5)
    ours.set_element(root, ("c", 1), 7)
    assert root == {"a": [5, None, {"b": 1}], "c": [None, 7]}


def test_get_element_finds_what_is_there():
    root = {"a": [1, {"b": 2}], "c": 3}
    assert ours.get_element(root, ("a", 1, "b")) == 2
    for path in (("a", 2), ("a", "b"), ("c", 0), ("d",)):
        assert ours.get_element(root, path, "none") == "none"
