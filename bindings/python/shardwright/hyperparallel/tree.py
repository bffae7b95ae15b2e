# SPDX-License-Identifier: Apache-2.0
"""Nested states as flat names, by the rule of shardwright.State: parts of a name are joined with "."; a container below
which nothing but JSON values is left is one object; the containers above are structure.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from .. import _json
from ..errors import AlreadyExistsError, InvalidArgumentError
from ..state import below

_DEPTH_MAX = 200


class Leaf(NamedTuple):
    """One entry: its name, its path as JSON text ("" at the top), and where it lies."""

    name: str
    path: str
    container: Any
    key: Any
    value: Any


def leaves(tree: Mapping[Any, Any], *, flatten: bool,
           is_entry: Callable[[str, Any], bool] | None = None) -> Iterator[Leaf]:
    """Entries of a state in its order.

    Args:
        flatten: False gives one entry per top-level key.
        is_entry: says of a container, by name, that it is an entry of its own; None = when it holds only JSON values.
    Raises AlreadyExistsError for two paths of one name, InvalidArgumentError for keys that are neither text nor integer
    and for states that hold themselves.
    """
    if not isinstance(tree, Mapping):
        raise InvalidArgumentError(f"a state is a mapping of names to values, found {type(tree).__qualname__}",
                                   {"parameter": "state_dict"})
    seen: dict[str, str] = {}
    for leaf in _walk(tree, b"", b"", _always if not flatten else is_entry or _only_json, 0):
        if leaf.name in seen:
            raise AlreadyExistsError(f"two entries have the name {leaf.name!r}: {seen[leaf.name] or 'the key itself'} "
                                     f"and {leaf.path or 'the key itself'}", {"tensor": leaf.name})
        seen[leaf.name] = leaf.path
        yield leaf


def _walk(container: Any, name: bytes, path: bytes, is_entry: Callable[[str, Any], bool], depth: int) -> Iterator[Leaf]:
    if depth > _DEPTH_MAX:
        raise InvalidArgumentError(f"{_shown(name)} is nested deeper than {_DEPTH_MAX} levels, or holds itself")
    mapping = isinstance(container, Mapping)
    for key, value in container.items() if mapping else enumerate(container):
        if depth == 0 and type(key) is str and key.isascii():  # most entries: the name is the key, without a path
            shown, text = key, ""
        else:
            shown, text = map(_shown, below(name, path, key, mapping))
        if _json.is_container(value) and not is_entry(shown, value):
            yield from _walk(value, *below(name, path, key, mapping, nested=True), is_entry, depth + 1)
        else:
            yield Leaf(shown, text, container, key, value)


def _always(_name: str, _value: Any) -> bool:
    return True


def _only_json(_name: str, value: Any, depth: int = 0) -> bool:
    if not _json.is_container(value):
        return _json.is_scalar(value)
    inner = value.values() if isinstance(value, Mapping) else value
    return depth <= _DEPTH_MAX and all(_only_json(_name, part, depth + 1) for part in inner)


def _shown(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")
