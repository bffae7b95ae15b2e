# SPDX-License-Identifier: Apache-2.0
"""Storages: where checkpoints live. A path alone means a directory; a storage and a key prefix mean anything else."""
from __future__ import annotations

import enum
import os
from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

from ._library import native
from .context import Context, shared
from .errors import FailedPreconditionError, InvalidArgumentError

class Capability(enum.IntFlag):
    """What a storage can do, each by itself. What it lacks is done another way or refused, naming the capability."""

    POSITIONAL_WRITE = 1  # objects that are opened to "create_visible" are written by several threads in any order
    ATOMIC_COMMIT = 2  # commit shows all of an object or nothing; a save without it is refused
    CONDITIONAL_COMMIT = 4  # commit takes conditions; without it only one writer may save at a path
    CONCURRENT_READ = 8  # read_at comes from several threads on one object
    DIRECT_IO = 16  # large files are written in blocks at multiples of `alignment`, then truncated
    MULTIPART = 32  # objects that are opened to "create" are written in parts of at least `part_bytes`
    DURABLE = 64  # what was synced or committed outlives a power loss


_CONDITIONS = {"none": 0, "if_absent": 1, "if_version": 2}


class Storage:
    """A place where checkpoints lie; keys are text with "/" between parts. Base of the classes below."""

    def __init__(self, handle: Any) -> None:
        self._handle: Any = handle

    @property
    def name(self) -> str:
        """Name of the kind of storage."""
        return str(native.shw_storage_name(self._handle))

    @property
    def capabilities(self) -> Capability:
        """What the storage can do."""
        return Capability(int(native.shw_storage_capabilities(self._handle)))

    def put(self, key: str, data: Any, *, condition: str = "none", expected_version: str = "") -> None:
        """Writes a whole object, durable where the storage is. AbortedError when the condition ("none", "if_absent",
        "if_version") does not hold; FailedPreconditionError when the storage has no conditions."""
        native.shw_storage_put(self._handle, key, data, _CONDITIONS[condition], expected_version)

    def read(self, key: str, offset: int = 0, size: int | None = None) -> bytes:
        """`size` bytes at `offset` (None = to the end). OutOfRangeError when the object ends before."""
        if size is None:
            size = max(0, self.stat(key)[0] - offset)
        data: bytes = native.shw_py_storage_read(self._handle, key, offset, size)
        return data

    def stat(self, key: str) -> tuple[int, int]:
        """(size, time of the last change in ns since 1970). NotFoundError."""
        found = native.shw_storage_stat_key(self._handle, key)
        return found.size, found.modified_ns

    def version(self, key: str) -> str:
        """Opaque text that changes whenever the object does, "" when the storage has none. NotFoundError."""
        return b"".join(native.shw_storage_version(self._handle, key)).decode("utf-8")

    def list(self, prefix: str = "", *, delimiter: str = "") -> list[str]:
        """Keys that begin with a prefix, ascending. With `delimiter` "/" one level: what lies deeper is given once, up to
        and with its next "/"."""
        if delimiter not in ("", "/"):
            raise InvalidArgumentError(f"delimiter {delimiter!r} is neither '' nor '/'")
        return [key.decode("utf-8") for key in native.shw_storage_list(self._handle, prefix, ord(delimiter or "\0"))]

    def remove(self, key: str) -> None:
        """Removes an object; a missing key is fine."""
        native.shw_storage_remove(self._handle, key)

    def close(self) -> None:
        """Releases the storage; checkpoints and jobs that use it keep it alive. Twice is fine."""
        native.shw_py_close(self._handle)

    def __enter__(self) -> Storage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            return f"shardwright.{type(self).__name__}({self.name})"
        except FailedPreconditionError:  # a closed one can still be shown
            return f"shardwright.{type(self).__name__}(closed)"

    def __reduce__(self) -> Any:
        raise TypeError("a storage is not pickled; make it again in the other process")


