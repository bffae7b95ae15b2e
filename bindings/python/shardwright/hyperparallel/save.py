# SPDX-License-Identifier: Apache-2.0
"""StandardSavePlanner: HyperParallel's save planner over plan buffers, with what it loses in silence refused by
name."""
from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from .._log import logger
from .._options import KINDS, pairs, word
from ..errors import FailedPreconditionError, InvalidArgumentError
from . import engine
from .columns import NO_DIGEST, ColumnsBuilder
from .framework import Framework, Held
from .items import SaveItems, properties_text
from .layouts import LayoutReader
from .merging import merge_plans
from .model import Metadata, MetadataIndex, SavePlan, TensorProperties, WriteItem, WriteItemType
from .objects import encode_object
from .planner import SavePlanner
from .tree import Leaf, leaves

VERIFY = {"digest": 0, "metadata": 1, "off": 2}
_KNOWN = ("is_coordinator", "rank", "remove_redundancy", "save_to_minimum_rank")


def rank_local_name(name: str, rank: int) -> str:
    """Name under which an entry that each rank has for itself is stored."""
    return f"{name}.rank-{rank}"


def warn_unknown(given: Mapping[str, Any], known: Sequence[str]) -> None:
    """One log record for keywords that nobody reads."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        logger.warning("configure_planner ignores %s; it knows %s", ", ".join(unknown), ", ".join(known))


class StandardSavePlanner(SavePlanner):
    """Plans the save of one rank.

    Args:
        entry_kinds: (glob, kind) pairs or a mapping, first match wins: "replicated" (one value, held by several ranks),
            "sharded" (a part, with a layout), "rank_local" (each rank has its own, stored as NAME.rank-R). Plain
            tensors and objects are replicated unless declared.
        verify_replicas: what is compared before a replica is dropped, beside dtype, shape and boxes: "digest" the
            content of all, "metadata" no content, "off" nothing, not even object sizes. None = the content of plain
            tensors and objects.
        reduce_partial: add up tensors whose ranks hold summands; without it they are refused. Collective.
        objects: "json", or "pickle" to store values that are neither JSON nor bytes as pickles.

    Attributes, to be read and written: `state_dict`, `is_coordinator`, `rank`, `remove_redundancy`,
    `save_to_minimum_rank` (True here; HyperParallel's save() passes False unless told otherwise), `flatten_state_dict`
    (False = one entry per top-level key), `entry_kinds`, `verify_replicas`, `reduce_partial`, `objects`.
    """

    framework: ClassVar[Framework] = Framework()

    def __init__(self, *, entry_kinds: Any = None, verify_replicas: str | None = None, reduce_partial: bool = False,
                 objects: str = "json") -> None:
        self.state_dict: Mapping[Any, Any] | None = None
        self.is_coordinator = False
        self.rank = 0
        self.remove_redundancy = True
        self.save_to_minimum_rank = True
        self.flatten_state_dict = True
        self.entry_kinds = entry_kinds
        self.verify_replicas = verify_replicas
        self.reduce_partial = reduce_partial
        self.objects = objects
        self._tensors: dict[MetadataIndex, Any] = {}
        self._payloads: dict[str, bytes] = {}

    def configure_planner(self, state_dict: Mapping[Any, Any], **kwargs: Any) -> None:
        """Takes the state to save; sets all four of the options, those that are not given to their defaults.

        Args:
            state_dict: nested mapping.
            kwargs: is_coordinator=False, rank=0, remove_redundancy=True, save_to_minimum_rank=True; others are ignored
                with a log record.
        """
        warn_unknown(kwargs, _KNOWN)
        self.state_dict = state_dict
        self.is_coordinator = kwargs.get("is_coordinator", False)
        self.rank = kwargs.get("rank", 0)
        self.remove_redundancy = kwargs.get("remove_redundancy", True)
        self.save_to_minimum_rank = kwargs.get("save_to_minimum_rank", True)

    def build_local_plan(self) -> SavePlan:
        """What this rank holds, in the order of the state.

        Raises FailedPreconditionError (a RuntimeError) without a state and for summands, InvalidArgumentError (a
        ValueError) for layouts that lack an attribute or this rank and for values that cannot be stored,
        AlreadyExistsError for two entries of one name, UnimplementedError for interleaved meshes.
        """
        if self.state_dict is None:
            raise FailedPreconditionError("the planner has no state; call configure_planner first")
        collected = _Collector(self)
        for leaf in leaves(self.state_dict, flatten=self.flatten_state_dict):
            collected.add(leaf)
        self._tensors, self._payloads = collected.tensors, collected.payloads
        buffer = engine.describe_held(collected.builder.build())
        return SavePlan(SaveItems(buffer, collected.values), planner_data=collected.planner_data())

    def build_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Final plans of all ranks in rank order, and metadata. The plans that are given are not changed.

        Raises InvalidArgumentError (a ValueError): see merging.merge_plans.
        """
        owner = "all"
        if self.remove_redundancy and len(all_plans) > 1:
            owner = "lowest_rank" if self.save_to_minimum_rank else "exact"
        verify = self.verify_replicas is None or word("verify_replicas", self.verify_replicas, VERIFY) != VERIFY["off"]
        return merge_plans(all_plans, owner=owner, verify=verify)

    def finalize_plan(self, plan: SavePlan) -> SavePlan:
        """Takes this rank's final plan: get_tensor knows its items and no others, and its objects carry their encoded
        bytes.

        Returns the plan that was given.
        """
        by_place = {(index.fqn, index.offset): tensor for index, tensor in self._tensors.items()}
        items = plan.items
        indexes = items.tensor_indexes() if isinstance(items, SaveItems) else (
            item.index for item in items if item.type == WriteItemType.TENSOR)
        self._tensors = {index: by_place[index.fqn, index.offset] for index in indexes
                         if (index.fqn, index.offset) in by_place}
        if isinstance(plan.items, SaveItems):
            plan.items = SaveItems(plan.items.buffer, self._payloads, plan.items.numbers, plan.items.numbered)
        else:
            plan.items = [self._with_payload(item) for item in plan.items]
        return plan

    def _with_payload(self, item: WriteItem) -> WriteItem:
        payload = self._payloads.get(item.index.fqn) if item.type == WriteItemType.BYTE_IO else None
        return item if payload is None else dataclasses.replace(item, bytes_io_data=payload)

    def get_tensor(self, index: MetadataIndex) -> Any:
        """The local tensor of an item, by its whole index; None when the plan has no such item."""
        return self._tensors.get(index)


class _Collector:
    """Entries of one state on their way into columns."""

    def __init__(self, planner: StandardSavePlanner) -> None:
        self.builder = ColumnsBuilder()
        self.tensors: dict[MetadataIndex, Any] = {}
        self.values: dict[str, Any] = {}
        self.payloads: dict[str, bytes] = {}
        self._framework = planner.framework
        self._rank = planner.rank
        self._reduce = planner.reduce_partial
        self._pickles = word("objects", planner.objects, {"json": 0, "pickle": 1}) == 1
        self._verify = planner.verify_replicas
        if self._verify is not None:
            word("verify_replicas", self._verify, VERIFY)
        self._kinds = [(str(glob), word("kind", kind, KINDS))
                       for glob, kind in pairs("entry_kinds", planner.entry_kinds, 2)]
        self._layouts = LayoutReader()
        self._rank_local: list[str] = []
        self._reduced: dict[str, list[str]] = {}

    def add(self, leaf: Leaf) -> None:
        """Adds one entry of the state."""
        kind = next((number for glob, number in self._kinds if fnmatch.fnmatchcase(leaf.name, glob)), KINDS["auto"])
        own = kind == KINDS["rank_local"]
        if own:
            self._rank_local.append(leaf.name)
            leaf = leaf._replace(name=rank_local_name(leaf.name, self._rank))
        if self._framework.is_distributed(leaf.value) or self._framework.is_tensor(leaf.value):
            self._add_tensor(leaf, kind, own)
        else:
            self._add_object(leaf, own)

    def _add_tensor(self, leaf: Leaf, kind: int, own: bool) -> None:
        if own:
            held = self._framework.alone(leaf.value)
        else:
            held = self._framework.held(leaf.name, leaf.value, self._rank, self._layouts, reduce_partial=self._reduce)
        if kind == KINDS["sharded"] and held.is_plain:
            raise InvalidArgumentError(
                f"{leaf.name} is declared sharded, but it is a plain tensor that does not say which part it is; give "
                "it a layout (a distributed tensor, or shardwright.Shard)", {"tensor": leaf.name})
        if held.reduced:
            self._reduced[leaf.name] = list(held.reduced)
        row = self.builder.tensor(leaf.name,
                                  held.dtype_code,
                                  held.shape,
                                  path=leaf.path,
                                  digest=self._digest(held, own),
                                  attribute=properties_text(TensorProperties(held.dtype)))
        for box, part in zip(held.boxes, held.parts, strict=True):
            self.builder.add(row, box)
            self.tensors[MetadataIndex(leaf.name, tuple(box[0]))] = part

    def _digest(self, held: Held, own: bool) -> bytes:
        """Digest of the content where replicas are compared by it; zeros elsewhere and for descriptors without
        memory."""
        if own or self._verify not in (None, "digest") or (self._verify is None and not held.is_plain):
            return NO_DIGEST
        contents = [self._framework.content(part) for part in held.parts]
        if any(content is None for content in contents):
            return NO_DIGEST
        digests = [engine.content_digest(content) for content in contents]
        return digests[0] if len(digests) == 1 else engine.content_digest(b"".join(digests))

    def _add_object(self, leaf: Leaf, own: bool) -> None:
        payload = encode_object(leaf.value, leaf.name, pickles=self._pickles)
        compared = not own and self._verify in (None, "digest")
        self.builder.object(leaf.name, len(payload), path=leaf.path,
                            digest=engine.content_digest(payload) if compared else NO_DIGEST)
        self.values[leaf.name] = leaf.value
        self.payloads[leaf.name] = payload

    def planner_data(self) -> dict[str, Any] | None:
        """What the metadata has to say beside the entries; None when there is nothing."""
        known = {"rank_local": self._rank_local, "reduced": self._reduced}
        return {key: value for key, value in known.items() if value} or None
