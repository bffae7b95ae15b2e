# SPDX-License-Identifier: Apache-2.0
"""Byte objects as torch.save writes them, read without running anything of the file's choosing.

What torch reads as weights (`weights_only`) is read by torch. Where it refuses, the pickle inside goes through the reader of
_pickles, which knows more types and takes those that the caller allows; tensors in it get their bytes from the archive.
"""
from __future__ import annotations

import functools
import io
import pickle
import sys
import types
import zipfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from .. import _pickle_notice, _pickles
from .._pickle_kinds import Odd

_PICKLE = "data.pkl"
_torch: Any = torch  # what torch has without types


def write(value: Any, where: str, stream: io.BytesIO, allowed: Iterable[Any] = ()) -> None:
    """torch.save, after which the log names once what a load will need to be told. `allowed` are classes that every load of
    this kind takes."""
    kind = _pickle_notice.noting()
    torch.save(value, stream, pickle_module=types.SimpleNamespace(Pickler=kind, __name__=__name__))
    _pickle_notice.notice(where, kind.new, lambda: _unsafe_names(stream.getvalue(), allowed))


def _unsafe_names(content: bytes, allowed: Iterable[Any]) -> list[str]:
    known, builders = _torch_kinds()
    refused = _pickle_notice.unsafe_names(_archive(io.BytesIO(content)).get_record(_PICKLE), known, builders)
    return [name for name in refused if name not in _pickles.names_of(allowed)]


def read(stream: io.BytesIO, trusted: bool, allow_types: Iterable[Any]) -> Any:
    """The value of a stream of torch.save.

    Raises UnsafePickle for what is neither known nor allowed, DamagedPickle; a trusted one raises what it likes.
    """
    allowed = _pickles.names_of(allow_types)
    if trusted:
        return torch.load(stream, weights_only=False)
    try:
        return torch.load(stream, weights_only=True)
    except Exception:  # torch says by many types that it does not take a stream
        stream.seek(0)
        return _read_known(stream, allowed)


def _read_known(stream: io.BytesIO, allowed: Mapping[str, Any]) -> Any:
    if stream.getvalue()[:1] == _pickles.PROTOCOL_MARK:  # an archive begins with "PK"
        raise _pickles.UnsafePickle("the format of torch before 1.6")
    archive = _archive(stream)
    known, builders = _torch_kinds()
    reader = type("Reader", (_ArchiveReader,), {"allowed": {**_users_globals(), **allowed}, "known": known, "builders": builders})
    return reader(archive).load()


def read_file(path: str, trusted: bool, allow_types: Iterable[Any]) -> Any:
    """The value of a file of torch.save; tensors stay in the file until they are used. Raises as `read` does."""
    if trusted:
        return torch.load(path, map_location="cpu", weights_only=False)
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except FileNotFoundError:
        raise
    except Exception:  # torch says by many types that it does not take a file
        with open(path, "rb") as file:
            return _read_known(io.BytesIO(file.read()), _pickles.names_of(allow_types))


def read_pickle(data: bytes, trusted: bool, allow_types: Iterable[Any]) -> Any:
    """The value of a pickle that uses no storages. Raises as `read` does."""
    if trusted:
        return pickle.loads(data)
    known, builders = _torch_kinds()
    allowed = {**_users_globals(), **_pickles.names_of(allow_types)}
    return type("Reader", (_pickles.Unpickler,), {"allowed": allowed, "known": known, "builders": builders})(io.BytesIO(data)).load()


def _archive(stream: io.BytesIO) -> Any:
    try:
        return torch._C.PyTorchFileReader(stream)
    except RuntimeError as e:
        raise _pickles.DamagedPickle(f"it is no archive of torch: {str(e).partition(chr(10))[0]}") from e


def _users_globals() -> dict[str, Any]:
    """What the program has allowed all of torch to load."""
    pairs = (entry if isinstance(entry, tuple) else (entry, None) for entry in torch.serialization.get_safe_globals())
    return {name or f"{kind.__module__}.{kind.__qualname__}": kind for kind, name in pairs}


class _ArchiveReader(_pickles.Unpickler):
    """The pickle of an archive, with the storages of its tensors."""

    def __init__(self, archive: Any) -> None:
        super().__init__(io.BytesIO(archive.get_record(_PICKLE)))
        self._archive = archive
        self._storages: dict[str, Any] = {}
        if archive.has_record("byteorder") and archive.get_record("byteorder").decode() != sys.byteorder:
            raise _pickles.DamagedPickle("the archive is of a machine with another byte order")

    def persistent_load(self, pid: Any) -> Any:
        """A storage of the archive."""
        if type(pid) is not tuple or len(pid) != 5 or pid[0] != "storage" or not all(type(t) is str for t in pid[2:4]):
            raise _pickles.UnsafePickle("a reference to something outside of it")
        kind, key, location = pid[1:4]
        dtype = torch.uint8 if kind is torch.storage.UntypedStorage else getattr(kind, "dtype", None)
        if not isinstance(dtype, torch.dtype):
            raise _pickles.DamagedPickle("a storage has no dtype")
        if key not in self._storages:
            content = self._archive.get_record(f"data/{key}")
            flat = torch.frombuffer(bytearray(content), dtype=torch.uint8) if content else torch.empty(0, dtype=torch.uint8)
            self._storages[key] = _torch.serialization.default_restore_location(flat.untyped_storage(), location)
        return _torch.storage.TypedStorage(wrap_storage=self._storages[key], dtype=dtype, _internal=True)


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any = False, hooks: Any = None,
            metadata: Any = None) -> Any:
    if type(storage) is not torch.storage.TypedStorage or hooks or metadata:
        raise Odd("arguments that tensors do not write")
    return _torch._utils._rebuild_tensor_v2(storage, offset, size, stride, bool(requires_grad), None)


def _parameter(data: Any, requires_grad: Any, hooks: Any) -> Any:
    if type(data) is not torch.Tensor or hooks:
        raise Odd("arguments that parameters do not write")
    return torch.nn.Parameter(data, bool(requires_grad))


def _size(values: Any = ()) -> Any:
    if type(values) not in (list, tuple):
        raise Odd("arguments that sizes do not write")
    return torch.Size(values)


def _device(*arguments: Any) -> Any:
    if not all(type(argument) in (str, int) for argument in arguments):
        raise Odd("arguments that devices do not write")
    return torch.device(*arguments)


def _layout(name: Any) -> Any:
    if type(name) is not str:
        raise Odd("arguments that layouts do not write")
    return _torch.serialization._get_layout(name)


_BUILDERS: dict[Any, Callable[..., Any]] = {
    torch._utils._rebuild_tensor_v2: _tensor, torch._utils._rebuild_parameter: _parameter, torch.Size: _size,
    torch.device: _device, torch.serialization._get_layout: _layout,
}


@functools.cache
def _torch_kinds() -> tuple[dict[str, Any], dict[Any, Callable[..., Any]]]:
    """Names of torch that pickles may use, and what is called for them."""
    known: dict[str, Any] = {f"{kind.__module__}.{kind.__qualname__}": kind for kind in _BUILDERS}
    known |= {str(value): value for value in vars(torch).values() if isinstance(value, (torch.dtype, torch.layout))}
    for kind in torch._storage_classes - {torch.storage.UntypedStorage, torch.storage.TypedStorage}:
        known[f"{kind.__module__}.{kind.__name__}"] = _torch.serialization.StorageType(kind.__name__)
    known["torch.storage.UntypedStorage"] = torch.storage.UntypedStorage
    return known, _BUILDERS
