# SPDX-License-Identifier: Apache-2.0
"""The index file of a checkpoint as torch's Metadata, read without running anything that it names, and written so that
torch of earlier versions reads it, too.

Classes of checkpoints are taken from a table. Instances of other classes (Megatron adds some) become empty stand-ins that
keep their attributes; a call of anything outside of the table is refused.
"""
from __future__ import annotations

import collections
import copy
import functools
import io
import pathlib
import pickle
from collections.abc import Callable
from typing import Any

import torch
from torch.distributed._shard.sharded_tensor import metadata as legacy
from torch.distributed.checkpoint import filesystem, metadata, planner

from ...errors import DataLossError, PermissionDeniedError

_PROTOCOL = 4  # that of Python 3.8, so that every Python of today reads it
_METADATA = "torch.distributed.checkpoint.metadata"
_PLANNER = "torch.distributed.checkpoint.planner"
_CLASSES = ("Metadata", "TensorStorageMetadata", "BytesStorageMetadata", "ChunkStorageMetadata", "MetadataIndex", "StorageMeta",
            "TensorProperties", "_MEM_FORMAT_ENCODING")
_ITEMS = ("SavePlan", "WriteItem", "WriteItemType", "TensorWriteData", "BytesIOWriteData")
_ENUMS: tuple[Any, ...] = (metadata._MEM_FORMAT_ENCODING, planner.WriteItemType)


class _StandInKind(type):
    """Of classes that are not known: making an instance by a call, which runs code of the class, is refused."""

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        raise _refusal(f"{cls.__module__}.{cls.__qualname__}")


class _StandIn(metaclass=_StandInKind):
    """An instance of a class that is not known, with its attributes."""

    def __new__(cls, *arguments: Any) -> Any:
        made = object.__new__(cls)
        made._arguments = arguments  # type: ignore[attr-defined]
        return made

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state if isinstance(state, dict) else {"_state": state})


def _refusal(name: str) -> PermissionDeniedError:
    return PermissionDeniedError(f"the index would call {name} when it is unpickled; it is not run", {"unsafe": name})


def _member(kind: Any, name: Any) -> Any:
    """How some versions of Python pickle members of an enumeration."""
    if kind not in _ENUMS or type(name) is not str or name not in kind.__members__:
        raise _refusal("builtins.getattr")
    return kind[name]


def _layout(name: Any) -> Any:
    found: Any = torch.serialization
    return found._get_layout(name)


@functools.cache
def _known() -> dict[tuple[str, str], Any]:
    found: dict[tuple[str, str], Any] = {(_METADATA, name): getattr(metadata, name) for name in _CLASSES}
    found |= {(_PLANNER, name): getattr(planner, name) for name in _ITEMS}
    found |= {("torch.distributed.checkpoint.filesystem", name): getattr(filesystem, name)
              for name in ("_StorageInfo", "_StoragePrefix")}
    found |= {(legacy.__name__, "TensorProperties"): metadata.TensorProperties,
              (legacy.__name__, "MEM_FORMAT_ENCODING"): metadata._MEM_FORMAT_ENCODING}
    found |= {("torch", name): value for name, value in vars(torch).items() if isinstance(value, torch.dtype)}
    found |= {("torch", "Size"): torch.Size, ("torch.serialization", "_get_layout"): _layout, ("builtins", "getattr"): _member,
              ("collections", "OrderedDict"): collections.OrderedDict, ("builtins", "set"): set, ("builtins", "frozenset"): frozenset}
    for module in ("pathlib", "pathlib._local"):
        found |= {(module, name): pathlib.PurePosixPath if "Windows" not in name else pathlib.PureWindowsPath
                  for name in ("PurePosixPath", "PosixPath", "PureWindowsPath", "WindowsPath")}
    return found


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        found = _known().get((module, name))
        if found is None:
            found = _StandInKind(name, (_StandIn,), {"__module__": module})
        return found


def read(stream: Any) -> metadata.Metadata:
    """Metadata of an index. PermissionDeniedError names what it would call, DataLossError what is wrong with it."""
    try:
        found = _Reader(stream).load()
    except PermissionDeniedError:
        raise
    except Exception as e:  # of the reader, or of a class that got a state which is none of its own
        raise DataLossError(f"the index cannot be read: {type(e).__name__}: {e}") from e
    if not isinstance(found, metadata.Metadata):
        raise DataLossError(f"the index holds a {type(found).__qualname__}, no Metadata")
    return found


class _Writer(pickle.Pickler):
    """Leaves out what torch before 2.15 does not read: the strides of tensors."""

    def reducer_override(self, value: Any) -> Any:
        if type(value) is not metadata.TensorProperties:
            return NotImplemented
        made: Any = value.__reduce_ex__(2)  # (copyreg.__newobj__, (class,), state, ...)
        return made[0], made[1], made[2][:5]


def write(value: metadata.Metadata, stream: Any) -> None:
    """Pickles a Metadata."""
    buffer = io.BytesIO()
    _Writer(buffer, _PROTOCOL).dump(plain(value))
    stream.write(buffer.getbuffer())


def plain(value: metadata.Metadata) -> metadata.Metadata:
    """The same with plain dicts, for writers that pickle it: a subclass is pickled as a call."""
    made = copy.copy(value)
    made.state_dict_metadata = dict(value.state_dict_metadata.items())
    if isinstance(value.planner_data, dict):
        made.planner_data = dict(value.planner_data.items())
    return made
