# SPDX-License-Identifier: Apache-2.0
"""Parts of a tree put back where they were, in lists, too.

What is left of a list when whole elements are taken out has closed up. It is aligned with the request by the elements of which
something is left there.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...errors import InvalidArgumentError
from .trees import Tree

Path = tuple[Any, ...]
_ABSENT: Any = object()


def leaves_with_paths(tree: Tree, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """(path, leaf) of each leaf, depth first. Dict keys and positions are the steps of a path."""
    for name, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        if isinstance(value, (dict, list)):
            yield from leaves_with_paths(value, (*path, name))
        else:
            yield (*path, name), value


def value_at(tree: Tree, path: Path) -> Any:
    """The subtree at a path."""
    for step in path:
        tree = tree[step]
    return tree


def places_in(part: Tree, whole: Tree) -> list[tuple[Path, Path]]:
    """(path in `whole`, path in `part`) of each leaf of a part that extract_matching_values took from a tree."""
    kept = {id(leaf) for _, leaf in leaves_with_paths(part)}
    here = (path for path, leaf in leaves_with_paths(whole) if id(leaf) in kept)
    return list(zip(here, (path for path, _ in leaves_with_paths(part)), strict=True))


def filled(template: Tree, values: Mapping[Path, Any], path: Path = ()) -> Tree:
    """A tree with the structure of `template` and a value at the path of each of its leaves."""
    if isinstance(template, dict):
        return {name: filled(inner, values, (*path, name)) for name, inner in template.items()}
    if isinstance(template, list):
        return [filled(inner, values, (*path, position)) for position, inner in enumerate(template)]
    return values[path]


class Assembly:
    """Puts values at the positions that a request gives them, into what is there already.

    Args:
        template: the request.
        values: what is put at the paths of its leaves; leaves of `template` without a value are left out.
        is_taken: which leaves of `template` are not part of what is there.
        merges: called with the assembled subtree at their path, what they give is put there.
    """

    def __init__(self, template: Tree, values: Mapping[Path, Any], is_taken: Callable[[Any], bool],
                 merges: Mapping[Path, Callable[[Any], Any]]) -> None:
        self._template, self._values, self._is_taken, self._merges = template, values, is_taken, merges
        self._inside = {path[:length] for path in values for length in range(len(path) + 1)}

    def into(self, present: Tree) -> Tree:
        """A tree with the leaves of `present` and the values. Containers on the way to a value are new.

        Raises:
            InvalidArgumentError: a position has two values, or lists of different lengths meet; names it.
        """
        found = self._joined(present, self._template, ())
        return present if found is _ABSENT else found

    def _joined(self, present: Any, template: Any, path: Path) -> Any:
        if path not in self._inside:
            return present
        if path in self._values:
            if present is not _ABSENT:
                raise _conflict(f"Duplicate non-dict and non-list values encountered: {type(present).__name__} is there, and "
                                f"{type(self._values[path]).__name__} was loaded", path)
            found = self._values[path]
        elif isinstance(template, dict):
            found = self._joined_dict(present, template, path)
        else:
            found = self._joined_list(present, template, path)
        return self._merges[path](found) if path in self._merges else found

    def _joined_dict(self, present: Any, template: dict[Any, Any], path: Path) -> Any:
        if present is not _ABSENT and not isinstance(present, dict):
            raise _conflict(f"Duplicate non-dict and non-list values encountered: {type(present).__name__} and dict", path)
        found = {} if present is _ABSENT else dict(present)
        for name, inner in template.items():
            value = self._joined(found.get(name, _ABSENT), inner, (*path, name))
            if value is not _ABSENT:
                found[name] = value
        return found

    def _joined_list(self, present: Any, template: list[Any], path: Path) -> Any:
        if present is not _ABSENT and not isinstance(present, list):
            raise _conflict(f"Duplicate non-dict and non-list values encountered: {type(present).__name__} and list", path)
        below = self._aligned([] if present is _ABSENT else present, template, path)
        found = [self._joined(value, inner, (*path, position))
                 for position, (value, inner) in enumerate(zip(below, template, strict=True))]
        return [value for value in found if value is not _ABSENT]

    def _aligned(self, present: list[Any], template: list[Any], path: Path) -> list[Any]:
        """For each element of the template what is there already."""
        if not present:
            return [_ABSENT] * len(template)
        if len(present) == len(template):
            return present
        apart = [_is_partly_left(inner, self._is_taken) for inner in template]
        if len(present) != sum(apart):
            raise _conflict(f"Cannot merge two lists with different lengths ({len(present)} and {len(template)}, of which "
                            f"{sum(apart)} have values that are not sharded)", path)
        closed_up = iter(present)
        return [next(closed_up) if kept else _ABSENT for kept in apart]


def _is_partly_left(value: Any, is_taken: Callable[[Any], bool]) -> bool:
    """Whether something of an element stays when leaves are taken out."""
    if not isinstance(value, (dict, list)):
        return not is_taken(value)
    return not value or any(_is_partly_left(inner, is_taken) for inner in (value.values() if isinstance(value, dict) else value))


def _conflict(text: str, path: Path) -> InvalidArgumentError:
    where = ".".join(map(str, path)) or "the top"
    return InvalidArgumentError(f"{text} (at {where})", {"path": where})