class PosixStorage(Storage):
    """The files below a directory, which need not exist yet. Keys never leave it."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        super().__init__(native.shw_storage_create_posix(os.fsencode(root)))


class MemoryStorage(Storage):
    """Objects in memory of this process."""

    def __init__(self) -> None:
        super().__init__(native.shw_storage_create_memory())


class PluginStorage(Storage):
    """A storage of a plugin, made from text that the plugin understands."""

    def __init__(self, plugin: str, config: str = "", *, context: Context | None = None) -> None:
        owner = context or shared()
        super().__init__(native.shw_context_open_storage(owner._handle, plugin, config))


@runtime_checkable
class HostObject(Protocol):
    """What a host's storage gives for an open object. Views that are handed in end with the call."""

    def read_at(self, offset: int, data: memoryview) -> int:
        """Fills `data` from `offset` on; the number of bytes, less than asked only at the end of the object."""

    def write_at(self, offset: int, data: memoryview) -> None:
        """Writes all of `data`; offsets ascend without gaps unless POSITIONAL_WRITE or MULTIPART is offered. With DIRECT_IO
        a method `truncate(size)` sets the length behind the last write."""

    def sync(self) -> None:
        """Bytes and length are durable when it returns, where DURABLE is offered."""

    def commit(self, condition: str, expected_version: str) -> None:
        """Publishes the object under its key, atomically, and durable where that is offered; `condition` is "none",
        "if_absent" or "if_version". Raises AbortedError when it does not hold."""

    def abort(self) -> None:
        """Leaves nothing visible of what was written, whatever the mode; `close` still follows."""

    def close(self) -> None:
        """Ends the use of the object. One that was opened to "create" and neither committed nor aborted is aborted; one
        that was opened to "create_visible" stays as it was written."""


@runtime_checkable
class HostStorage(Protocol):
    """What a Python object needs to be a storage. Methods are called from threads of the library, several at a time on
    different objects. Errors of shardwright.errors and FileNotFoundError keep their meaning; any other exception comes
    out of the call that caused it. Optional: `name`, `capabilities` (of Capability; saves need ATOMIC_COMMIT,
    which is what an object without this attribute has), `alignment` (for DIRECT_IO), `part_bytes` (for MULTIPART),
    `list_level(prefix)` (as `list`, but keys that go on behind the next "/" after the prefix are given once, as
    (what they begin with up to and with it, 0, 0, "")), `close()`, `space(key)` (free bytes where
    the key would live; a save that needs more fails before it writes), `lock(key, mode)` (takes an advisory lock, "shared"
    beside others or "exclusive", without waiting, and gives an object whose `release()` gives it back; None when the lock of
    somebody else forbids it. Saves share the lock of a path, garbage collection has it alone. Without this method `gc` needs
    its full grace period)."""

    def open(self, key: str, mode: str) -> HostObject:
        """Opens an object: "read", "create" (invisible until commit), "create_visible" (AlreadyExistsError), "update" (writes
        into one that is there; asked for where writes are positional)."""

    def stat(self, key: str) -> tuple[int, int, str]:
        """(size, modified_ns, version): text that changes whenever the object does, or "". NotFoundError."""

    def list(self, prefix: str) -> Iterable[tuple[str, int, int, str]]:
        """(key, size, modified_ns, version) of each object whose key begins with prefix, in ascending byte order."""

    def remove(self, key: str) -> None:
        """Removes an object; a missing key is fine."""


class CustomStorage(Storage):
    """A storage made of a Python object with the methods of HostStorage."""

    def __init__(self, host: HostStorage) -> None:
        super().__init__(native.shw_py_storage_create(host))


def handle_of(storage: Any) -> Any:
    """Native handle of a storage argument: None, a Storage, or a Python object with the methods of one."""
    if storage is None:
        return None
    if isinstance(storage, Storage):
        return storage._handle
    return CustomStorage(storage)._handle
