# SPDX-License-Identifier: Apache-2.0
"""State: the entries that one rank saves or wants filled, made from a nested mapping in one bulk call.

Names of nested entries are joined with "."; paths keep the type of each key. A container below which no tensor and no
bytes are left is one JSON object; the containers above it are structure. A name has at most 65,535 bytes of UTF-8.
"""
from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

from . import _buffers, _json, _pickle_notice, _pickles
from ._library import native
from ._options import KINDS, word
from .errors import InvalidArgumentError
from .layout import Box, Layout, Shard
from .mapping import Mapping as _Rules
from .object_cells import ObjectCell

_BYTES = "application/octet-stream"
_PICKLE = "application/python-pickle"
_DEPTH_MAX = 200
_NO_CELL = ObjectCell(b"")
_OBJECTS = {"json": 0, "pickle": 1}
_NOTHING: Mapping[Any, Any] = MappingProxyType({})
Convert = Callable[[str, Any], Any]


class Parts(NamedTuple):
    """Values of exactly the type `kind` that are taken as shards without a call for each: their `_local_tensor` is what they hold,
    their `_spec` has the `mesh` and the tuple of `placements` of which `layout_of` makes a layout, their `shape` is that of
    the whole. Where the local tensor is not of exactly the type `local`, or not in memory of the host, `convert` is called."""

    kind: type
    local: type
    layout_of: Callable[[Any, Any], Layout]


@runtime_checkable
class Stateful(Protocol):
    """An object that gives its state and takes it back, as modules, optimizers and data loaders do. It may stand in a state
    wherever a value may, or be the whole state: what state_dict() gives is saved in its place; a load fills what
    state_dict() gives, then calls load_state_dict() with it."""

    def state_dict(self) -> Any:
        """The state: a mapping as for save, or any one value that may be saved."""

    def load_state_dict(self, state_dict: Any, /) -> Any:
        """Takes a state that was loaded."""


class ObjectEntry:
    """A byte object of the state, and where its value lies in the caller's containers."""

    __slots__ = ("cell", "container", "key", "name", "path", "value")

    def __init__(self, name: bytes, path: bytes, value: Any, container: Any, key: Any,
                 cell: ObjectCell | None = None) -> None:
        self.name, self.path, self.value, self.container, self.key, self.cell = name, path, value, container, key, cell


