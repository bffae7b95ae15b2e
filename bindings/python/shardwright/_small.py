# SPDX-License-Identifier: Apache-2.0
"""numpy arrays of dtypes that numpy itself lacks: those that ml_dtypes registers, such as bfloat16, float8_e5m2 or int4.

The library packs elements below a byte, the first in the low bits; ml_dtypes gives each a byte of its own. Such arrays are
packed into a Tensor before a save, and unpacked from one after a load.
"""
from __future__ import annotations

import importlib
import sys
from typing import Any

from ._library import native
from .errors import InvalidArgumentError, UnimplementedError

_BLOCK = 1 << 20  # elements that are unpacked at a time; a multiple of 8, so that blocks begin on whole bytes
_REGISTERED = 2   # numpy's mark of dtypes that another package made


def registered_number(value: Any, name: str) -> int | None:
    """Dtype number of a numpy array whose dtype another package registered; None for every other value.
    UnimplementedError for a registered dtype that cannot be stored; `name` names the entry in it."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.ndarray):
        return None
    dtype = value.dtype
    if dtype.isbuiltin != _REGISTERED or not dtype.isnative:
        return None
    try:
        number = int(native.shw_dtype_parse(dtype.name))
    except InvalidArgumentError:
        number = 0
    if number == 0 or max(8, native.shw_dtype_bits(number)) != 8 * dtype.itemsize:
        raise UnimplementedError(f"{name} has dtype {dtype.name}, which cannot be stored; convert it",
                                 {"tensor": name, "found": dtype.name})
    return number


def _as_bytes(array: Any) -> Any:
    import numpy
    return numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8)


def pack(array: Any, bits: int, out: memoryview) -> None:
    """Writes the low `bits` bits of each element into `out`."""
    import numpy
    elements = _as_bytes(array)
    packed = numpy.frombuffer(out, numpy.uint8)
    for first in range(0, len(elements), _BLOCK):
        block = numpy.unpackbits(elements[first:first + _BLOCK, None], axis=1, bitorder="little")[:, :bits]
        filled = numpy.packbits(block, bitorder="little")
        packed[first * bits // 8:first * bits // 8 + len(filled)] = filled


def unpack(data: memoryview, bits: int, signed: bool, array: Any) -> None:
    """Fills an array of one byte per element from packed elements."""
    import numpy
    packed = numpy.frombuffer(data, numpy.uint8)
    elements = numpy.empty(array.size, numpy.uint8)
    for first in range(0, len(elements), _BLOCK):
        count = min(_BLOCK, len(elements) - first)
        found = numpy.unpackbits(packed[first * bits // 8:], count=count * bits, bitorder="little").reshape(count, bits)
        elements[first:first + count] = numpy.packbits(found, axis=1, bitorder="little")[:, 0]
    if signed:
        sign = 1 << (bits - 1)
        elements = (elements ^ sign) - numpy.uint8(sign)
    array[...] = elements.view(array.dtype).reshape(array.shape)


def array_of(data: memoryview, dtype: str, number: int, shape: tuple[int, ...]) -> Any:
    """A numpy array of a dtype that ml_dtypes has: over the same bytes, or a copy where elements are below a byte."""
    import numpy
    try:
        kind = getattr(importlib.import_module("ml_dtypes"), dtype)
    except (ImportError, AttributeError) as e:
        raise UnimplementedError(f"numpy has no dtype {dtype}, and ml_dtypes, which may have it, was not found ({e}); use "
                                 "torch.from_dlpack(t), or raw() for the bytes") from e
    bits = native.shw_dtype_bits(number)
    if bits >= 8:
        return numpy.frombuffer(data, kind).reshape(shape)
    array = numpy.empty(shape, kind)
    unpack(data, bits, dtype.startswith("int"), array)
    return array
