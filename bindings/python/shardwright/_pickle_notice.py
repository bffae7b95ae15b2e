# SPDX-License-Identifier: Apache-2.0
"""What a save says about objects that only a load with `allow_types`, or with trust, will bring back: once per process and
class. Thread-safe.
"""
from __future__ import annotations

import io
import logging
import pickle
import threading
from collections.abc import Callable, Iterable, Mapping
from types import BuiltinFunctionType, FunctionType
from typing import Any

from ._pickles import DamagedPickle, UnsafePickle, Unpickler

logger = logging.getLogger(__name__)
_met: set[Any] = set()  # classes and functions in pickles of this process that were looked at
_told: set[str] = set()
_noticing = threading.Lock()


class _Unknown:
    """Stands for what a reader would refuse while the names of all of it are collected."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass


def _is_unknown(value: Any) -> bool:
    return isinstance(value, _Unknown) or (isinstance(value, type) and issubclass(value, _Unknown))


class NameCollector(Unpickler):
    """Reads a pickle for the names that a reader would refuse, `unsafe`, in the order of their appearance."""

    def __init__(self, file: Any, **_: Any) -> None:
        super().__init__(file)
        self.unsafe: dict[str, None] = {}

    def _unknown(self, name: str) -> Any:
        self.unsafe.setdefault(name)
        return type("Unknown", (_Unknown,), {})

    def persistent_load(self, pid: Any) -> Any:
        """Nothing of what a host keeps outside is looked at."""
        return _Unknown()

    def _called(self, function: Any, arguments: tuple[Any, ...], without_init: bool) -> Any:
        if _is_unknown(function) or function in self.builders:
            return _Unknown()
        try:
            return super()._called(function, arguments, without_init)
        except UnsafePickle as e:
            if not any(map(_is_unknown, arguments)):
                self.unsafe.setdefault(str(e))
            return _Unknown()

    def _build(self) -> None:
        state, value = self._stack[-1], self._stack[-2]
        try:
            super()._build()
        except UnsafePickle as e:
            if not _is_unknown(value) and not any(map(_is_unknown, state if type(state) is tuple else ())):
                self.unsafe.setdefault(str(e))

    def _is_mine(self, value: Any) -> bool:
        return False

    def _extend(self, values: Iterable[Any]) -> None:
        if not isinstance(self._stack[-1], _Unknown):
            super()._extend(values)

    def _set_items(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        if not isinstance(self._stack[-1], _Unknown):
            super()._set_items(pairs)


def unsafe_names(data: bytes, known: Mapping[str, Any] | None = None,
                 builders: Mapping[Any, Callable[..., Any]] | None = None) -> list[str]:
    """Names in a pickle that a reader will refuse unless they are allowed; `known` and `builders` as in Unpickler."""
    found = type("Collector", (NameCollector,), {"known": known or {}, "builders": builders or {}})(io.BytesIO(data))
    try:
        found.load()
    except (UnsafePickle, DamagedPickle):
        pass  # what was found so far is what can be said
    return list(found.unsafe)


class Pickler(pickle.Pickler):
    """Writes as pickle does, and knows whether it met a class or function for the first time in this process."""

    new: set[Any]  # of the subclass that one call makes

    def reducer_override(self, value: Any) -> Any:
        """Notes the class of a value that is no plain data, or the class or function that it is."""
        kind = value if isinstance(value, (type, FunctionType, BuiltinFunctionType)) else type(value)
        if kind not in _met:
            self.new.add(kind)
        return NotImplemented


def noting() -> type[Pickler]:
    """A Pickler class for one call; its `new` is for `notice`."""
    return type("Noting", (Pickler,), {"new": set()})


def notice(where: str, new: set[Any], names: Callable[[], list[str]]) -> None:
    """Logs once per process and name what a load of the entry `where` will need to be told. `names` finds the names; it is
    asked only where the entry has something new."""
    if not new:
        return
    try:
        found = names()
    except Exception:  # the save has its bytes; only what could be said about them is lost
        logger.debug("what a load of %s will need is not known", where, exc_info=True)
        found = []
    with _noticing:
        untold = [name for name in found if name not in _told]
        _told.update(untold)
        _met.update(new)
    if untold:
        logger.warning("%s and others like it are saved as pickles that use %s; a load needs allow_types=[...] with them, or "
                       "trust", where, ", ".join(untold))


def write(value: Any, where: str) -> bytes:
    """A pickle of a value, after a notice about what a load will need. Raises what pickling raises."""
    stream, kind = io.BytesIO(), noting()
    kind(stream, protocol=4).dump(value)
    data = stream.getvalue()
    notice(where, kind.new, lambda: unsafe_names(data))
    return data