class State:
    """Entries of one rank. Tensors are borrowed: the state keeps the objects alive whose memory it points into.

    Args:
        tree: nested mapping of tensors, shards, bytes, JSON values, ObjectCells and Stateful objects; or one Stateful object.
        writable: the tensors are targets of a load, and every other value stands where a stored value will be put.
        rank: global rank, which chooses the boxes of entries that carry a layout. It is the rank that saves.
        objects: "json", or "pickle" to store values that are no JSON as pickles.
        convert: called with (name, value) for values that are neither tensor nor container; gives a Shard, a tensor or
            the value itself. Used by adapters, as are
        parts: values that need no such call, and
        filled: called after a load has filled the tensors, with the names that were not stored; values and Stateful objects
            get what was loaded after it.
        mapping: how the entries are stored; tensors are saved and loaded as views of their memory.
    Raises InvalidArgumentError naming the path (a name of more than 65,535 bytes among others), or for what is no mapping;
    AlreadyExistsError for two entries of one name.
    """

    def __init__(self, tree: Mapping[Any, Any] | Stateful = _NOTHING, *, writable: bool = False, rank: int = 0,
                 objects: str = "json", convert: Convert | None = None, parts: Parts | None = None,
                 filled: Callable[[Sequence[str]], None] | None = None, mapping: _Rules | None = None) -> None:
        self._mapping = mapping
        self._pickles = word("objects", objects, _OBJECTS) == 1
        self._convert = convert
        self._filled = filled
        self._writable = writable
        self._is_target = writable or tree is _NOTHING  # what is added to an empty one says for itself whether it can be filled
        self._handle: Any = native.shw_state_create()
        self._whole: Any = native.shw_py_columns(writable, self._handle)
        self._boxed: Any = native.shw_py_columns(writable, None)
        self._laid: Any = native.shw_py_columns(writable, None)
        self._layouts: dict[int, tuple[int, Layout]] = {}
        # Nothing of it refers to this object, which would then keep tensors until the garbage collector comes.
        self._parts = None if parts is None else (
            parts.kind, parts.local, self._laid, functools.partial(_number_of_rule, self._layouts, parts.layout_of))
        self._objects: list[ObjectEntry] = []
        self._staged: list[_buffers.Staged] | None = [] if writable else None
        self._only_loads: InvalidArgumentError | None = None
        self._stateful: list[tuple[Stateful, dict[Any, Any], Any]] = []  # and where what it will take lies
        values = tree.state_dict() if not isinstance(tree, Mapping) and is_stateful(tree) else tree
        if not isinstance(values, Mapping):
            raise InvalidArgumentError(f"a state is a mapping of names to values, found {type(values).__qualname__}",
                                       {"parameter": "state"})
        self._walk(values, b"", b"", True, 0)
        if values is not tree and not isinstance(tree, Mapping):
            self._stateful.append((tree, {None: values}, None))
        self._finish(rank)

    @classmethod
    def from_dict(cls, tree: Mapping[Any, Any]) -> State:
        """State of a nested mapping, ready to be saved."""
        return cls(tree)

    @classmethod
    def from_arrays(cls, names: Any, name_offsets: Any, addresses: Any, dtypes: Any, shapes: Any, shape_offsets: Any, *,
                    owner: Any = None, writable: bool = False) -> State:
        """State of many whole host tensors from flat arrays, at the least cost per tensor.

        Args (each anything with the buffer protocol):
            names: UTF-8 bytes of all names, cut by `name_offsets` (uint64, one more than there are tensors).
            addresses: uint64, first byte of each tensor, row-major.
            dtypes: uint16, numbers as `dtype_number` gives them.
            shapes: int64 extents of all tensors, cut by `shape_offsets` (uint64).
            owner: kept alive with the state.
        """
        made = cls(writable=writable)
        made._is_target = writable
        native.shw_py_columns_add_flat(made._whole, (names, name_offsets, addresses, dtypes, shapes, shape_offsets,
                                                     owner))
        made._finish(0)
        return made

    @classmethod
    def for_load(cls, tensors: dict[str, Any], objects: Sequence[str], values: dict[str, Any]) -> State:
        """Flat targets of a load: tensors by name, and objects whose values are put into `values`."""
        made = cls(writable=True)
        made._walk(tensors, b"", b"", True, 0)
        made._objects = [ObjectEntry(name.encode(), b"", b"", values, name) for name in objects]
        made._finish(0)
        return made

    # ---- walking the tree ----

    def _walk(self, container: Any, name: bytes, path: bytes, top: bool, depth: int) -> bool:
        """Adds what lies below; False when nothing but JSON was found (the caller then makes one object of it)."""
        if depth > _DEPTH_MAX:
            raise InvalidArgumentError(f"{_shown(name)} is nested deeper than {_DEPTH_MAX} levels, or holds itself")
        mapping = isinstance(container, Mapping)
        plain = container if isinstance(container, (dict, list, tuple)) else dict(container)
        added, rest = native.shw_py_columns_collect(self._whole, plain, name, path, self._parts)
        holds = added > 0
        pending: list[tuple[Any, Any]] = []
        for key, value in rest:
            if self._add(container, key, value, name, path, mapping, depth):
                holds = True
            else:
                pending.append((key, value))
        if holds or top:
            for key, value in pending:
                joined, text = below(name, path, key, mapping)
                self._objects.append(ObjectEntry(joined, text, value, container, key))
        return holds

    def _add(self, container: Any, key: Any, value: Any, name: bytes, path: bytes, mapping: bool, depth: int) -> bool:
        """Adds a value of a container; False, and nothing added, for what is nothing but JSON."""
        if _json.is_container(value):
            return self._walk_child(value, key, name, path, mapping, depth)
        if self._is_json(value):
            return False
        if is_stateful(value):
            self._add_stateful(key, value, name, path, mapping, depth)
        else:
            self._leaf(container, key, value, name, path, mapping)
        return True

    def _add_stateful(self, key: Any, value: Stateful, name: bytes, path: bytes, mapping: bool, depth: int) -> None:
        joined, text = below(name, path, key, mapping)
        if depth > _DEPTH_MAX:
            raise InvalidArgumentError(f"{_shown(joined)} is nested deeper than {_DEPTH_MAX} levels, or holds itself")
        holder = {key: value.state_dict()}
        if not self._add(holder, key, holder[key], name, path, mapping, depth + 1):
            self._objects.append(ObjectEntry(joined, text, holder[key], holder, key))
        self._stateful.append((value, holder, key))

    def _walk_child(self, value: Any, key: Any, name: bytes, path: bytes, mapping: bool, depth: int) -> bool:
        try:
            joined, text = below(name, path, key, mapping, nested=True)
        except InvalidArgumentError:
            if _holds_only_json(value):
                return False
            raise
        return self._walk(value, joined, text, False, depth + 1)

    def _is_json(self, value: Any) -> bool:
        return _json.is_scalar(value)

    def _leaf(self, container: Any, key: Any, value: Any, name: bytes, path: bytes, mapping: bool) -> None:
        joined, text = below(name, path, key, mapping)
        if isinstance(value, bytes):
            self._objects.append(ObjectEntry(joined, text, value, container, key))
            return
        if isinstance(value, ObjectCell):
            self._add_cell(joined, b"" if value.index else text, value, container, key)
            return
        if self._convert is not None:
            value = self._convert(_shown(joined), value)
        if isinstance(value, Shard):
            self._add_shard(joined, text, value)
        elif not _buffers.import_leaf(self._whole, joined, text, value, None, self._staged):
            self._objects.append(ObjectEntry(joined, text, self._other_value(joined, value), container, key))

    def _add_cell(self, name: bytes, path: bytes, cell: ObjectCell, container: Any, key: Any) -> None:
        if len(cell.index) != len(cell.shape):
            raise InvalidArgumentError(f"{_shown(name)} has {len(cell.index)} indices in a grid of {len(cell.shape)} axes",
                                       {"tensor": _shown(name)})
        value = cell.value
        if not isinstance(value, bytes) and not _holds_only_json(value):
            value = self._other_value(name, value)
        self._objects.append(ObjectEntry(name, path, value, container, key, cell))

    def _other_value(self, name: bytes, value: Any) -> Any:
        """What stands for a value that is no tensor, no JSON and no bytes."""
        if self._pickles:
            return _Pickled(value)
        refusal = _json.not_a_leaf(_shown(name), value)
        if not self._writable:
            raise refusal
        self._only_loads = self._only_loads or refusal
        return _Slot(value)

    def _add_shard(self, name: bytes, path: bytes, shard: Shard) -> None:
        columns, index = self._boxed, 0
        if shard.layout is not None:
            columns = self._laid
            index = _number_of(self._layouts, shard.layout)
        if not _buffers.import_leaf(columns, name, path, shard.local, shard.placement(index), self._staged):
            raise _json.not_a_leaf(_shown(name), shard.local)

    # ---- making the native state ----

    def _finish(self, rank: int) -> None:
        layouts = [layout._handle for _, layout in self._layouts.values()]
        for columns, its_layouts in ((self._whole, []), (self._boxed, []), (self._laid, layouts)):
            if native.shw_py_columns_pending(columns):
                native.shw_py_columns_add_to_state(columns, self._handle, its_layouts, rank)
        if self._objects:
            self._add_objects()
        if self._mapping is not None:
            self._handle = native.shw_state_map(self._handle, self._mapping._handle)

    def _add_objects(self) -> None:
        contents = [_content(entry.value, _shown(entry.name)) for entry in self._objects]
        cells = [entry.cell or _NO_CELL for entry in self._objects]
        native.shw_state_add_objects(self._handle, {
            "count": len(contents), "names": [entry.name for entry in self._objects], "data": [data for data, _ in contents],
            "content_types": [kind for _, kind in contents], "paths": [entry.path for entry in self._objects],
            "kinds": [word("kind", cell.kind, KINDS) for cell in cells],
            "grid_shapes": [extent for cell in cells for extent in cell.shape],
            "grid_indices": [index for cell in cells for index in cell.index],
            "grid_offsets": [0, *itertools.accumulate(len(cell.index) for cell in cells)],
            "replica_ids": [int(cell.replica) for cell in cells]})
        for entry in self._objects:
            if entry.cell is not None and entry.cell.index:
                entry.name = native.shw_py_object_key(entry.name, tuple(entry.cell.index), tuple(entry.cell.shape))

    # ---- reading it ----

    def names(self) -> list[str]:
        """Names of the tensors, in the order in which they were added."""
        found: list[str] = native.shw_py_state_names(self._handle)
        return found

    def boxes(self) -> dict[str, tuple[tuple[int, ...], list[Box]]]:
        """Name of each tensor to the shape of the whole and the boxes of it that this state holds, as (offsets, sizes)."""
        held = {}
        for index, name in enumerate(self.names()):
            shape, pieces = native.shw_py_state_pieces(self._handle, index)
            held[name] = (shape, [(offsets, sizes) for offsets, sizes, _ in pieces])
        return held

    def object_names(self) -> list[str]:
        """Names of the byte objects."""
        return [_shown(entry.name) for entry in self._objects]

    @property
    def tensor_count(self) -> int:
        """Number of tensors."""
        return int(native.shw_state_tensor_count(self._handle))

    def finish_load(self, missing: Sequence[str], trust_pickle: bool, allow_types: tuple[Any, ...] | None) -> None:
        """After a load: writes what it found into the caller's containers, and into arrays whose elements had to be
        unpacked; `missing` ones stay. Then Stateful objects take their states, inner ones first. A pickle stays bytes where
        the target has bytes and nobody asked for its value."""
        absent = set(missing)
        for staged in self._staged or ():
            if staged.name not in absent:
                staged.put_back()
        if self._filled is not None:
            self._filled(missing)
        values = []
        for index, entry in enumerate(self._objects):
            if _shown(entry.name) not in absent:
                kind, data = native.shw_py_state_object(self._handle, index)
                types = () if allow_types is None and not isinstance(entry.value, bytes) else allow_types
                values.append((entry, self._value_of(data, kind, _shown(entry.name), trust_pickle, types)))
        for entry, value in values:
            entry.container[entry.key] = value
        for taker, holder, key in self._stateful:
            taker.load_state_dict(holder[key])

    def _value_of(self, data: bytes, content_type: str, where: str, trust_pickle: bool,
                  allow_types: tuple[Any, ...] | None) -> Any:
        return object_value(data, content_type, where, trust_pickle, allow_types)

    def check_can_be_saved(self) -> None:
        """Before a save: refuses a state with values that only a load could replace."""
        if self._only_loads is not None:
            raise self._only_loads

    def check_can_be_filled(self) -> None:
        """Before a load: refuses states that were made to be saved, whose memory may be read-only, and containers that cannot
        take a new value."""
        if not self._is_target:
            raise InvalidArgumentError("the state was made to be saved; State(tree, writable=True) is one that a load can fill",
                                       {"parameter": "into"})
        for entry in self._objects:
            if not hasattr(entry.container, "__setitem__"):
                raise InvalidArgumentError(
                    f"{_shown(entry.name)} lies in a {type(entry.container).__qualname__}, which cannot be changed in "
                    "place; use a list or a dict as target", {"tensor": _shown(entry.name)})

    def __repr__(self) -> str:
        return f"shardwright.State(tensors={self.tensor_count}, objects={len(self._objects)})"

    def __reduce__(self) -> Any:
        raise TypeError("a State points into memory of this process and is not pickled; pickle what it was made from")


