# SPDX-License-Identifier: Apache-2.0
"""What pickles may hold without being trusted: built-in, standard-library and numpy types that rebuild from plain values.

Each kind has a builder, which is called in place of what the pickle names and takes only what the type itself would have
written: exact classes, no iterators, no sizes without the bytes behind them. So none runs code that a file chooses, and none
makes more than a file brings. `STATES` are the types that take a state afterwards. Python 3.11 to 3.14, numpy 1 and 2.
"""
from __future__ import annotations

import _codecs
import argparse
import array
import collections
import datetime
import decimal
import enum
import fractions
import functools
import io
import pathlib
import types
import uuid
from collections.abc import Callable, Mapping
from typing import Any

Builder = Callable[..., Any]
_rebuild_array: Any = getattr(array, "_array_reconstructor")  # noqa: B009  # of protocol 3 and later


class Odd(Exception):
    """Arguments or a state that the type itself would never have written."""


def _need(condition: bool, what: str = "arguments") -> None:
    if not condition:
        raise Odd(f"{what} that the type does not write")


def _all_are(values: Any, *kinds: type) -> bool:
    return all(type(value) in kinds for value in values)


# ---- built-in and standard types ----

def _of_listed(kind: type) -> Builder:
    def build(values: Any = ()) -> Any:
        _need(type(values) in (list, tuple, set, frozenset))
        return kind(values)
    return build


def _of(kind: Any, *classes: type) -> Builder:
    """A type whose arguments have these classes, and which checks their values itself."""
    def build(*arguments: Any) -> Any:
        _need(_all_are(arguments, *classes))
        return kind(*arguments)
    return build


def _bytes_of_text(text: str, encoding: str) -> bytes:
    _need(type(text) is str and encoding == "latin1")
    return text.encode("latin1")


def _bytes(content: bytes = b"") -> bytes:
    _need(type(content) is bytes)
    return content


def _bytearray(content: Any = b"", encoding: str = "latin-1") -> bytearray:
    _need(type(content) in (bytes, str) and encoding == "latin-1")
    return bytearray(content if isinstance(content, bytes) else content.encode("latin-1"))


def _ordered_dict(pairs: Any = ()) -> Any:
    _need(type(pairs) in (list, tuple, dict))
    return collections.OrderedDict(pairs)


def _counter(counts: Any = None) -> Any:
    _need(counts is None or type(counts) is dict)
    return collections.Counter(counts)


def _deque(values: Any = (), maxlen: int | None = None) -> Any:
    _need(type(values) in (list, tuple) and (maxlen is None or type(maxlen) is int))
    return collections.deque(values, maxlen)


def _array(kind: str, values: list[Any]) -> Any:
    _need(type(kind) is str and type(values) is list)
    return array.array(kind, values)


def _array_of_bytes(kind: Any, code: str, format_code: int, content: bytes) -> Any:
    _need(kind is array.array and type(code) is str and type(format_code) is int and type(content) is bytes)
    return _rebuild_array(kind, code, format_code, content)


def _fraction(numerator: Any, denominator: Any = 1) -> Any:
    if type(numerator) is str:  # Python 3.10 and before; text may also be "1e999999999"
        _need(numerator.lstrip("-").replace("/", "", 1).isdecimal())
        return fractions.Fraction(numerator)
    _need(_all_are((numerator, denominator), int))
    return fractions.Fraction(numerator, denominator)


def _type_of(value: Any) -> Any:
    _need(value is None or value is Ellipsis or value is NotImplemented)
    return type(value)


