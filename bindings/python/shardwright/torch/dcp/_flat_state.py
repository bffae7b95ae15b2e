# SPDX-License-Identifier: Apache-2.0
"""The state of one rank with the names that torch gives its entries, for calls of the library.

Every mapping is opened, lists where they hold tensors, and what is no tensor is one object per leaf: numpy arrays too, which
torch stores as objects. Scalars become JSON, all other objects what torch.save writes.
"""
from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed._shard.sharded_tensor.api import ShardedTensor
from torch.distributed.tensor import DTensor

from ... import _buffers, _json, _pickles
from ..._library import native
from ...errors import AlreadyExistsError, InvalidArgumentError, UnimplementedError
from ...layout import Shard
from ...state import ObjectEntry, Parts, State, below
from ...tensor import allocate, dtype_number
from .. import _stored_objects
from .._leaves import LeafConverter
from ._archives import Archives, may_be_more
from .planner import DamagedObjectError, InvalidPlanError, UntrustedObjectError, _nested
from .planner._values import is_placed_tensor, wanted_chunks

_BYTES, _PICKLE, ARCHIVE = "application/octet-stream", "application/python-pickle", "application/x-torch-save"
_DEPTH_MAX = 200
_SCALARS = (type(None), bool, int, float, str)


class NotDescribed(Exception):
    """A value that the entries of a state cannot describe, so that its planner and storage have to be asked item by item."""


class Leaves(LeafConverter):
    """The leaves that torch's checkpoints know, as shards: DTensors, ShardedTensors of one local shard, and tensors that say
    by attributes which boxes they hold. `alone`: a rank that saves or loads by itself has its own boxes only."""

    def __init__(self, group: dist.ProcessGroup | None, writable: bool, alone: bool) -> None:
        super().__init__(group, writable)
        self._alone = alone

    @property
    def parts(self) -> Parts | None:
        """None where a rank has its own boxes only, which are no layout."""
        return None if self._alone else super().parts

    def convert(self, name: str, value: Any) -> Any:
        """A Shard or host tensor for a torch value; NotDescribed for what is neither."""
        if isinstance(value, (DTensor, ShardedTensor)) and value.dtype == torch.float4_e2m1fn_x2:
            raise NotDescribed(name)
        if isinstance(value, DTensor):
            if value.device_mesh.get_coordinate() is None:
                return None
            return self._by_boxes(name, value, value.to_local()) if self._alone else super().convert(name, value)
        if isinstance(value, ShardedTensor):
            return self._one_shard(name, value)
        if value.layout != torch.strided:
            raise UnimplementedError(f"{name} is a tensor of the layout {value.layout}, which torch's checkpoints do not hold; "
                                     "save its parts", {"tensor": name})
        if hasattr(value, "__create_write_items__") or value.is_quantized:
            raise NotDescribed(name)
        if is_placed_tensor(value):
            return self._placed(name, value)
        if value.dtype == torch.float4_e2m1fn_x2:
            return self._unpacked(name, value)
        if not self._writable and (value.is_conj() or value.is_neg()):
            value = value.resolve_conj().resolve_neg()
        return super().convert(name, value)

    def _by_boxes(self, name: str, value: Any, local: torch.Tensor) -> Shard:
        boxes = tuple((tuple(c.offsets), tuple(c.sizes)) for c in wanted_chunks(name, value, type(value)))
        return Shard(self._on_host(name, local), tuple(value.size()), boxes)

    def _unpacked(self, name: str, value: torch.Tensor) -> Any:
        """The elements of a tensor that counts pairs, one by one. It is dense: others go item by item."""
        if value.ndim == 0 or not value.is_contiguous():
            raise NotDescribed(name)
        host = self._on_host(name, value.detach()).view(torch.uint8)
        made = allocate([dtype_number("float4_e2m1fn")], [(*value.shape[:-1], 2 * value.shape[-1])])[0]
        room = torch.frombuffer(made.raw(), dtype=torch.uint8) if host.numel() else torch.empty(0, dtype=torch.uint8)
        if self._writable:
            self._staged.append((name, room.reshape(host.shape), value.detach().view(torch.uint8)))
        else:
            room.copy_(host.reshape(-1))
        return made

    def _one_shard(self, name: str, value: Any) -> Any:
        shards = value.local_shards()
        if not shards:
            return None
        if len(shards) > 1 or isinstance(shards[0].tensor, (ShardedTensor, DTensor)):
            raise NotDescribed(name)
        return self._by_boxes(name, value, shards[0].tensor)

    def _placed(self, name: str, value: Any) -> Any:
        boxes = tuple((tuple(c.offsets), tuple(c.sizes)) for c in wanted_chunks(name, value, type(value)))
        if not boxes:
            return None
        weights = [math.prod(value.shape[d + 1:]) for d in range(value.ndim)]
        starts = tuple(sum(o * w for o, w in zip(at, weights, strict=True)) for at in value.local_offsets)
        plain = value.as_subclass(torch.Tensor).detach()
        return Shard(self._on_host(name, plain), tuple(value.global_shape), boxes, local_offsets=starts)