def is_stateful(value: Any) -> bool:
    """True for an object, not a class, with both methods of Stateful."""
    # Not isinstance: a protocol is asked for its attributes anew for each value, which takes longer than all else of a leaf.
    return hasattr(value, "state_dict") and hasattr(value, "load_state_dict") and not isinstance(value, type)


def _number_of(layouts: dict[int, tuple[int, Layout]], layout: Layout) -> int:
    """Of a layout among those of a state, which it joins; the first is 1."""
    return layouts.setdefault(id(layout), (len(layouts) + 1, layout))[0]


def _number_of_rule(layouts: dict[int, tuple[int, Layout]], layout_of: Callable[[Any, Any], Layout], mesh: Any,
                    placements: Any) -> int:
    return _number_of(layouts, layout_of(mesh, placements))


class _Pickled:
    """A value that the caller wants stored as a pickle."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class _Slot:
    """A value of a load's target that a save would refuse: something stored takes its place."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def below(name: bytes, path: bytes, key: Any, mapping: bool, nested: bool = False) -> tuple[bytes, bytes]:
    """Joined name and path text of a key. Nested: the path stays open for further parts."""
    if type(key) is str:
        try:
            text = key.encode("utf-8")
        except UnicodeEncodeError as e:
            raise InvalidArgumentError(f"a key below {_shown(name)!r} cannot be written as UTF-8: {e}") from e
        part = json.dumps(key, ensure_ascii=False).encode("utf-8")
    elif type(key) is int:
        text = str(key).encode()
        part = text if mapping else b"[" + text + b"]"
    else:
        raise InvalidArgumentError(f"the mapping at {_shown(name)!r} has a key {key!r} of type "
                                   f"{type(key).__qualname__}; keys above a tensor must be text or integers")
    joined = name + b"." + text if path else text
    if not path and type(key) is str and not nested:
        return joined, b""
    opened = path + b"," + part if path else b"[" + part
    return joined, opened if nested else opened + b"]"


