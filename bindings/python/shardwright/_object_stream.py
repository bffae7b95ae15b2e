# SPDX-License-Identifier: Apache-2.0
"""Byte objects of a checkpoint as streams."""

from __future__ import annotations

import io
from typing import Any

from ._library import native

BUFFER_BYTES = 1 << 20  # of one read from the checkpoint


class ObjectStream(io.RawIOBase):
    """One byte object, read-only and seekable. Holds the checkpoint's handle. One thread at a time."""

    def __init__(self, handle: Any, index: int) -> None:
        self._handle = handle
        self._index = index
        self._size = int(native.shw_checkpoint_object_size(handle, index))
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        self._check_open()
        view = memoryview(buffer).cast("B")
        if self._position >= self._size or not view.nbytes:
            return 0
        part = native.shw_checkpoint_read_object_part(self._handle, self._index, self._position, view.nbytes)[0]
        view[:len(part)] = part
        self._position += len(part)
        return len(part)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._check_open()
        bases = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}
        if whence not in bases:
            raise ValueError(f"whence is {whence}; one of 0, 1, 2")
        position = bases[whence] + offset
        if position < 0:
            raise ValueError(f"negative seek position {position}")
        self._position = position
        return position

    def tell(self) -> int:
        self._check_open()
        return self._position

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on a closed stream")
