# SPDX-License-Identifier: Apache-2.0
"""Which values are tensors, and the ways in for those that the native loop does not take by itself.

Order: the C exchange table of DLPack on the type, the buffer protocol, `__dlpack__` with a version, the old `__dlpack__`.
Nothing is copied; the columns that take a leaf keep it alive.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from . import _small
from ._library import native
from .errors import InvalidArgumentError
from .tensor import Tensor, allocate, dtype_bits, dtype_number

_OTHER, _EXCHANGE, _BUFFER, _OWN = 0, 1, 2, 3
_DLPACK_VERSION = (1, 3)
_CPU_DEVICES = (1, 3)


def is_sharded_type(kind: type) -> bool:
    """True for tensor subclasses that hold a part of a larger tensor (torch's DTensor and the like)."""
    return hasattr(kind, "device_mesh") or hasattr(kind, "__tensor_flatten__")


def classify(value: Any) -> int:
    """How the native loop takes values of this type; asked once per type."""
    kind = type(value)
    if isinstance(value, Tensor):
        return _OWN
    if isinstance(value, (str, bytes, int, float, dict, list, tuple)) or value is None:
        return _OTHER
    if hasattr(kind, "__dlpack_c_exchange_api__"):
        return _OTHER if is_sharded_type(kind) else _EXCHANGE
    try:
        memoryview(value).release()
    except (TypeError, ValueError, BufferError):
        return _BUFFER if kind.__module__ == "numpy" and kind.__name__ == "ndarray" else _OTHER
    return _BUFFER


native.shw_py_set_classifier(classify)


class Staged(NamedTuple):
    """An array whose elements are below a byte each, and the packed tensor that stands for it in a call."""

    name: str
    packed: Tensor
    array: Any

    def put_back(self) -> None:
        """Fills the array from what a load put into the tensor."""
        name = self.packed.dtype
        _small.unpack(self.packed.raw(), dtype_bits(dtype_number(name)), name.startswith("int"), self.array)


def _staged(name: str, value: Any, number: int, writable: bool) -> Staged:
    if writable and not value.flags.writeable:
        raise InvalidArgumentError(f"{name} is read-only and cannot be filled", {"tensor": name})
    packed = allocate([number], [tuple(value.shape)])[0]
    if not writable:
        _small.pack(value, dtype_bits(number), packed.raw())
    return Staged(name, packed, value)


def _capsule(value: Any) -> Any:
    """DLPack capsule of a value; its stream is ordered by the producer where the device has one."""
    device = value.__dlpack_device__() if hasattr(value, "__dlpack_device__") else (1, 0)
    keywords: dict[str, Any] = {} if int(device[0]) in _CPU_DEVICES else {"stream": -1}
    try:
        return value.__dlpack__(max_version=_DLPACK_VERSION, **keywords)
    except TypeError:
        return value.__dlpack__(**keywords)


def import_leaf(columns: Any, name: bytes, path: bytes, value: Any, placement: Any,
                targets: list[Staged] | None = None) -> bool:
    """Adds a value that offers a tensor in any of the known ways; False when it is none. `targets` of a load gains the
    arrays that have to be filled from what was read."""
    kind = type(value)
    if is_sharded_type(kind):
        raise InvalidArgumentError(
            f"{name.decode('utf-8', 'replace')} is a {kind.__qualname__}, which holds a part of a tensor; use "
            "shardwright.torch.save and shardwright.torch.load", {"tensor": name.decode("utf-8", "replace")})
    if native.shw_py_columns_add(columns, name, path, value, placement):
        return True
    number = _small.registered_number(value, name.decode("utf-8", "replace"))
    if number is not None and dtype_bits(number) >= 8:
        known = (value.view(f"uint{8 * value.itemsize}"), number, tuple(value.shape))
        return bool(native.shw_py_columns_add(columns, name, path, known, placement))
    if number is not None:
        staged = _staged(name.decode("utf-8", "replace"), value, number, targets is not None)
        if targets is not None:
            targets.append(staged)
        return bool(native.shw_py_columns_add(columns, name, path, staged.packed, placement))
    if not hasattr(value, "__dlpack__"):
        return False
    try:
        capsule = _capsule(value)
    except (BufferError, RuntimeError) as e:
        raise InvalidArgumentError(f"{name.decode('utf-8', 'replace')} is a {kind.__qualname__} that cannot be exchanged "
                                   f"by DLPack: {e}", {"tensor": name.decode("utf-8", "replace")}) from e
    return bool(native.shw_py_columns_add(columns, name, path, capsule, placement))
