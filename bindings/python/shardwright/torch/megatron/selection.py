# SPDX-License-Identifier: Apache-2.0
"""Parts of a sharded state dict by kind, and global keys with other prefixes.

The functions that rename change the keys of the given descriptors; that is what they are for.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import InvalidArgumentError
from .kinds import is_factory, is_nonpersistent, is_sharded_base, is_sharded_tensor
from .trees import Tree, extract_matching_values, nested_values


def extract_sharded_tensors(sharded_state_dict: Tree) -> tuple[Tree, Tree]:
    """(ShardedTensors, the rest), both with the hierarchy of the state dict."""
    return extract_matching_values(sharded_state_dict, is_sharded_tensor)


def extract_sharded_tensors_and_factories(sharded_state_dict: Tree) -> tuple[Tree, Tree]:
    """(ShardedTensors and factories, the rest)."""
    return extract_matching_values(sharded_state_dict, lambda leaf: is_sharded_tensor(leaf) or is_factory(leaf))


def extract_sharded_tensors_or_nonpersistent(sharded_state_dict: Tree) -> tuple[Tree, Tree]:
    """(ShardedTensors, factories and LocalNonpersistentObjects, the rest)."""
    return extract_matching_values(
        sharded_state_dict, lambda leaf: is_sharded_tensor(leaf) or is_factory(leaf) or is_nonpersistent(leaf))


def extract_sharded_base(sharded_state_dict: Tree) -> tuple[Tree, Tree]:
    """(ShardedTensors, ShardedObjects and factories, the rest)."""
    return extract_matching_values(sharded_state_dict, is_sharded_base)


def extract_nonpersistent(sharded_state_dict: Tree) -> tuple[Tree, Tree]:
    """(LocalNonpersistentObjects, the rest)."""
    return extract_matching_values(sharded_state_dict, is_nonpersistent)


def add_prefix_for_sharding(sharded_state_dict: Tree, prefix: str) -> None:
    """Puts `prefix` before all global keys, in place."""
    for leaf in nested_values(sharded_state_dict):
        if is_sharded_base(leaf):
            leaf.key = f"{prefix}{leaf.key}"


def replace_prefix_for_sharding(sharded_state_dict: Tree, old_prefix: str, new_prefix: str) -> None:
    """Replaces a prefix of all global keys, in place.

    Raises:
        InvalidArgumentError: a key does not begin with it; then no key is changed.
    """
    leaves = [leaf for leaf in nested_values(sharded_state_dict) if is_sharded_base(leaf)]
    for leaf in leaves:
        if not leaf.key.startswith(old_prefix):
            raise InvalidArgumentError(f"Expected {leaf.key} to begin with prefix {old_prefix}", {"key": leaf.key})
    for leaf in leaves:
        leaf.key = f"{new_prefix}{leaf.key.removeprefix(old_prefix)}"


def apply_prefix_mapping(sharded_state_dict: Tree, prefix_map: Mapping[str, str]) -> None:
    """Replaces the first prefix of the map that a global key begins with, in place; other keys stay."""
    for leaf in nested_values(sharded_state_dict):
        found: Any = is_sharded_base(leaf) and next((old for old in prefix_map if leaf.key.startswith(old)), None)
        if isinstance(found, str):
            leaf.key = f"{prefix_map[found]}{leaf.key.removeprefix(found)}"
