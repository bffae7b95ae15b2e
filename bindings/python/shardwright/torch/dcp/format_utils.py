# SPDX-License-Identifier: Apache-2.0
"""Files of torch.save as checkpoints and back. Nothing that is stored is run. As a program:

    python -m shardwright.torch.dcp.format_utils torch_to_dcp model.pt checkpoint
    python -m shardwright.torch.dcp.format_utils dcp_to_torch checkpoint model.pt
"""
from __future__ import annotations

import argparse
import contextlib
import os
import sys
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.checkpoint import format_utils as _original
from torch.distributed.checkpoint.metadata import Metadata, TensorProperties, TensorStorageMetadata
from torch.distributed.checkpoint.planner import LoadItemType

from ..._pickles import DamagedPickle, UnsafePickle, refusal
from ...errors import PermissionDeniedError
from .. import _stored_objects
from .filesystem import FileSystemWriter
from .planner import DamagedObjectError, DefaultLoadPlanner, InvalidPlanError, PlanCheckError, UntrustedObjectError, flatten_state_dict
from .planner._values import wanted_chunks
from .state_dict_loader import _load_state_dict_from_keys
from .state_dict_saver import _save_state_dict

__all__ = ["BroadcastingTorchSaveReader", "DynamicMetaLoadPlanner", "dcp_to_torch_save", "torch_save_to_dcp"]

class NoTensorError(InvalidPlanError, RuntimeError):
    """A value that is no tensor where only tensors can be loaded."""


class BroadcastingTorchSaveReader(_original.BroadcastingTorchSaveReader):
    """Reads a file of torch.save on the coordinator and sends each tensor to all ranks, of which each takes its part. For
    files that only the coordinator sees, with DynamicMetaLoadPlanner; others are loaded by `load(state, checkpoint_id=file)`.
    All ranks have the same names in the same order; tensors only."""

    def __init__(self, checkpoint_id: str | os.PathLike[str] | None = None, coordinator_rank: int = 0, *,
                 trust_pickles: bool = False, allow_types: Iterable[Any] = ()) -> None:
        super().__init__(checkpoint_id, coordinator_rank)
        self._trust_pickles, self._allow_types = trust_pickles, tuple(allow_types)

    def read_data(self, plan: Any, planner: Any) -> torch.futures.Future[None]:
        """Fills what the items of a plan want."""
        stored: dict[str, Any] = {}
        if self.is_coordinator:
            if self.checkpoint_id is None:
                raise PlanCheckError("checkpoint_id must be set before reading data")
            stored = _read(self.checkpoint_id, self._trust_pickles, self._allow_types)
            if planner.flatten_state_dict:
                stored = flatten_state_dict(stored)[0]
        for item in plan.items:
            self._fill(item, stored, planner)
        future: torch.futures.Future[None] = torch.futures.Future()
        future.set_result(None)
        return future

    def _fill(self, item: Any, stored: dict[str, Any], planner: Any) -> None:
        name = item.storage_index.fqn
        if item.type == LoadItemType.BYTE_IO:
            raise NoTensorError(f"Non-tensor value identified at {name}. At this time {type(self).__name__} only "
                                           "supports loading Tensors.", {"tensor": name})
        device = dist.distributed_c10d._get_object_coll_device()
        like = planner.state_dict[name]
        found = stored[name].to(device) if self.is_coordinator else torch.empty(like.size(), dtype=like.dtype, device=device)
        dist.broadcast(found, src=self.coordinator_rank, async_op=False)
        for dim, (chunk, begin, size) in enumerate(zip(item.storage_index.offset, item.storage_offsets, item.lengths, strict=True)):
            found = found.narrow(dim, chunk + begin, size)  # what is sent is all of the tensor, not the chunk of the item
        target = planner.resolve_tensor(item).detach()
        if target.size() != found.size():
            raise PlanCheckError(f"req {item.storage_index} mismatch sizes, {target.size()} vs {found.size()}", {"tensor": name})
        target.copy_(found)
        planner.commit_tensor(item, target)


