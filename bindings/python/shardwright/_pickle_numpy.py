# SPDX-License-Identifier: Apache-2.0
"""numpy's arrays, scalars and dtypes in pickles that are not trusted; numpy is imported when a pickle names it.

numpy believes what a pickle says of a dtype, and an array of Python objects is memory full of pointers. So a dtype is made by
its public constructor and must say of itself what the pickle says of it, and objects are refused.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ._pickle_kinds import Builder, Odd

_ARRAY_MODULES = ("numpy._core.multiarray", "numpy.core.multiarray")
_BUFFER_MODULES = ("numpy._core.numeric", "numpy.core.numeric")
_KINDS = "biufcSUMmV"


class NumpyKinds:
    """Names that pickles may use, what is called for them, and how arrays and dtypes take their states."""

    def __init__(self, numpy: Any) -> None:
        self._numpy = numpy
        reconstruct, scalar = (getattr(_first(numpy, _ARRAY_MODULES), name) for name in ("_reconstruct", "scalar"))
        from_buffer = _first(numpy, _BUFFER_MODULES)._frombuffer
        self.names: dict[tuple[str, str], Any] = {("numpy", "ndarray"): numpy.ndarray, ("numpy", "dtype"): numpy.dtype}
        for module in _ARRAY_MODULES:
            self.names |= {(module, "_reconstruct"): reconstruct, (module, "scalar"): scalar}
        self.names |= {(module, "_frombuffer"): from_buffer for module in _BUFFER_MODULES}
        for name, kind in vars(numpy).items():
            if isinstance(kind, type) and issubclass(kind, numpy.generic) and kind is not numpy.object_:
                self.names["numpy", name] = kind
        self.calls: dict[Any, Builder] = {numpy.dtype: self._dtype, reconstruct: self._empty, scalar: self._scalar,
                                          from_buffer: self._from_buffer}
        self.states: dict[type, Callable[[Any, Any], None]] = {numpy.ndarray: self._fill}

    def state_of(self, kind: type) -> Callable[[Any, Any], None] | None:
        """How an array or a dtype takes its state."""
        return self._finish_dtype if issubclass(kind, self._numpy.dtype) else self.states.get(kind)

    def _dtype(self, text: Any, align: Any = False, copy: Any = True) -> Any:
        del align, copy
        if type(text) is str and text.startswith("O"):
            raise Odd("Python objects in an array")
        if type(text) is not str or not text or text[0] not in _KINDS or not text[1:].isdecimal() and text[1:]:
            raise Odd(f"the dtype {text!r:.40}")
        return self._numpy.dtype(text, False, True)  # a copy: its state must not reach numpy's own

    def _finish_dtype(self, dtype: Any, state: Any) -> None:
        made = self._as_described(dtype, state)
        said = made.__reduce__()[2]
        if made.hasobject or made.itemsize != dtype.itemsize or made.kind != dtype.kind or _comparable(said) != _comparable(state):
            raise Odd("a dtype that numpy does not write so")
        dtype.__setstate__(state)

    def _as_described(self, dtype: Any, state: Any) -> Any:
        """The dtype that a state describes, by numpy's public constructor."""
        if type(state) is not tuple or not 8 <= len(state) <= 9 or state[2] is not None or dtype.fields is not None:
            raise Odd("a dtype of a kind that is not read")
        order, names, fields, size = state[1], state[3], state[4], state[5]
        if order not in ("<", ">", "|", "=") or not all(type(number) is int for number in (state[0], *state[5:8])):
            raise Odd("a dtype of a kind that is not read")
        if names is not None:
            return self._structure(names, fields, size, state[7])
        if dtype.kind in "Mm" and len(state) == 9:
            return self._numpy.dtype(f"{dtype.kind}8{_unit(state[8])}").newbyteorder(order)
        return dtype.newbyteorder(order) if order in "<>" else dtype

    def _structure(self, names: Any, fields: Any, size: int, flags: int) -> Any:
        if type(names) is not tuple or type(fields) is not dict or set(names) != fields.keys():
            raise Odd("a dtype of a kind that is not read")
        places = [fields[name] for name in names]
        for place in places:
            if type(place) is not tuple or len(place) != 2 or not isinstance(place[0], self._numpy.dtype):
                raise Odd("a dtype of a kind that is not read")
        return self._numpy.dtype({"names": list(names), "formats": [place[0] for place in places],
                                  "offsets": [place[1] for place in places], "itemsize": size}, align=bool(flags & 0x80))

    def _check_content(self, dtype: Any, shape: Any, content: Any) -> None:
        if not isinstance(dtype, self._numpy.dtype) or dtype.kind not in _KINDS or dtype.hasobject:
            raise Odd("Python objects in an array")
        if type(shape) is not tuple or not all(type(extent) is int and extent >= 0 for extent in shape):
            raise Odd("a shape that is none")
        if type(content) not in (bytes, bytearray) or len(content) != math.prod(shape) * dtype.itemsize:
            raise Odd("an array whose bytes do not fit its shape")

    def _empty(self, kind: Any, shape: Any, code: Any) -> Any:
        if kind is not self._numpy.ndarray or shape != (0,) or code not in (b"b", "b"):
            raise Odd("an array of another class")
        return self._numpy.empty((0,), "b")

    def _fill(self, array: Any, state: Any) -> None:
        if type(state) is not tuple or len(state) not in (4, 5) or array.size or array.dtype.kind != "i":
            raise Odd("a state that arrays do not write")
        shape, dtype, by_columns, content = state[-4:]
        self._check_content(dtype, shape, content)
        array.__setstate__((1, shape, self._numpy.dtype(dtype, False, True), bool(by_columns), content))

    def _scalar(self, dtype: Any, content: Any = b"") -> Any:
        self._check_content(dtype, (), content)
        return self._numpy.frombuffer(content, dtype)[0] if dtype.itemsize else dtype.type()

    def _from_buffer(self, content: Any, dtype: Any, shape: Any, order: Any, axes: Any = None) -> Any:
        self._check_content(dtype, shape, content)
        if order not in ("C", "F") or axes is not None:
            raise Odd("an array in an order that is not read")
        if dtype.itemsize == 0 or not content:
            return self._numpy.empty(shape, dtype, order)
        return self._numpy.frombuffer(bytearray(content), dtype).reshape(shape, order=order)


def _first(numpy: Any, names: tuple[str, ...]) -> Any:
    """The first of some sub-modules that this numpy has."""
    modern, old = (name.split(".")[1:] for name in names)
    package = getattr(numpy, modern[0], None) or getattr(numpy, old[0])
    return getattr(package, modern[1])


def _comparable(state: tuple[Any, ...]) -> tuple[Any, ...]:
    """A state without its version, with fields as a plain dict and without empty extra data of the unit."""
    unit = _unit(state[8]) if len(state) == 9 else None
    return (state[1], state[2], state[3], dict(state[4]) if state[4] is not None else None, *state[5:8], unit)


def _unit(extra: Any) -> str:
    """Text of the unit of a time, as dtypes spell it; empty for none."""
    if type(extra) is not tuple or len(extra) != 2 or type(extra[1]) is not tuple or not 3 <= len(extra[1]) <= 4:
        raise Odd("a time without a unit")
    name, count = extra[1][0], extra[1][1]
    text = name.decode("ascii", "replace") if type(name) is bytes else name
    if type(text) is not str or type(count) is not int or not text.isalpha():
        raise Odd("a time without a unit")
    return "" if text == "generic" else f"[{count}{text}]"
