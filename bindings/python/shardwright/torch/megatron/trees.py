# SPDX-License-Identifier: Apache-2.0
"""Functions on trees of dict and list; everything else is a leaf, tuples too. Depth first, in the order of the dict.

The names are those of Megatron's dict_utils and do the same, `join_like` excepted: it puts parts of a tree together at
the positions that they had, in lists, too, where the original's split shifts them.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from ...errors import InvalidArgumentError

Tree = Any
_ABSENT = object()


def extract_matching_values(x: Tree, predicate: Callable[[Any], bool],
                            return_lists_as_dicts: bool = False) -> tuple[Tree, Tree]:
    """Splits a tree into the leaves for which `predicate` holds and the rest; both keep the hierarchy.

    Empty containers of a dict go to the rest. Elements of a list close up; with `return_lists_as_dicts` a list becomes
    a dict from position to element.

    Raises:
        InvalidArgumentError: the top is neither dict nor list.
    """
    if not isinstance(x, (dict, list)):
        raise InvalidArgumentError(f"Unexpected top-level object type: {type(x)}", {"type": type(x).__name__})
    keyed = isinstance(x, dict) or return_lists_as_dicts
    matching: Tree = {} if keyed else []
    rest: Tree = {} if keyed else []
    for name, value in x.items() if isinstance(x, dict) else enumerate(x):
        if isinstance(value, (dict, list)) and (value or isinstance(x, dict)):
            inside, outside = extract_matching_values(value, predicate, return_lists_as_dicts)
            parts = [(matching, inside)] if inside else []
            if outside or not value:
                parts.append((rest, outside))
        else:
            parts = [(matching if predicate(value) else rest, value)]
        for target, part in parts:
            if keyed:
                target[name] = part
            else:
                target.append(part)
    return matching, rest


def join_like(template: Tree, *parts: Tree) -> Tree:
    """A tree with the structure of `template` and the leaves of `parts`: splits of it, with lists as dicts or as lists.

    Raises:
        InvalidArgumentError: a position has no value, or two.
    """
    return _joined(template, parts, ())


def _joined(template: Tree, parts: Iterable[Tree], path: tuple[Any, ...]) -> Tree:
    where = ".".join(map(str, path)) or "the top"
    present = [part for part in parts if part is not _ABSENT]
    if not isinstance(template, (dict, list)):
        if len(present) != 1:
            raise InvalidArgumentError(f"{len(present)} values for the position {where}, expected 1", {"path": where})
        return present[0]
    if isinstance(template, dict):
        return {name: _joined(value, [_at(part, name) for part in present], (*path, name))
                for name, value in template.items()}
    return [_joined(value, [_at(part, position) for part in present], (*path, position))
            for position, value in enumerate(template)]


def _at(part: Tree, name: Any) -> Any:
    if isinstance(part, dict):
        return part.get(name, _ABSENT)
    return part[name] if isinstance(part, list) and name < len(part) else _ABSENT


def diff(x1: Any, x2: Any, prefix: tuple[Any, ...] = ()) -> tuple[list[Any], list[Any], list[Any]]:
    """Positions that only the left tree has, only the right tree has, and (position, type, type) of unequal leaves.

    Tensors are compared by value on the CPU; values with a replica_id by their data.
    """
    if isinstance(x1, dict) and isinstance(x2, dict):
        left = [(*prefix, name) for name in x1 if name not in x2]
        right = [(*prefix, name) for name in x2 if name not in x1]
        pairs = [(name, x1[name], x2[name]) for name in x2 if name in x1]
    elif isinstance(x1, (list, tuple)) and type(x1) is type(x2):
        left = [(*prefix, position) for position in range(len(x2), len(x1))]
        right = [(*prefix, position) for position in range(len(x1), len(x2))]
        pairs = [(position, *both) for position, both in enumerate(zip(x1, x2, strict=False))]
    elif hasattr(x1, "replica_id") and hasattr(x2, "replica_id"):
        left, right, pairs = [], [], [(type(x1), x1.data, x2.data)]
    else:
        return [], [], [] if _equal(x1, x2) else [(prefix, type(x1), type(x2))]
    mismatch: list[Any] = []
    for name, one, other in pairs:
        found = diff(one, other, (*prefix, name))
        left, right, mismatch = left + found[0], right + found[1], mismatch + found[2]
    return left, right, mismatch


def _equal(x1: Any, x2: Any) -> bool:
    if isinstance(x1, torch.Tensor) and isinstance(x2, torch.Tensor):
        return x1.shape == x2.shape and bool((x1.detach().cpu() == x2.detach().cpu()).all())
    try:
        found = x1 == x2
        return bool(found.all()) if hasattr(found, "all") else bool(found)
    except (RuntimeError, ValueError, TypeError, AttributeError):
        return False  # values that refuse to be compared are not known to be equal


def merge(x1: Tree, x2: Tree, key: tuple[Any, ...] = ()) -> Tree:
    """Adds `x2` to `x1` in place and returns it; lists must have equal lengths.

    Raises:
        InvalidArgumentError: both have a leaf at one position, or lists differ in length.
    """
    where = ".".join(map(str, key)) or "the top"
    if isinstance(x1, dict) and isinstance(x2, dict):
        for name, value in x2.items():
            x1[name] = merge(x1[name], value, (*key, name)) if name in x1 else value
    elif isinstance(x1, list) and isinstance(x2, list):
        if len(x1) != len(x2):
            raise InvalidArgumentError(f"Cannot merge two lists with different lengths ({len(x1)} and {len(x2)}, "
                                       f"encountered at level {where})", {"path": where})
        for position, value in enumerate(x2):
            x1[position] = merge(x1[position], value, (*key, position))
    else:
        raise InvalidArgumentError(f"Duplicate non-dict and non-list values encountered: {type(x1).__name__} and "
                                   f"{type(x2).__name__} (at level {where})", {"path": where})
    return x1


def nested_items_iter(x: Tree) -> Iterator[tuple[Tree, Any, Any]]:
    """(container, name or position, leaf) of each leaf."""
    for name, value in x.items() if isinstance(x, dict) else enumerate(x):
        if isinstance(value, (dict, list)):
            yield from nested_items_iter(value)
        else:
            yield x, name, value


def nested_values(x: Tree) -> Iterator[Any]:
    """The leaves."""
    for value in x.values() if isinstance(x, dict) else x:
        if isinstance(value, (dict, list)):
            yield from nested_values(value)
        else:
            yield value


def dict_map(f: Callable[[Any], Any], d: Tree) -> None:
    """Replaces each leaf by f(leaf), in place."""
    for container, name, value in nested_items_iter(d):
        container[name] = f(value)


def dict_map_with_key(f: Callable[[Any, Any], Any], d: Tree) -> None:
    """Replaces each leaf by f(name or position, leaf), in place."""
    for container, name, value in nested_items_iter(d):
        container[name] = f(name, value)


def dict_list_map_inplace(f: Callable[[Any], Any], x: Tree) -> Tree:
    """Replaces each leaf by f(leaf) in place and returns the tree; a leaf as top gives f(leaf)."""
    if isinstance(x, dict):
        for name, value in x.items():
            x[name] = dict_list_map_inplace(f, value)
        return x
    if isinstance(x, list):
        x[:] = [dict_list_map_inplace(f, value) for value in x]
        return x
    return f(x)


def dict_list_map_outplace(f: Callable[[Any], Any], x: Tree) -> Tree:
    """A tree of the same structure with f(leaf) for each leaf."""
    if isinstance(x, dict):
        return {name: dict_list_map_outplace(f, value) for name, value in x.items()}
    if isinstance(x, list):
        return [dict_list_map_outplace(f, value) for value in x]
    return f(x)


def _same(value: Any) -> Any:
    return value


def map_reduce(xs: Iterable[Any], key_fn: Callable[[Any], Any] = _same, value_fn: Callable[[Any], Any] = _same,
               reduce_fn: Callable[[list[Any]], Any] = _same) -> dict[Any, Any]:
    """Groups value_fn(x) by key_fn(x) and gives reduce_fn(group) of each, in order of first appearance."""
    groups: defaultdict[Any, list[Any]] = defaultdict(list)
    for x in xs:
        groups[key_fn(x)].append(value_fn(x))
    return {key: reduce_fn(group) for key, group in groups.items()}