class DynamicMetaLoadPlanner(DefaultLoadPlanner, _original.DynamicMetaLoadPlanner):
    """Takes what a state wants for what is stored: for files without an index. Tensors only."""

    def set_up_planner(self, state_dict: dict[str, Any], metadata: Any = None, is_coordinator: bool = False) -> None:
        """As DefaultLoadPlanner, with a metadata made of the state. NoTensorError (a RuntimeError) for values that are no tensors."""
        super().set_up_planner(state_dict, metadata, is_coordinator)
        found: dict[str, Any] = {}
        for name, value in self.state_dict.items():
            if not torch.is_tensor(value):
                raise NoTensorError(f"Non-tensor value identified at {name}. At this time {type(self).__name__} only "
                                               "supports loading Tensors.", {"tensor": name})
            chunks = wanted_chunks(name, value, TensorStorageMetadata)
            found[name] = TensorStorageMetadata(TensorProperties(dtype=value.dtype), value.size(), chunks)
        self.metadata = Metadata(found)


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str], *,
                      trust_pickles: bool = False, allow_types: Iterable[Any] = ()) -> None:
    """Writes a checkpoint, of whatever format that is opened, as one file of torch.save. `trust_pickles`, `allow_types`: what
    stored objects may use, as for load. The file appears when it is complete."""
    found = _load_state_dict_from_keys(checkpoint_id=dcp_checkpoint_dir, no_dist=True, trust_pickles=trust_pickles,
                                       allow_types=allow_types)
    partial = f"{os.fspath(torch_save_path)}.{uuid.uuid4().hex[:8]}.tmp"
    try:
        torch.save(found, partial)
        os.replace(partial, torch_save_path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
        raise


def torch_save_to_dcp(torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str], *,
                      trust_pickles: bool = False, allow_types: Iterable[Any] = ()) -> None:
    """Writes what a file of torch.save holds as a checkpoint. Arguments as for dcp_to_torch_save."""
    found = _read(torch_save_path, trust_pickles, tuple(allow_types))
    _save_state_dict(found, FileSystemWriter(dcp_checkpoint_dir), no_dist=True)


def _read(path: str | os.PathLike[str], trusted: bool, allow_types: Iterable[Any]) -> dict[str, Any]:
    """What a file of torch.save holds, a mapping."""
    where = os.fspath(path)
    try:
        found = _stored_objects.read_file(where, trusted, allow_types)
    except UnsafePickle as e:
        raise refusal(where, e, "trust_pickles", UntrustedObjectError) from e
    except DamagedPickle as e:
        raise DamagedObjectError(f"{where} cannot be read: {e}", {"file": where}) from e
    if not isinstance(found, dict):
        raise NoTensorError(f"{where} holds a {type(found).__qualname__}, no mapping", {"file": where})
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """The program."""
    parser = argparse.ArgumentParser(prog="python -m shardwright.torch.dcp.format_utils")
    parser.add_argument("mode", choices=["torch_to_dcp", "dcp_to_torch"], help="conversion")
    parser.add_argument("src", help="what is converted")
    parser.add_argument("dst", help="what is written")
    parser.add_argument("--trust-pickles", action="store_true", help="stored objects may run code of the source")
    given = parser.parse_args(arguments)
    print(f"Converting checkpoint from {given.src} to {given.dst} using method: '{given.mode}'")
    to_dcp = given.mode == "torch_to_dcp"
    if not (os.path.isfile(given.src) if to_dcp else os.path.isdir(given.src)):
        print(f"No checkpoint found at {given.src}. Skipping conversion.")
        return 0
    try:
        (torch_save_to_dcp if to_dcp else dcp_to_torch_save)(given.src, given.dst, trust_pickles=given.trust_pickles)
    except PermissionDeniedError as e:
        print(e, file=sys.stderr)
        return 4
    return 0


def __getattr__(name: str) -> Any:
    return getattr(_original, name)


if __name__ == "__main__":
    sys.exit(main())
