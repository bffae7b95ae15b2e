# SPDX-License-Identifier: Apache-2.0
"""Pickles that are read without being trusted.

`Unpickler` is an interpreter of its own for the pickle language. It imports nothing that a pickle names: names are looked up
in a table (_pickle_kinds), and a call runs the builder of the table in its place. Classes and functions that the caller lists
in `allow_types` are called with what the pickle holds, and instances of such classes take their state as Python would give it
to them. Anything else is an UnsafePickle that names it. A pickle that contradicts itself is a DamagedPickle.
"""
from __future__ import annotations

import _compat_pickle
import io
import pickle
import pickletools
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from . import _pickle_kinds
from ._pickle_kinds import CALLS, NAMES, STATES, Odd
from ._pickle_numpy import NumpyKinds
from .errors import DataLossError, InvalidArgumentError, PermissionDeniedError

PROTOCOL_MARK = b"\x80"  # first byte of pickles since protocol 2
_MARK = object()
_LONGEST_NAME = 200
_NAMES = NAMES | {("collections", "defaultdict"): defaultdict, ("functools", "partial"): partial,
                  ("builtins", "getattr"): getattr}
_KEEPING: dict[Any, Callable[..., Any]] = {defaultdict: _pickle_kinds.default_dict, partial: _pickle_kinds.partial,
                                           getattr: _pickle_kinds.member}


class UnsafePickle(Exception):
    """A pickle uses what it may not. `name`: the class or function, or a kind of value in words."""

    def __init__(self, name: str, reason: str = "") -> None:
        super().__init__(f"{name[:_LONGEST_NAME]} ({reason})" if reason else name[:_LONGEST_NAME])
        self.name = name[:_LONGEST_NAME]


class DamagedPickle(Exception):
    """The bytes are no pickle, or one that contradicts itself."""


def names_of(allow_types: Iterable[Any]) -> dict[str, Any]:
    """Classes and functions by the names that pickles use for them. InvalidArgumentError for anything else."""
    found = {}
    for kind in allow_types:
        if not callable(kind) or not hasattr(kind, "__qualname__"):
            raise InvalidArgumentError(f"allow_types lists classes and functions, not {kind!r}",
                                       {"parameter": "allow_types"})
        found[f"{kind.__module__}.{kind.__qualname__}"] = kind
    return found


def chosen(allow_types: Iterable[Any] | None) -> tuple[Any, ...] | None:
    """The argument `allow_types` of a call as a tuple; None stays. InvalidArgumentError as names_of."""
    if allow_types is None:
        return None
    kinds = tuple(allow_types)
    names_of(kinds)
    return kinds


_numpy_kinds: NumpyKinds | None = None


def _numpy() -> NumpyKinds | None:
    global _numpy_kinds
    if _numpy_kinds is None:
        try:
            import numpy
        except ImportError:
            return None
        _numpy_kinds = NumpyKinds(numpy)
    return _numpy_kinds