CALLS: dict[Any, Builder] = {
    set: _of_listed(set), frozenset: _of_listed(frozenset), complex: _of(complex, int, float), range: _of(range, int),
    slice: _of(slice, int, type(None)), bytes: _bytes, bytearray: _bytearray, type: _type_of, _codecs.encode: _bytes_of_text,
    collections.OrderedDict: _ordered_dict, collections.Counter: _counter, collections.deque: _deque, array.array: _array,
    _rebuild_array: _array_of_bytes,
    datetime.date: _of(datetime.date, bytes, str, int), datetime.time: _of(datetime.time, bytes, str, int, datetime.timezone),
    datetime.datetime: _of(datetime.datetime, bytes, str, int, datetime.timezone),
    datetime.timedelta: _of(datetime.timedelta, int), datetime.timezone: _of(datetime.timezone, datetime.timedelta, str),
    decimal.Decimal: _of(decimal.Decimal, str), fractions.Fraction: _fraction, types.SimpleNamespace: _of(types.SimpleNamespace),
    uuid.UUID: _of(functools.partial(uuid.UUID.__new__, uuid.UUID)), uuid.SafeUUID: _of(uuid.SafeUUID, int, type(None)),
    io.BytesIO: _of(io.BytesIO), io.StringIO: _of(io.StringIO), argparse.Namespace: _of(argparse.Namespace),
}
for _path in (pathlib.PurePosixPath, pathlib.PureWindowsPath, pathlib.PosixPath, pathlib.WindowsPath):
    CALLS[_path] = _of(_path, str)

_PLAIN = (int, float, str, bool, list, dict, tuple, object)  # as values; nothing calls them
NAMES: dict[tuple[str, str], Any] = {(kind.__module__, kind.__qualname__): kind for kind in (*CALLS, *_PLAIN)}
NAMES |= {("pathlib._local", kind.__name__): kind for kind in CALLS if getattr(kind, "__name__", "").endswith("Path")}
NAMES |= {("builtins", "Ellipsis"): Ellipsis, ("builtins", "NotImplemented"): NotImplemented}


# ---- callables that keep a callable ----

def may_be_kept(function: Any, allowed: Mapping[str, Any]) -> bool:
    """Whether a pickle may put a callable where the host will call it: a class that it may name anyway, or what the caller
    allowed."""
    return (isinstance(function, type) and function is not type) or any(function is known for known in allowed.values())


def default_dict(factory: Any, allowed: Mapping[str, Any]) -> Any:
    """collections.defaultdict."""
    _need(factory is None or may_be_kept(factory, allowed), "a factory")
    return collections.defaultdict(factory)


def partial(function: Any, allowed: Mapping[str, Any]) -> Any:
    """functools.partial of a function alone; its state brings the arguments."""
    _need(may_be_kept(function, allowed), "a function")
    return functools.partial(function)


def member(kind: Any, name: Any, allowed: Mapping[str, Any]) -> Any:
    """The call of getattr by which some versions of Python write members of enumerations and nested classes."""
    _need(type(name) is str and isinstance(kind, type))
    if isinstance(kind, enum.EnumMeta) and any(kind is known for known in allowed.values()) and name in kind.__members__:
        return kind.__members__[name]
    found = allowed.get(f"{kind.__module__}.{kind.__qualname__}.{name}")
    _need(found is not None)
    return found


# ---- states ----

def _attributes(value: Any, state: Any) -> None:
    _need(type(state) is dict and _all_are(state, str), "a state")
    value.__dict__.update(state)


def _stream(kind: Any) -> Callable[[Any, Any], None]:
    text = int(kind is io.StringIO)

    def put(value: Any, state: Any) -> None:
        _need(type(state) is tuple and len(state) == 3 + text, "a state")
        _need(type(state[0]) is (str if text else bytes) and type(state[1 + text]) is int and state[-1] is None, "a state")
        value.__setstate__(state)
    return put


def _uuid(value: Any, state: Any) -> None:
    _need(type(state) is dict and type(state.get("int")) is int and 0 <= state["int"] < 2**128, "a state")
    _need(type(state.get("is_safe", 0)) in (int, type(None)) and not hasattr(value, "int"), "a state")
    value.__setstate__({name: state[name] for name in ("int", "is_safe") if name in state})


def _partial(value: Any, state: Any) -> None:
    _need(type(state) is tuple and len(state) == 4 and state[0] is value.func and type(state[1]) is tuple, "a state")
    named = state[2] is None or (type(state[2]) is dict and _all_are(state[2], str))
    _need(named and state[3] is None and not value.args and not value.keywords, "a state")
    value.__setstate__((*state[:2], state[2] or {}, None))


STATES: dict[type, Callable[[Any, Any], None]] = {
    collections.OrderedDict: _attributes, argparse.Namespace: _attributes, types.SimpleNamespace: _attributes,
    io.BytesIO: _stream(io.BytesIO), io.StringIO: _stream(io.StringIO), uuid.UUID: _uuid, functools.partial: _partial,
}
