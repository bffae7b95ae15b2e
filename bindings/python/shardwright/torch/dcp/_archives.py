# SPDX-License-Identifier: Apache-2.0
"""Stored objects as the archives that they are in torch's files. The library gives plain values as JSON, in which torch's
dtypes and devices are text and sizes tuples; where a value may be more than the text that it looks like, its archive says."""
from __future__ import annotations

import io
import os
import re
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import MetadataIndex

from ...errors import NotFoundError
from . import _metadata_file
from ._place import Place

_INDEX = ".metadata"
_DTYPES = frozenset(str(value) for value in vars(torch).values() if isinstance(value, torch.dtype))
_DEVICE = re.compile(r"(cpu|cuda|meta|xpu|mps|hpu|npu|ipu|mtia|privateuseone)(:\d+)?\Z")


def may_be_more(value: Any) -> bool:
    """Whether a value may stand for another one: text for a dtype or a device, a tuple of integers for a torch.Size, a dict for
    an OrderedDict."""
    if type(value) is str:
        return value in _DTYPES or bool(_DEVICE.match(value))
    if type(value) is tuple and all(type(part) is int for part in value):
        return True
    return type(value) is dict or (type(value) in (list, tuple, set, frozenset) and any(map(may_be_more, value)))


class Archives:
    """The archives of a checkpoint of torch; the index is read with the first. Thread-compatible."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._index: Any = None

    def read(self, name: str) -> io.BytesIO | None:
        """The archive of an object; None where there is none by that name, or the files are of another format."""
        if self._index is None:
            self._index = self._read_index()
        found = self._index.get(MetadataIndex(name))
        if found is None or getattr(found, "transform_descriptors", None):
            return None
        return io.BytesIO(self._bytes(found.relative_path, found.offset, found.length))

    def _read_index(self) -> Any:
        try:
            return _metadata_file.read(io.BytesIO(self._bytes(_INDEX, 0, None))).storage_data or {}
        except FileNotFoundError:
            return {}

    def _bytes(self, key: str, offset: int, size: int | None) -> bytes:
        path, storage = self._place.path, self._place.storage
        if storage is not None:
            found: bytes = storage.read(f"{path}/{key}" if path else key, offset, size)
            return found
        try:
            with open(os.path.join(path, key), "rb") as file:
                file.seek(offset)
                return file.read(-1 if size is None else size)
        except NotADirectoryError as e:
            raise NotFoundError(f"{path} is a file", {"path": os.fsdecode(path)}) from e
