# SPDX-License-Identifier: Apache-2.0
"""Parts of a state dict by kind and keys with other prefixes, beside the original."""
import importlib

import pytest
import torch
from shardwright.torch import megatron as ours


@pytest.fixture(params=["ours", "original"])
def names(request):
    """The functions of ours, then those of megatron-core."""
    if request.param == "ours":
        return ours
    request.getfixturevalue("original")
    return importlib.import_module("megatron.core.dist_checkpointing.utils")


def state(kinds):
    return {"m": {"t": kinds.ShardedTensor.from_rank_offsets("a.t", torch.ones(1))},
            "l": [kinds.ShardedObject("a.o", 1, (1,), (0,)), kinds.LocalNonpersistentObject(2)],
            "f": kinds.ShardedTensorFactory("b.f", None, None, None), "c": 3}


PARTS = [("extract_sharded_tensors", {"m"}, {"l", "f", "c"}), ("extract_sharded_tensors_and_factories", {"m", "f"}, {"l", "c"}),
         ("extract_sharded_tensors_or_nonpersistent", {"m", "l", "f"}, {"l", "c"}),
         ("extract_sharded_base", {"m", "l", "f"}, {"l", "c"}), ("extract_nonpersistent", {"l"}, {"m", "l", "f", "c"})]


@pytest.mark.parametrize(("name", "inside", "outside"), PARTS)
def test_parts_by_kind(name, inside, outside, names, original):
    found, rest = getattr(names, name)(state(original.mapping))
    assert (set(found), set(rest)) == (inside, outside)


def keys(tree):
    return [leaf.key for leaf in ours.nested_values(tree) if hasattr(leaf, "key")]


def test_keys_get_other_prefixes(names, original):
    tree = state(original.mapping)
    names.add_prefix_for_sharding(tree, "x.")
    assert keys(tree) == ["x.a.t", "x.a.o", "x.b.f"]
    names.replace_prefix_for_sharding(tree, "x.", "y.")
    names.apply_prefix_mapping(tree, {"y.a.t": "T", "y.a": "A", "z": "Z"})
    assert keys(tree) == ["T", "A.o", "y.b.f"]
    with pytest.raises(ValueError, match="Expected A.o to begin with prefix T"):
        names.replace_prefix_for_sharding(tree, "T", "U")


def test_a_prefix_that_is_not_everywhere_changes_nothing():
    tree = state(ours)
    with pytest.raises(ValueError, match="Expected b.f to begin"):
        ours.replace_prefix_for_sharding(tree, "a.", "z.")
    assert keys(tree) == ["a.t", "a.o", "b.f"]


def test_every_public_name_is_there_and_documented():
    for name in ours.__all__:
        assert getattr(ours, name).__doc__, name
