# SPDX-License-Identifier: Apache-2.0
"""StandardLoadPlanner: HyperParallel's load planner over plan buffers. Before anything is read it proves that each
wanted element is stored once, and refuses casts and destinations of another kind.
"""
from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, cast

from .. import _pickles
from .._options import word
from ..errors import FailedPreconditionError, InvalidArgumentError
from .columns import ColumnsBuilder
from .faults import IncompleteTensorError, MissingEntryError, UnknownNameError
from .framework import Framework, Held
from .layouts import LayoutReader
from .matching import match, stored_entries
from .model import LoadPlan, Metadata, MetadataIndex, ReadItem, TensorStorageMetadata, dtype_code
from .objects import decode_object
from .planner import LoadPlanner
from .save import rank_local_name, warn_unknown
from .tree import Leaf, leaves

_POLICIES = {"exact": 0, "allow_cast": 1}
_KNOWN = ("is_coordinator", "rank")
_NEAREST_MAX = 3
_NEAREST_RATIO = 0.3


class _Target(NamedTuple):
    leaf: Leaf
    held: Held | None  # None for objects


class StandardLoadPlanner(LoadPlanner):
    """Plans the load of one rank.

    Args:
        allow_partial_load: names of the state that are not stored are skipped; otherwise they are an error.
        dtype_policy: "exact", or "allow_cast" to fill tensors of another dtype; each cast is in `planner_data` of the
            plan.
        absent: globs of names whose layout may leave this rank out; it then reads nothing of them.
        trust_pickle: run pickles that are stored as objects, also those that HyperParallel itself wrote, whatever they do.
        allow_types: classes and functions that pickles may use beside built-in, standard-library and numpy types that run
            nothing; UnsafePickleError names any other.

    Attributes, to be read and written: `state_dict`, `metadata`, `is_coordinator`, `rank`, `allow_partial_load`,
    `flatten_state_dict`, `dtype_policy`, `absent`, `trust_pickle`, `allow_types`.
    """

    framework: ClassVar[Framework] = Framework()

    def __init__(self, allow_partial_load: bool = False, *, dtype_policy: str = "exact", absent: Sequence[str] = (),
                 trust_pickle: bool = False, allow_types: Iterable[Any] = ()) -> None:
        self.state_dict: Mapping[Any, Any] | None = None
        self.metadata: Metadata | None = None
        self.is_coordinator = False
        self.rank = 0
        self.allow_partial_load = allow_partial_load
        self.flatten_state_dict = True
        self.dtype_policy = dtype_policy
        self.absent = absent
        self.trust_pickle = trust_pickle
        self.allow_types = _pickles.chosen(allow_types) or ()
        self._targets: dict[str, _Target] = {}
        self._targets_of: tuple[Any, Any, Any] = (None, None, None)

    def configure_planner(self, state_dict: Mapping[Any, Any], metadata: Metadata, **kwargs: Any) -> None:
        """Takes the state to fill and the checkpoint's metadata.

        Args:
            kwargs: is_coordinator=False; rank, by default that of the process group, or 0 without one; others are
                ignored with a log record.
        """
        warn_unknown(kwargs, _KNOWN)
        self.state_dict, self.metadata = state_dict, metadata
        self.is_coordinator = kwargs.get("is_coordinator", False)
        self.rank = kwargs["rank"] if "rank" in kwargs else self.framework.current_rank()

    def build_local_plan(self) -> LoadPlan:
        """What this rank reads: names in the order of the state, for each its boxes, for each the chunks by number.

        Raises FailedPreconditionError (a RuntimeError) without state or metadata, MissingEntryError (MissingNameError and
        RuntimeError) for a name that is not stored, InvalidArgumentError (a ValueError) for another shape, dtype or
        kind of entry and for a rank outside a layout, IncompleteTensorError (DataLossError and RuntimeError) for a
        wanted element that no chunk or more than one different chunk holds.
        """
        state, metadata = self._configured()
        policy = word("dtype_policy", self.dtype_policy, _POLICIES)
        entries = stored_entries(metadata.state_dict_metadata)
        wanted, renamed, casts = ColumnsBuilder(), dict[str, str](), dict[str, list[str]]()
        layouts = LayoutReader()
        for leaf in leaves(state, flatten=self.flatten_state_dict, is_entry=self._is_stored):
            name = self._stored_name(leaf.name)
            if name is None:
                if not self.allow_partial_load:
                    raise self._missing(leaf.name)
                continue
            if name != leaf.name:
                renamed[name] = leaf.name
            stored = entries[name]
            if not isinstance(stored, TensorStorageMetadata):
                if self._is_tensor(leaf.value):
                    raise _wrong(leaf.name, "is an object in the checkpoint and a tensor in the state")
                wanted.object(name)
                continue
            dtypes = self._want_tensor(wanted, name, leaf, stored, layouts)
            if dtypes and policy == _POLICIES["exact"]:
                raise _wrong(leaf.name, f"is stored as {dtypes[0]} and wanted as {dtypes[1]}; pass "
                             "dtype_policy='allow_cast' to the planner to have it cast")
            if dtypes:
                casts[leaf.name] = dtypes
        try:
            items = match(entries, wanted.build(), renamed, proof=True)
        except InvalidArgumentError as e:
            raise IncompleteTensorError(str(e), e.details) from e
        return LoadPlan(items, planner_data={"casts": casts} if casts else None)

    def _configured(self) -> tuple[Mapping[Any, Any], Metadata]:
        if self.state_dict is None or self.metadata is None:
            raise FailedPreconditionError("the planner has no state and metadata; call configure_planner first")
        return self.state_dict, self.metadata

    def _is_tensor(self, value: Any) -> bool:
        return self.framework.is_distributed(value) or self.framework.is_tensor(value)

    def _want_tensor(self, wanted: ColumnsBuilder, name: str, leaf: Leaf, stored: TensorStorageMetadata,
                     layouts: LayoutReader) -> list[str] | None:
        """Adds the boxes of a tensor; both dtypes when they differ."""
        if not self._is_tensor(leaf.value):
            raise _wrong(leaf.name, f"is a tensor in the checkpoint and a {type(leaf.value).__qualname__} in the state")
        held = self._held(leaf, layouts)
        if held is None:
            if not any(fnmatch.fnmatchcase(leaf.name, glob) for glob in self.absent):
                raise _wrong(leaf.name, f"has a layout without rank {self.rank}; name it in the planner's `absent` "
                             "patterns when this rank shall not read it")
            return None
        if held.shape != tuple(stored.size):
            raise _wrong(leaf.name, f"has shape {tuple(stored.size)} in the checkpoint and {held.shape} in the state")
        for part in held.parts:
            self.framework.check_target(leaf.name, part)
        code = dtype_code(stored.properties.dtype)
        row = wanted.tensor(name, code, held.shape)
        for box in held.boxes:
            wanted.add(row, box)
        return None if code == held.dtype_code else [stored.properties.dtype, held.dtype]

    def _held(self, leaf: Leaf, layouts: LayoutReader) -> Held | None:
        if leaf.name in self._rank_local():
            return self.framework.alone(leaf.value)
        return self.framework.wanted(leaf.name, leaf.value, self.rank, layouts)

    # ---- names ----

    def _rank_local(self) -> Sequence[str]:
        data = None if self.metadata is None else self.metadata.planner_data
        return data.get("rank_local", ()) if isinstance(data, dict) else ()

    def _stored_name(self, name: str) -> str | None:
        """Name in the checkpoint, None when it is not there."""
        stored = self._configured()[1].state_dict_metadata
        if name in self._rank_local():
            own = rank_local_name(name, self.rank)
            return own if own in stored else None
        return name if name in stored else None

    def _is_stored(self, name: str, _value: Any) -> bool:
        return self._stored_name(name) is not None

    def _missing(self, name: str) -> MissingEntryError:
        stored = list(self._configured()[1].state_dict_metadata)
        near = difflib.get_close_matches(name, stored, _NEAREST_MAX, _NEAREST_RATIO)
        where = f" for rank {self.rank}" if name in self._rank_local() else ""
        return MissingEntryError(
            f"{name} is not in the checkpoint{where}; nearest stored names: {', '.join(near) or 'none'}",
            {"tensor": name})

    # ---- plans of all ranks ----

    def build_global_plan(self, all_plans: list[LoadPlan]) -> list[LoadPlan]:
        """The plans as they are."""
        return all_plans

    def finalize_plan(self, plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return plan

    # ---- putting what was read into the state ----

    def _target(self, name: str) -> _Target | None:
        state, metadata = self._configured()
        known_state, known_metadata, known_rank = self._targets_of
        if known_state is not state or known_metadata is not metadata or known_rank != self.rank:
            self._targets, layouts = {}, LayoutReader()
            for leaf in leaves(state, flatten=self.flatten_state_dict, is_entry=self._is_stored):
                held = self._held(leaf, layouts) if self._is_tensor(leaf.value) else None
                self._targets[leaf.name] = _Target(leaf, held)
            self._targets_of = state, metadata, self.rank
        return self._targets.get(name)

    def acquire_tensor(self, read_item: ReadItem) -> Any:
        """Writable view of where an item goes, in the local tensor.

        Raises FailedPreconditionError (a RuntimeError) without a state, UnknownNameError (a KeyError)
        for a name that the state does not hold as a tensor.
        """
        return self.framework.view(self._part(read_item), read_item.dest_offsets, read_item.lengths)

    def _part(self, read_item: ReadItem) -> Any:
        index = read_item.dest_index
        target = self._target(index.fqn)
        if target is None or target.held is None:
            raise UnknownNameError(f"{index.fqn} is no tensor of the state", {"tensor": index.fqn})
        return _part_of(target.held, index)

    def apply_tensor(self, read_item: ReadItem, tensor: Any) -> None:
        """Copies what was read to where the item goes; nothing is copied when `tensor` is that memory, or None.

        Raises InvalidArgumentError (a ValueError) for another shape, or another dtype under the policy "exact"; and
        what acquire_tensor raises.
        """
        if tensor is None:
            return
        part, place = self._part(read_item), (tuple(read_item.dest_offsets), tuple(read_item.lengths))
        if self.framework.is_place(part, *place, tensor):
            return
        name, shape = read_item.dest_index.fqn, place[1] if all(place) else tuple(part.shape)
        if tuple(tensor.shape) != shape:
            raise _wrong(name, f"takes a part of shape {shape} here, given was {tuple(tensor.shape)}")
        dtypes = self.framework.dtype_text(tensor), self.framework.dtype_text(part)
        if word("dtype_policy", self.dtype_policy, _POLICIES) == 0 and dtype_code(dtypes[0]) != dtype_code(dtypes[1]):
            raise _wrong(name, f"is {dtypes[1]} in the state, and {dtypes[0]} was read")
        self.framework.write(part, *place, tensor)

    def apply_bytes(self, read_item: ReadItem, value: Any) -> None:
        """Decodes an object and puts it into the state, where its name lies or, when it is new, at the top.

        Args:
            value: bytes as encode_object made them, any buffer, or a binary file.
        Raises FailedPreconditionError (a RuntimeError) without a state, UnsafePickleError (a PermissionDeniedError),
        DataLossError.
        """
        name = read_item.dest_index.fqn
        target = self._target(name)
        decoded = decode_object(value, name, trust_pickle=self.trust_pickle, allow_types=self.allow_types)
        container, key = cast(Any, self.state_dict), name
        if target is not None:
            container, key = target.leaf.container, target.leaf.key
        if not hasattr(container, "__setitem__"):
            raise _wrong(name, f"lies in a {type(container).__qualname__}, which cannot be changed in place")
        container[key] = decoded


def _part_of(held: Held, index: MetadataIndex) -> Any:
    """Local memory of the box that a read item names, by its offsets."""
    for box, part in zip(held.boxes, held.parts, strict=True):
        if tuple(box[0]) == tuple(index.offset):
            return part
    if len(held.parts) == 1:
        return held.parts[0]
    raise UnknownNameError(f"{index.fqn} has no box at {tuple(index.offset)} here", {"tensor": index.fqn})


def _wrong(name: str, text: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{name} {text}", {"tensor": name})
