# SPDX-License-Identifier: Apache-2.0
"""Sharded state dicts as flat dicts by global key, and back.

Flat names are those of torch's checkpoint (2.4 and later): the path joined with ".", mappings always opened, lists
opened where they hold mappings, opened lists, tensors or shards. The names with a leading underscore are the
original's.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from ...errors import AlreadyExistsError, InvalidArgumentError
from .errors import require
from .kinds import is_main_replica, is_sharded_base, is_sharded_object

Path = tuple[str | int, ...]


class DuplicateNameError(AlreadyExistsError, InvalidArgumentError):
    """Two paths of a state dict give one flat name; a ValueError, too."""

    code, status = AlreadyExistsError.code, AlreadyExistsError.status


def _opens(value: Any) -> bool:
    """True when a list is entered; any other value but a mapping is a leaf."""
    return isinstance(value, list) and any(
        isinstance(entry, (torch.Tensor, Mapping)) or is_sharded_base(entry) or _opens(entry) for entry in value)


def _visit(path: Path, value: Any, visitor: Callable[[Path, Any], None]) -> None:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            _visit((*path, str(name)), inner, visitor)
    elif _opens(value):
        for position, inner in enumerate(value):
            _visit((*path, position), inner, visitor)
    else:
        visitor(path, value)


def flatten_state_dict(state_dict: Mapping[Any, Any]) -> tuple[dict[str, Any], dict[str, Path]]:
    """Leaves by flat name, and the path of each name. Names of dict keys are text in paths, positions in lists are int.

    Raises:
        DuplicateNameError: two paths give one name; says both.
    """
    flattened: dict[str, Any] = {}
    mappings: dict[str, Path] = {}

    def add(path: Path, value: Any) -> None:
        name = ".".join(map(str, path))
        if name in flattened:
            raise DuplicateNameError(f"duplicated flatten key {name}: the paths {mappings[name]} and {path}",
                                     {"name": name})
        flattened[name], mappings[name] = value, path

    _visit((), state_dict, add)
    return flattened, mappings


def unflatten_state_dict(values: Mapping[str, Any], mappings: Mapping[str, Path]) -> dict[Any, Any]:
    """The inverse of flatten_state_dict for the names in `values`. Positions without a value are None in lists."""
    nested: dict[Any, Any] = {}
    for name, value in values.items():
        _put(nested, mappings[name], value)
    return nested


def _put(target: Any, path: Path, value: Any) -> None:
    for step, following in zip(path, path[1:], strict=False):
        empty: Any = [] if isinstance(following, int) else {}
        target = _child(target, step, empty)
    if isinstance(target, list):
        _child(target, path[-1], None)
    target[path[-1]] = value


def _child(target: Any, step: Any, empty: Any) -> Any:
    if isinstance(target, dict):
        return target.setdefault(step, empty)
    target.extend([None] * (step + 1 - len(target)))
    if target[step] is None:
        target[step] = empty
    return target[step]


def global_name(leaf: Any) -> str:
    """Name of a leaf on disk: the key of a tensor, the unique key of an object."""
    name: str = leaf.unique_key if is_sharded_object(leaf) else leaf.key
    return name


def _replace_state_dict_keys_with_sharded_keys(
        sharded_state_dict: Mapping[Any, Any],
        keep_only_main_replica: bool = False) -> tuple[dict[str, list[Any]], dict[str, Path], dict[str, list[str]]]:
    """Groups the leaves by global name.

    Args:
        keep_only_main_replica: leave out what another rank saves.
    Returns:
        Leaves of each global name in order of the state dict; paths of flat names; flat names of each global name.
    Raises:
        ShardingAssertionError: a leaf is no sharded tensor, object or factory.
    """
    flat, flat_mapping = flatten_state_dict(sharded_state_dict)
    grouped: dict[str, list[Any]] = {}
    rename_mapping: dict[str, list[str]] = {}
    for name, leaf in flat.items():
        require(is_sharded_base(leaf), f"{name} is a {type(leaf).__name__}, which is not sharded", path=name)
        if is_main_replica(leaf.replica_id) or not keep_only_main_replica:
            key = global_name(leaf)
            grouped.setdefault(key, []).append(leaf)
            rename_mapping.setdefault(key, []).append(name)
    return grouped, flat_mapping, rename_mapping


def _replace_sharded_keys_with_state_dict_keys(state_dict: Mapping[str, list[Any]], flat_mapping: Mapping[str, Path],
                                               rename_mapping: Mapping[str, list[str]]) -> dict[Any, Any]:
    """Puts the n-th value of each global name at the n-th path that _replace_state_dict_keys_with_sharded_keys
    recorded.

    Raises:
        ShardingAssertionError: a name has more or fewer values than paths.
    """
    recovered: dict[str, Any] = {}
    for key, values in state_dict.items():
        names = rename_mapping[key]
        require(len(values) == len(names), f"{key} has {len(values)} values for {len(names)} places", key=key)
        recovered.update(zip(names, values, strict=True))
    return unflatten_state_dict(recovered, flat_mapping)


def _restore_dict_types(x: Any, keys_template: Any) -> None:
    """Gives the dicts of `x`, in place, the keys of `keys_template` where those are no text.

    Raises:
        ShardingAssertionError: the trees differ in structure.
    """
    if isinstance(keys_template, dict):
        require(isinstance(x, dict), f"expected a dict, found a {type(x).__name__}")
        for key, value in keys_template.items():
            if not isinstance(key, str):
                require(str(key) in x, f"the key {key!r} is not among {list(x)[:5]}")
                x[key] = x.pop(str(key))
            require(key in x, f"the key {key!r} is not among {list(x)[:5]}")
            _restore_dict_types(x[key], value)
    elif isinstance(keys_template, list):
        require(isinstance(x, list), f"expected a list, found a {type(x).__name__}")
        for inner, template in zip(x, keys_template, strict=False):
            _restore_dict_types(inner, template)
