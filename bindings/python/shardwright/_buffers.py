# SPDX-License-Identifier: Apache-2.0
"""Which values are tensors, and the ways in for those that the native loop does not take by itself.

Order: the C exchange table of DLPack on the type, the buffer protocol, `__dlpack__` with a version, the old `__dlpack__`.
Nothing is copied; the columns that take a leaf keep it alive.
"""
from __future__ import annotations

from typing import Any

from ._library import native
from .errors import InvalidArgumentError
from .tensor import Tensor, dtype_number

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


def _reinterpreted(value: Any) -> tuple[Any, int, tuple[int, ...]] | None:
    """A numpy array of a dtype that only its name tells (ml_dtypes' bfloat16, float8 ...) as unsigned integers."""
    dtype = getattr(value, "dtype", None)
    name = getattr(dtype, "name", None)
    if not isinstance(name, str) or not hasattr(value, "view") or getattr(dtype, "kind", "") != "V":
        return None
    try:
        number = dtype_number(name)
    except InvalidArgumentError:
        return None
    if number >> 8 != 8 * value.itemsize:
        return None
    return value.view(f"uint{8 * value.itemsize}"), number, tuple(value.shape)


def _capsule(value: Any) -> Any:
    """DLPack capsule of a value; its stream is ordered by the producer where the device has one."""
    device = value.__dlpack_device__() if hasattr(value, "__dlpack_device__") else (1, 0)
    keywords: dict[str, Any] = {} if int(device[0]) in _CPU_DEVICES else {"stream": -1}
    try:
        return value.__dlpack__(max_version=_DLPACK_VERSION, **keywords)
    except TypeError:
        return value.__dlpack__(**keywords)


def import_leaf(columns: Any, name: bytes, path: bytes, value: Any, placement: Any) -> bool:
    """Adds a value that offers a tensor in any of the known ways; False when it is none."""
    kind = type(value)
    if is_sharded_type(kind):
        raise InvalidArgumentError(
            f"{name.decode('utf-8', 'replace')} is a {kind.__qualname__}, which holds a part of a tensor; use "
            "shardwright.torch.save and shardwright.torch.load", {"tensor": name.decode("utf-8", "replace")})
    if native.shw_py_columns_add(columns, name, path, value, placement):
        return True
    known = _reinterpreted(value)
    if known is not None:
        return bool(native.shw_py_columns_add(columns, name, path, known, placement))
    if not hasattr(value, "__dlpack__"):
        return False
    try:
        capsule = _capsule(value)
    except (BufferError, RuntimeError) as e:
        raise InvalidArgumentError(f"{name.decode('utf-8', 'replace')} is a {kind.__qualname__} that cannot be exchanged "
                                   f"by DLPack: {e}", {"tensor": name.decode("utf-8", "replace")}) from e
    return bool(native.shw_py_columns_add(columns, name, path, capsule, placement))
