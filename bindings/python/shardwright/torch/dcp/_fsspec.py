# SPDX-License-Identifier: Apache-2.0
"""File systems of fsspec as storages of the library: `s3://`, `msc://`, `memory://` and whatever else is installed.

An object becomes visible when it is complete: where its stream is closed on object stores, by a rename elsewhere. There
are no conditions, so one writer at a time may save at a path.
"""
from __future__ import annotations

import contextlib
import io
import os
import uuid
from collections.abc import Iterable
from typing import Any

from ...errors import AlreadyExistsError, NotFoundError
from ...storage import Capability, CustomStorage

_NS = 1_000_000_000
# File systems whose files can be closed without being shown (`autocommit=False`), and whose rename is a copy.
_UPLOADING = frozenset(("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oss", "obs"))


def is_url(checkpoint_id: Any) -> bool:
    """Whether fsspec knows the file system that a text names by its scheme."""
    if not isinstance(checkpoint_id, str) or "://" not in checkpoint_id:
        return False
    try:
        from fsspec.core import url_to_fs
        url_to_fs(checkpoint_id)
    except (ImportError, ValueError):
        return False
    return True


def storage_of(url: str, **options: Any) -> CustomStorage:
    """The storage below a URL; keys begin where the URL ends."""
    return CustomStorage(host_storage_of(url, **options))


def host_storage_of(url: str, **options: Any) -> FsspecStorage:
    """The same, to be used from Python."""
    from fsspec.core import url_to_fs
    return FsspecStorage(*url_to_fs(url, **options))


class FsspecStorage:
    """The methods of HostStorage over a file system of fsspec. Thread-safe where the file system is."""

    name = "fsspec"
    capabilities = Capability.ATOMIC_COMMIT | Capability.CONCURRENT_READ

    def __init__(self, system: Any, root: str) -> None:
        self._system, self._root = system, root.rstrip("/")

    def path_of(self, key: str) -> str:
        """Where an object lies."""
        return f"{self._root}/{key}" if key else self._root

    def open(self, key: str, mode: str) -> Any:
        """Opens an object."""
        path = self.path_of(key)
        if mode == "read":
            return _Read(self._system, path, self.stat(key)[0])
        if mode == "create_visible" and self._system.exists(path):
            raise AlreadyExistsError(f"{key} exists", {"key": key})
        return _Write(self._system, path, visible=mode == "create_visible")

    def stat(self, key: str) -> tuple[int, int, str]:
        """Size, time and version of an object."""
        self._system.invalidate_cache(self._system._parent(self.path_of(key)))
        try:
            found = self._system.info(self.path_of(key))
        except FileNotFoundError as e:
            raise NotFoundError(f"there is no {key}", {"key": key}) from e
        if found["type"] != "file":
            raise NotFoundError(f"{key} is no object", {"key": key})
        return int(found["size"]), _modified(found), _version(found)

    def list(self, prefix: str) -> Iterable[tuple[str, int, int, str]]:
        """All objects whose key begins with a prefix."""
        self._system.invalidate_cache()
        start = len(self.path_of("")) + 1 if self._root else 0
        folder = self.path_of(prefix.rpartition("/")[0])
        found = self._system.find(folder, detail=True) if self._system.exists(folder) else {}
        rows = [(path[start:], int(info["size"]), _modified(info), _version(info)) for path, info in found.items()]
        return sorted(row for row in rows if row[0].startswith(prefix))

    def remove(self, key: str) -> None:
        """Removes an object."""
        with contextlib.suppress(FileNotFoundError):
            self._system.rm_file(self.path_of(key))


def _protocols(system: Any) -> tuple[str, ...]:
    found = system.protocol
    return (found,) if isinstance(found, str) else tuple(found)


def _modified(info: dict[str, Any]) -> int:
    for word in ("mtime", "LastModified", "created", "updated"):
        found: Any = info.get(word)
        if isinstance(found, (int, float)):
            return int(found * _NS)
        if hasattr(found, "timestamp"):
            return int(found.timestamp() * _NS)
    return 0


def _version(info: dict[str, Any]) -> str:
    for word in ("ETag", "etag", "generation", "VersionId", "ino"):
        if info.get(word):
            return f"{info[word]}/{info['size']}/{_modified(info)}"
    return f"{info['size']}/{_modified(info)}"


class _Read:
    """An object that is open for reading."""

    def __init__(self, system: Any, path: str, size: int) -> None:
        self._system, self._path, self._size = system, path, size

    def read_at(self, offset: int, data: memoryview) -> int:
        end = min(offset + len(data), self._size)
        if end <= offset:
            return 0
        found = self._system.cat_file(self._path, start=offset, end=end)
        data[:len(found)] = found
        return len(found)

    def close(self) -> None:
        """Nothing is held."""


class _Write:
    """An object that is being written, in order. Nobody sees it before it is committed: object stores keep back what is being
    uploaded; elsewhere it has a name of its own until then."""

    def __init__(self, system: Any, path: str, *, visible: bool) -> None:
        self._system, self._path, self._visible = system, path, visible
        folder, _, name = path.rpartition("/")
        with contextlib.suppress(FileExistsError):
            system.makedirs(folder, exist_ok=True)
        self._partial, self._done = path, False
        self._stream: Any = system.open(path, "wb") if visible else self._kept_back()
        if self._stream is None:
            self._partial = f"{folder}/.{name}.{uuid.uuid4().hex[:12]}.partial"
            self._stream = system.open(self._partial, "wb")

    def _kept_back(self) -> Any:
        if _UPLOADING.isdisjoint(_protocols(self._system)):
            return None
        try:
            stream = self._system.open(self._path, "wb", autocommit=False)
        except TypeError:  # not an option of this file system
            return None
        with contextlib.suppress(ValueError, AttributeError):
            self._system.transaction.files.remove(stream)  # it is no part of a transaction of the caller
        if hasattr(stream, "commit") and hasattr(stream, "discard"):
            return stream
        stream.close()
        return None

    def write_at(self, offset: int, data: memoryview) -> None:
        if offset != self._stream.tell():
            raise io.UnsupportedOperation(f"{self._path} is written in order, and {offset} is not its end")
        self._stream.write(bytes(data))

    def sync(self) -> None:
        self._stream.flush()
        with contextlib.suppress(AttributeError, OSError, io.UnsupportedOperation):
            os.fsync(self._stream.fileno())

    def commit(self, condition: str, expected_version: str) -> None:
        del condition, expected_version  # not offered
        self._done = True
        self._stream.close()
        if self._partial == self._path:
            self._stream.commit()
        else:
            self._system.mv(self._partial, self._path)

    def abort(self) -> None:
        if self._done:
            return
        self._done = True
        self._stream.close()
        with contextlib.suppress(FileNotFoundError):
            if self._partial == self._path and not self._visible:
                self._stream.discard()
            else:
                self._system.rm_file(self._partial)

    def close(self) -> None:
        if not self._visible:
            self.abort()
        elif not self._done:
            self._stream.close()