def _holds_only_json(value: Any) -> bool:
    if _json.is_container(value):
        inner = value.values() if isinstance(value, Mapping) else value
        return all(_holds_only_json(v) for v in inner)
    return _json.is_scalar(value)


def _content(value: Any, where: str) -> tuple[bytes, bytes]:
    if isinstance(value, bytes):
        return value, _BYTES.encode()
    if isinstance(value, _Pickled):
        try:
            return _pickle_notice.write(value.value, where), _PICKLE.encode()
        except Exception as e:
            raise InvalidArgumentError(f"{where} cannot be pickled: {e}", {"tensor": where}) from e
    if isinstance(value, _Slot):
        return b"", _BYTES.encode()
    return _json.encode(value, where), _json.CONTENT_TYPE.encode()


def object_value(data: bytes, content_type: str, where: str, trust_pickle: bool,
                 allow_types: tuple[Any, ...] | None) -> Any:
    """Value of a stored object: JSON is decoded, a pickle is run when it is trusted and read where types are allowed, if
    none but harmless ones; the rest is bytes."""
    if content_type == _json.CONTENT_TYPE:
        return _json.decode(data, where)
    if content_type != _PICKLE or (allow_types is None and not trust_pickle):
        return data
    return _pickles.read(data, where, trusted=trust_pickle, allow_types=allow_types or ())
