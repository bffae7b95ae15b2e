# SPDX-License-Identifier: Apache-2.0
"""Nested state dicts as flat ones and back, with the keys that torch gives them.

A flat key is the path joined with "."; parts are the text of mapping keys and the number of list positions. Which
containers are opened changed with torch 2.4, so the version of the traversal is an argument. Pure functions.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from ._errors import InvalidPlanError

Path = tuple[str | int, ...]
VERSIONS = ("2.3", "2.4")

_LEAF, _MAPPING, _LIST, _TENSOR = range(4)
_KINDS_MAX = 1024
_kinds: dict[type, int] = {}


def _kind_of(value: Any) -> int:
    """What a type is to the traversal; remembered, as asking the abstract base class costs more than the rest."""
    kind = _kinds.get(type(value))
    if kind is None:
        kind = (_TENSOR if isinstance(value, torch.Tensor) else _MAPPING if isinstance(value, Mapping)
                else _LIST if isinstance(value, list) else _LEAF)
        if len(_kinds) >= _KINDS_MAX:
            _kinds.clear()
        _kinds[type(value)] = kind
    return kind


def list_is_open(value: list[Any], mapping_opens: Callable[[Any], bool]) -> bool:
    """A list is opened when it holds a tensor or a container that is itself opened."""
    for entry in value:
        kind = _kind_of(entry)
        if kind == _TENSOR or (kind == _MAPPING and mapping_opens(entry)):
            return True
        if kind == _LIST and list_is_open(entry, mapping_opens):
            return True
    return False


def _every_mapping(_: Any) -> bool:
    return True


def _mapping_with_tensors(value: Mapping[Any, Any]) -> bool:
    return list_is_open(list(value.values()), _mapping_with_tensors)


def _altered_below(path: Path, mapping: Mapping[Any, Any]) -> Iterator[Path]:
    """What is lost of one opened mapping: all of it when it is empty, the type of keys that are no text."""
    if not mapping:
        yield path
    for key in mapping:
        if not isinstance(key, str):
            yield (*path, key)


def opener(version: str) -> Callable[[Any], bool]:
    """Which mappings a traversal opens. InvalidPlanError for one that is not known."""
    if version not in VERSIONS:
        raise InvalidPlanError(f"there is no traversal {version!r}; versions: {', '.join(VERSIONS)}")
    return _every_mapping if version == "2.4" else _mapping_with_tensors


def leaves(state_dict: Mapping[Any, Any], version: str = "2.4", altered: list[Path] | None = None
           ) -> Iterator[tuple[Path, Any]]:
    """(path, value) of every leaf in the order of traversal.

    `version` "2.4" opens every mapping, "2.3" only mappings that hold tensors, at any depth. Tuples, sets and all other
    types are leaves whatever they hold. An opened mapping without entries has no leaf. `altered` gets the paths that do
    not come back as they are: such mappings, and keys that are no text.
    """
    mapping_opens = opener(version)

    def below(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
        kind = _kind_of(value)
        if kind == _MAPPING and mapping_opens(value):
            if altered is not None:
                altered.extend(_altered_below(path, value))
            for key, inner in value.items():
                yield from below((*path, str(key)), inner)
        elif kind == _LIST and list_is_open(value, mapping_opens):
            for position, inner in enumerate(value):
                yield from below((*path, position), inner)
        else:
            yield path, value

    if altered is not None and state_dict:
        altered.extend(_altered_below((), state_dict))
    for key, value in state_dict.items():
        if _kind_of(value) in (_MAPPING, _LIST):
            yield from below((str(key),), value)
        else:
            yield (str(key),), value


def flatten_state_dict(state_dict: Mapping[Any, Any], version: str = "2.4", altered: list[Path] | None = None
                       ) -> tuple[dict[str, Any], dict[str, Path]]:
    """Flat dict and the path of each of its keys. InvalidPlanError (a ValueError) where two paths give one key.
    `altered`: as for leaves."""
    flat: dict[str, Any] = {}
    paths: dict[str, Path] = {}
    for path, value in leaves(state_dict, version, altered):
        key = str(path[0]) if len(path) == 1 else ".".join(map(str, path))
        if key in flat:
            raise InvalidPlanError(f"duplicated flatten key {key}: {paths[key]} and {path}", {"tensor": key})
        flat[key] = value
        paths[key] = path
    return flat, paths


def unflatten_state_dict(state_dict: Mapping[str, Any], mapping: Mapping[str, Path]) -> dict[str, Any]:
    """The nested dict that `mapping` describes, filled with the values of a flat one."""
    nested: dict[str, Any] = {}
    for key, value in state_dict.items():
        set_element(nested, mapping[key], value)
    return nested


def _reach(container: Any, part: str | int) -> None:
    """Makes a list long enough for a position."""
    if isinstance(container, list) and isinstance(part, int):
        container.extend([None] * (part + 1 - len(container)))


def set_element(root_dict: Any, path: Path, value: Any) -> None:
    """Puts a value at a path. Containers that are missing on the way are made: dicts for text, lists for positions;
    a list that is too short is filled up with None."""
    container = root_dict
    for part, following in zip(path, path[1:], strict=False):
        _reach(container, part)
        inner = container.get(part) if isinstance(container, Mapping) and part not in container else container[part]
        if inner is None and not (isinstance(container, Mapping) and part in container):
            inner = {} if isinstance(following, str) else []
            container[part] = inner
        container = inner
    _reach(container, path[-1])
    container[path[-1]] = value


def get_element(root_dict: Any, path: Path, default_value: Any = None) -> Any:
    """The value at a path, or `default_value` where there is none."""
    found = root_dict
    for part in path:
        if isinstance(part, int):
            if not isinstance(found, list) or part >= len(found):
                return default_value
        elif not isinstance(found, Mapping) or part not in found:
            return default_value
        found = found[part]
    return found
