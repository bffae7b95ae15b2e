# SPDX-License-Identifier: Apache-2.0
"""The planner data of a plan: flat names to paths, as one bytes object on the way between processes, and a dict again when
somebody looks into it. Ranks with equal names cost the coordinator one comparison each, and no dict.
"""
from __future__ import annotations

import marshal
from collections.abc import Sequence
from typing import Any

from ._lazy import Fillable, touches_first, touching

_FORMAT = 2  # of marshal: the last one without references, so equal dicts make equal bytes


class Paths(dict[str, Any], Fillable):
    """Flat names to paths (`data`, None while they are a dict); travels as bytes."""

    __slots__ = ("data",)
    data: bytes | None

    def __reduce_ex__(self, protocol: Any) -> Any:
        data = packed(self)
        return (PackedPaths, (data,)) if data is not None else (dict, (), None, None, iter(self.items()))


@touches_first(dict)
class PackedPaths(Paths):
    """Paths that nobody has looked into."""

    __slots__ = ()

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.data = data

    def __reduce_ex__(self, protocol: Any) -> Any:
        data = self.data
        return (PackedPaths, (data,)) if data is not None else super().__reduce_ex__(protocol)

    def _touch(self) -> None:
        with touching:
            if self.data is not None:
                dict.update(self, marshal.loads(self.data))
                self.data = None
                self.__class__ = Paths  # type: ignore[assignment]  # equal layout


def packed(planner_data: Any) -> bytes | None:
    """Planner data as bytes; None where it is no dict of plain values."""
    data = planner_data.data if isinstance(planner_data, PackedPaths) else None
    if data is not None or not isinstance(planner_data, dict):
        return data
    try:
        return marshal.dumps(dict(planner_data), _FORMAT)
    except ValueError:
        return None


def _runs(parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts as dicts, one for neighbours that came as equal bytes; equal bytes are one object."""
    known: dict[bytes, dict[str, Any]] = {}
    runs: list[dict[str, Any]] = []
    last: bytes | None = None
    for part in parts:
        data = part.data if isinstance(part, PackedPaths) else None
        if data is None:
            runs.append(part)
        elif data != last:
            if data not in known:
                known[data] = marshal.loads(data)
            runs.append(known[data])
        last = data
    return runs


def merged(parts: Sequence[Any]) -> dict[str, Any] | None:
    """Paths of all ranks in one dict: of the lowest rank where two differ, names of the last rank first, as a ChainMap
    gives them. None unless every part is a dict."""
    if not all(isinstance(part, dict) for part in parts):
        return None
    runs = _runs(parts)
    first = {id(part): place for place, part in reversed(list(enumerate(runs)))}
    last = {id(part): place for place, part in enumerate(runs)}
    found: dict[str, Any] = {}
    for place in range(len(runs) - 1, -1, -1):
        part = runs[place]
        if place in (first[id(part)], last[id(part)]):  # what lies between changes neither values nor order
            found.update(part)
    return found
