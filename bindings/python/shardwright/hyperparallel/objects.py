# SPDX-License-Identifier: Apache-2.0
"""Bytes of objects that are no tensors: a short head that names the content type, then the content.

    head := "SHWO", u8 version = 1, u8 n, n bytes of content type (ASCII)

Content types are those of checkpoints: application/json (with the tagged forms of this library),
application/octet-stream for bytes, application/python-pickle. Bytes without the head are what HyperParallel itself
writes: a pickle, or raw bytes.
"""
from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from .. import _json, _pickle_notice, _pickles
from ..errors import DataLossError, InvalidArgumentError, UnimplementedError
from .faults import UnsafePickleError

MAGIC = b"SHWO"
_VERSION = 1
_BYTES = "application/octet-stream"
_PICKLE = "application/python-pickle"


def encode_object(value: Any, where: str, *, pickles: bool = False) -> bytes:
    """Typed bytes of a JSON value or bytes; of anything else only with `pickles`.

    Raises InvalidArgumentError naming the entry.
    """
    if isinstance(value, bytes):
        return _head(_BYTES) + value
    try:
        return _head(_json.CONTENT_TYPE) + _json.encode(value, where)
    except InvalidArgumentError:
        if not pickles:
            raise
    try:
        return _head(_PICKLE) + _pickle_notice.write(value, where)
    except Exception as e:  # a reducer of the caller may raise anything
        raise InvalidArgumentError(f"{where} cannot be pickled: {e}", {"tensor": where}) from e


def decode_object(data: Any, where: str, *, trust_pickle: bool = False, allow_types: Iterable[Any] = ()) -> Any:
    """The value of typed bytes.

    Args:
        data: bytes, any buffer, or a binary file.
        where: name of the entry, for messages.
        trust_pickle: run pickles, also those without a head, that HyperParallel wrote, whatever they do.
        allow_types: classes and functions that pickles may use beside built-in, standard-library and numpy types that run
            nothing.
    Raises UnsafePickleError (a PermissionDeniedError and RuntimeError), DataLossError, UnimplementedError.
    """
    content = data.getvalue() if isinstance(data, io.BytesIO) else data.read() if hasattr(data, "read") else bytes(data)
    if not content.startswith(MAGIC):
        if not trust_pickle and not content.startswith(_pickles.PROTOCOL_MARK):
            raise UnsafePickleError(f"object {where} is bytes that HyperParallel wrote as they were, or an old pickle; "
                                    "loading it may run code. Pass trust_pickle=True to the planner when you trust the "
                                    "checkpoint", {"tensor": where, "unsafe": "pickle"})
        return _pickles.read(content, where, trusted=trust_pickle, allow_types=allow_types, error=UnsafePickleError)
    if len(content) < 6 or len(content) < 6 + content[5]:
        raise DataLossError(f"object {where} is cut short inside its head", {"tensor": where})
    if content[4] != _VERSION:
        raise UnimplementedError(f"object {where} has version {content[4]} of the object encoding; this library reads "
                                 f"version {_VERSION}", {"tensor": where})
    kind, payload = content[6:6 + content[5]].decode("ascii", "replace"), content[6 + content[5]:]
    if kind == _BYTES:
        return payload
    if kind == _json.CONTENT_TYPE:
        return _json.decode(payload, where)
    if kind == _PICKLE:
        return _pickles.read(payload, where, trusted=trust_pickle, allow_types=allow_types, error=UnsafePickleError)
    raise UnimplementedError(f"object {where} has content type {kind!r}", {"tensor": where})


def _head(content_type: str) -> bytes:
    return MAGIC + bytes((_VERSION, len(content_type))) + content_type.encode("ascii")