class Unpickler:
    """One reading of one pickle. Thread-compatible.

    Attributes:
        allowed: classes and functions by name that are used as the pickle wants.
        known: values by name beside those of the table.
        builders: what is called for classes and functions among them.
    All are class attributes, for subclasses to set.
    """

    allowed: Mapping[str, Any] = {}
    known: Mapping[str, Any] = {}
    builders: Mapping[Any, Callable[..., Any]] = {}

    def __init__(self, file: Any, **_: Any) -> None:
        self._file = file
        self._protocol = 0
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._allowed_ids = {id(kind) for kind in self.allowed.values()}

    def persistent_load(self, pid: Any) -> Any:
        """What a host keeps outside of the pickle. UnsafePickle: here is none."""
        del pid
        raise UnsafePickle("a reference to something outside of it")

    def find_class(self, module: str, name: str) -> Any:
        """The class or function of a name. UnsafePickle for those that are neither in the table nor allowed."""
        if self._protocol < 3:
            module, name = _compat_pickle.NAME_MAPPING.get((module, name), (module, name))
            module = _compat_pickle.IMPORT_MAPPING.get(module, module)
        known = self.allowed.get(f"{module}.{name}", _MARK)
        if known is _MARK:
            known = _NAMES.get((module, name), _MARK)
        if known is _MARK:
            known = self.known.get(f"{module}.{name}", _MARK)
        if known is _MARK and module.partition(".")[0] == "numpy":
            kinds = _numpy()
            known = kinds.names.get((module, name), _MARK) if kinds else _MARK
        if known is _MARK:
            return self._unknown(f"{module}.{name}")
        return known

    def _unknown(self, name: str) -> Any:
        """What to use for a name that is not allowed."""
        raise UnsafePickle(name)

    def load(self) -> Any:
        """The value of the pickle. UnsafePickle, DamagedPickle."""
        position = 0
        try:
            for opcode, argument, at in pickletools.genops(self._file):
                position = at or 0
                if opcode.name == "STOP":
                    return self._stack.pop()
                run = _RUN.get(opcode.name)
                if run is None:
                    raise UnsafePickle(f"the pickle operation {opcode.name}")
                run(self, argument)
        except (UnsafePickle, DamagedPickle, MemoryError):
            raise
        except Odd as e:
            raise UnsafePickle("a value", str(e)) from e
        except Exception as e:  # of the reader of opcodes, of the stack, or of a constructor that found a value wrong
            raise DamagedPickle(f"at byte {position}: {type(e).__name__}: {str(e)[:200]}") from e
        raise DamagedPickle("it has no end")

    # ---- the stack ----

    def _begin(self, protocol: int) -> None:
        self._protocol = protocol

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop_mark(self) -> list[Any]:
        for place in range(len(self._stack) - 1, -1, -1):
            if self._stack[place] is _MARK:
                found = self._stack[place + 1:]
                del self._stack[place:]
                return found
        raise DamagedPickle("a mark is missing")

    def _pop_pairs(self) -> list[tuple[Any, Any]]:
        flat = self._pop_mark()
        return list(zip(flat[::2], flat[1::2], strict=True))

    def _tuple(self, size: int) -> None:
        if len(self._stack) < size:
            raise DamagedPickle("the stack is too short")
        self._stack[len(self._stack) - size:] = [tuple(self._stack[len(self._stack) - size:])]

    def _get(self, number: int) -> None:
        self._stack.append(self._memo[number])

    def _put(self, number: int) -> None:
        self._memo[number] = self._stack[-1]

    def _global(self, names: str) -> None:
        module, _, name = names.partition(" ")
        self._stack.append(self.find_class(module, name))

    def _stack_global(self) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        if type(name) is not str or type(module) is not str:
            raise DamagedPickle("a name is no text")
        self._stack.append(self.find_class(module, name))

    def _persistent(self, pid: Any) -> None:
        self._stack.append(self.persistent_load(pid))

    # ---- containers ----

    def _is_mine(self, value: Any) -> bool:
        """Whether a value is an instance of a class that the caller allowed, which then takes what the pickle says."""
        return id(type(value)) in self._allowed_ids

    def _extend(self, values: Iterable[Any]) -> None:
        target = self._stack[-1]
        if type(target) in (list, deque) or self._is_mine(target):
            for value in values:
                target.append(value)
        else:
            raise UnsafePickle(_name_of(type(target)), "items that are appended")

    def _set_items(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        target = self._stack[-1]
        if type(target) in _MAPPINGS or self._is_mine(target):
            for key, value in pairs:
                target[key] = value
        else:
            raise UnsafePickle(_name_of(type(target)), "items that are set")

    def _set_item(self) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._set_items([(key, value)])

    def _add_items(self) -> None:
        values = self._pop_mark()
        if type(self._stack[-1]) is not set:
            raise UnsafePickle(_name_of(type(self._stack[-1])), "items that are added")
        self._stack[-1].update(values)

    # ---- calls and states ----

    def _reduce(self) -> None:
        arguments, function = self._stack.pop(), self._stack.pop()
        if type(arguments) is not tuple:
            raise DamagedPickle("the arguments of a call are no tuple")
        self._stack.append(self._called(function, arguments, False))

    def _new(self) -> None:
        arguments, kind = self._stack.pop(), self._stack.pop()
        if type(arguments) is not tuple:
            raise DamagedPickle("the arguments of a class are no tuple")
        self._stack.append(self._called(kind, arguments, True))

    def _new_with_names(self) -> None:
        named, arguments, kind = self._stack.pop(), self._stack.pop(), self._stack.pop()
        if id(kind) not in self._allowed_ids or type(arguments) is not tuple or type(named) is not dict:
            raise UnsafePickle(_name_of(kind), "named arguments")
        self._stack.append(kind.__new__(kind, *arguments, **named))

    def _called(self, function: Any, arguments: tuple[Any, ...], without_init: bool) -> Any:
        if id(function) in self._allowed_ids:
            return function.__new__(function, *arguments) if without_init else function(*arguments)
        if not callable(function) or not hasattr(function, "__qualname__"):
            raise UnsafePickle(_name_of(type(function)), "a call of its value")
        try:
            keeping = _KEEPING.get(function)
            if keeping is not None:
                return keeping(*arguments, self.allowed)
            kinds = _numpy_kinds
            build = CALLS.get(function) or self.builders.get(function) or (kinds.calls.get(function) if kinds else None)
            if build is not None:
                return build(*arguments)
        except Odd as e:
            raise UnsafePickle(_name_of(function), str(e)) from e
        except TypeError as e:
            raise UnsafePickle(_name_of(function), f"arguments that it does not take ({e})") from e
        raise UnsafePickle(_name_of(function), "a call")

    def _build(self) -> None:
        state, value = self._stack.pop(), self._stack[-1]
        kind = type(value)
        kinds = _numpy_kinds
        put = STATES.get(kind) or (kinds.state_of(kind) if kinds else None)
        if self._is_mine(value):
            put = _set_state
        if put is None and state is None:
            return
        if put is None:
            raise UnsafePickle(_name_of(kind), "a state")
        try:
            put(value, state)
        except Odd as e:
            raise UnsafePickle(_name_of(kind), str(e)) from e


def _set_state(value: Any, state: Any) -> None:
    """What Python does with the state of an instance."""
    taking = getattr(value, "__setstate__", None)
    if taking is not None:
        taking(state)
        return
    slots = None
    if type(state) is tuple and len(state) == 2:
        state, slots = state
    if state:
        value.__dict__.update(state)
    for name, inner in (slots or {}).items():
        setattr(value, name, inner)


def _name_of(kind: Any) -> str:
    return f"{getattr(kind, '__module__', '')}.{getattr(kind, '__qualname__', kind)}"


_MAPPINGS = (dict, *(kind for kind in (*CALLS, defaultdict) if isinstance(kind, type) and issubclass(kind, dict)))
_VALUES = ("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "STRING", "BINSTRING", "SHORT_BINSTRING",
           "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8", "UNICODE", "SHORT_BINUNICODE", "BINUNICODE",
           "BINUNICODE8", "FLOAT", "BINFLOAT", "NONE", "NEWTRUE", "NEWFALSE")
_CONSTANTS = {"NEWTRUE": True, "NEWFALSE": False}
_ACTIONS: dict[str, Callable[[Unpickler], Any]] = {
    "MARK": lambda u: u._push(_MARK), "EMPTY_LIST": lambda u: u._push([]), "EMPTY_DICT": lambda u: u._push({}),
    "EMPTY_SET": lambda u: u._push(set()), "EMPTY_TUPLE": lambda u: u._push(()), "TUPLE1": lambda u: u._tuple(1),
    "TUPLE2": lambda u: u._tuple(2), "TUPLE3": lambda u: u._tuple(3), "TUPLE": lambda u: u._push(tuple(u._pop_mark())),
    "LIST": lambda u: u._push(u._pop_mark()), "DICT": lambda u: u._push(dict(u._pop_pairs())),
    "FROZENSET": lambda u: u._push(frozenset(u._pop_mark())), "ADDITEMS": Unpickler._add_items,
    "APPEND": lambda u: u._extend([u._stack.pop()]), "APPENDS": lambda u: u._extend(u._pop_mark()),
    "SETITEM": Unpickler._set_item, "SETITEMS": lambda u: u._set_items(u._pop_pairs()),
    "POP": lambda u: u._stack.pop(), "POP_MARK": Unpickler._pop_mark, "DUP": lambda u: u._push(u._stack[-1]),
    "MEMOIZE": lambda u: u._put(len(u._memo)), "STACK_GLOBAL": Unpickler._stack_global, "REDUCE": Unpickler._reduce,
    "NEWOBJ": Unpickler._new, "NEWOBJ_EX": Unpickler._new_with_names, "BUILD": lambda u: u._build(),
    "BINPERSID": lambda u: u._persistent(u._stack.pop()), "FRAME": lambda u: None,
}


def _pushes(value: Any) -> Callable[[Unpickler, Any], Any]:
    return lambda reader, _: reader._push(value)


def _runs(action: Callable[[Unpickler], Any]) -> Callable[[Unpickler, Any], Any]:
    return lambda reader, _: action(reader)


_RUN: dict[str, Callable[[Unpickler, Any], Any]] = {
    "GET": Unpickler._get, "BINGET": Unpickler._get, "LONG_BINGET": Unpickler._get, "PUT": Unpickler._put,
    "BINPUT": Unpickler._put, "LONG_BINPUT": Unpickler._put, "GLOBAL": Unpickler._global, "PERSID": Unpickler._persistent,
    "PROTO": Unpickler._begin,
    **dict.fromkeys(_VALUES, Unpickler._push),
    **{name: _pushes(value) for name, value in _CONSTANTS.items()},
    **{name: _runs(action) for name, action in _ACTIONS.items()},
}


def read(data: bytes, where: str, *, trusted: bool = False, allow_types: Iterable[Any] = (),
         trust: str = "trust_pickle", error: type[PermissionDeniedError] = PermissionDeniedError) -> Any:
    """The value of a stored pickle.

    Args:
        where: name of the entry, for messages.
        trusted: run it, whatever it does.
        allow_types: classes and functions that it may use beside the types of the table.
        trust: name of the caller's argument that trusts pickles, for messages.
        error: class of the refusal.
    Raises `error` naming the class that is not allowed, DataLossError.
    """
    reader = type("Reader", (Unpickler,), {"allowed": names_of(allow_types)})
    try:
        if trusted:
            return pickle.loads(data)
        return reader(io.BytesIO(data)).load()
    except UnsafePickle as e:
        raise refusal(where, e, trust, error) from e
    except Exception as e:  # a trusted pickle raises whatever the classes inside raise
        raise DataLossError(f"object {where} is no readable pickle: {e}", {"tensor": where}) from e


def refusal(where: str, found: UnsafePickle, trust: str,
            error: type[PermissionDeniedError] = PermissionDeniedError) -> PermissionDeniedError:
    """What to raise where a pickle uses something that is not allowed."""
    return error(f"the object {where} is a pickle that uses {found}, which could run code when it is loaded; pass "
                 f"allow_types=[...] with it if it is a class of yours, or {trust}=True if you trust the checkpoint",
                 {"tensor": where, "unsafe": found.name})
