# SPDX-License-Identifier: Apache-2.0
"""Lists and dicts that are filled when they are first looked at.

A class that is decorated with `touches_first(list)` or `touches_first(dict)` fills itself through `_touch` before any
method of the built-in type runs, and becomes its base class then, which costs nothing more. Thread-safe to touch.
"""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

touching = threading.RLock()
_T = TypeVar("_T", bound=type)
_CHANGES_NOTHING = ("__class__", "__class_getitem__", "__delattr__", "__dir__", "__doc__", "__getattribute__",
                    "__getstate__", "__hash__", "__init__", "__init_subclass__", "__new__", "__reduce__",
                    "__reduce_ex__", "__setattr__", "__subclasshook__", "__sizeof__")


class Fillable:
    """What lists and dicts of this kind have in common."""

    __slots__ = ()

    def _touch(self) -> None:
        """Nothing: it is filled."""


def _touching_method(base: type, name: str) -> Callable[..., Any]:
    plain = getattr(base, name)

    def method(self: Any, *arguments: Any, **keywords: Any) -> Any:
        self._touch()
        for argument in arguments:  # C code looks straight into lists and dicts that it is given
            if isinstance(argument, Fillable):
                argument._touch()
        return plain(self, *arguments, **keywords)

    method.__name__ = name
    method.__doc__ = plain.__doc__
    return method


def touches_first(base: type) -> Callable[[_T], _T]:
    """Class decorator: every method of `base` that reads or changes the content fills it first."""

    def decorate(cls: _T) -> _T:
        for name in dir(base):
            if name not in _CHANGES_NOTHING and name not in vars(cls) and callable(getattr(base, name)):
                setattr(cls, name, _touching_method(base, name))
        return cls

    return decorate