class FlatState(State):
    """A state under torch's names, ready to be saved or filled.

    Args:
        version: which containers are opened: "2.4", or "2.3" for keys of old checkpoints.
        objects: names of tensors that stored objects replace.
        archives: of the checkpoint that is loaded.
        trusted, allow_types: what stored objects may use in a load.
        others: as for State.
    Raises NotDescribed; InvalidPlanError (a ValueError) for two equal names.
    Attribute: `tree`, the mapping.
    """

    def __init__(self, tree: Mapping[Any, Any], leaves: Leaves, *, writable: bool, rank: int, version: str = "2.4",
                 objects: Collection[str] = (), archives: Archives | None = None, trusted: bool = False,
                 allow_types: Sequence[Any] = ()) -> None:
        self._opens: Callable[[Any], bool] = _nested.opener(version)
        self._trusted, self._allow_types = trusted, allow_types
        self._replaced, self._archives = objects, archives
        self.tree = tree
        self._leaves = leaves
        try:
            super().__init__(tree, writable=writable, rank=rank, convert=leaves.convert, parts=leaves.parts, filled=leaves.copy_back)
        except AlreadyExistsError as e:
            raise InvalidPlanError(f"duplicated flatten key: {e.message}", e.details) from e

    def _walk(self, container: Any, name: bytes, path: bytes, top: bool, depth: int) -> bool:
        if depth > _DEPTH_MAX:
            raise InvalidPlanError(f"{name.decode('utf-8', 'backslashreplace')} is nested deeper than {_DEPTH_MAX} "
                                   "levels, or holds itself")
        mapping = isinstance(container, Mapping)
        items = container.items() if mapping else enumerate(container)
        rest = list(items) if not mapping else self._without_tensors(container, items, name, path)
        for key, value in rest:
            self._add_value(container, key, value, name, path, mapping, depth)
        return True

    def _without_tensors(self, container: Any, items: Any, name: bytes, path: bytes) -> list[tuple[Any, Any]]:
        """Adds the plain tensors and DTensors of a mapping, all at once; gives what else there is."""
        plain, rest = {}, []
        for key, value in items:
            if (_is_plain(value) or self._parts is not None and _is_dtensor(value)) and not self._replaced:
                plain[key] = value
            else:
                rest.append((key, value))
        _, declined = native.shw_py_columns_collect(self._whole, plain, name, path, self._parts)
        return [*declined, *rest]

    def _add_value(self, container: Any, key: Any, value: Any, name: bytes, path: bytes, mapping: bool, depth: int) -> None:
        known = key if not mapping or type(key) in (str, int) else str(key)
        if isinstance(value, Mapping) and self._opens(value) or (
                isinstance(value, list) and _nested.list_is_open(value, self._opens)):
            joined, text = below(name, path, known, mapping, nested=True)
            self._walk(value, joined, text, False, depth + 1)
            return
        joined, text = below(name, path, known, mapping)
        where = joined.decode("utf-8", "backslashreplace")
        if isinstance(value, (torch.Tensor, ShardedTensor)) and where not in self._replaced:
            self._tensor(where, value, joined, text)
        else:
            self._objects.append(ObjectEntry(joined, text, value, container, key))

    def _tensor(self, where: str, value: Any, joined: bytes, text: bytes) -> None:
        found = self._leaves.convert(where, value)
        if isinstance(found, Shard):
            self._add_shard(joined, text, found)
        elif found is not None and not _buffers.import_leaf(self._whole, joined, text, found, None, self._staged):
            raise NotDescribed(where)

    # ---- objects ----

    def _add_objects(self) -> None:
        contents = [(b"", _BYTES) if self._writable else self._content(entry) for entry in self._objects]
        native.shw_state_add_objects(self._handle, {
            "count": len(contents), "names": [entry.name for entry in self._objects], "data": [data for data, _ in contents],
            "content_types": [kind.encode() for _, kind in contents], "paths": [entry.path for entry in self._objects]})

    def _content(self, entry: ObjectEntry) -> tuple[bytes, str]:
        """What is stored of an object, and of which kind it is."""
        where = entry.name.decode("utf-8", "backslashreplace")
        value = entry.value
        if type(value) in _SCALARS and (type(value) is not float or math.isfinite(value)):
            with contextlib.suppress(InvalidArgumentError):  # text that is no UTF-8
                return _json.encode(entry.value, where), _json.CONTENT_TYPE
        stream = io.BytesIO()
        _stored_objects.write(entry.value, where, stream)
        return stream.getvalue(), ARCHIVE

    def _value_of(self, data: bytes, content_type: str, where: str, trust_pickle: bool,
                  allow_types: tuple[Any, ...] | None) -> Any:
        """UntrustedObjectError names a class that is neither known nor allowed."""
        del trust_pickle, allow_types  # it has its own
        try:
            if content_type == _json.CONTENT_TYPE:
                value = _json.decode(data, where)
                archive = self._archives.read(where) if self._archives is not None and may_be_more(value) else None
                return value if archive is None else _stored_objects.read(archive, self._trusted, self._allow_types)
            if content_type == ARCHIVE:
                return _stored_objects.read(io.BytesIO(data), self._trusted, self._allow_types)
            if content_type == _PICKLE:
                return _stored_objects.read_pickle(data, self._trusted, self._allow_types)
        except _pickles.UnsafePickle as e:
            raise _pickles.refusal(where, e, "trust_pickles", UntrustedObjectError) from e
        except _pickles.DamagedPickle as e:
            raise DamagedObjectError(f"the object {where} cannot be read: {e}", {"tensor": where}) from e
        return data


def _is_dtensor(value: Any) -> bool:
    """Whether the native loop takes a DTensor as it lies; what it declines comes back."""
    return type(value) is DTensor and value.dtype != torch.float4_e2m1fn_x2


def _is_plain(value: Any) -> bool:
    """Whether the native loop takes a tensor as it lies."""
    return (type(value) in (torch.Tensor, torch.nn.Parameter) and value.dtype != torch.float4_e2m1fn_x2 and value.layout == torch.strided
            and not hasattr(value, "global_shape") and not value.is_conj() and not value.is_neg())
