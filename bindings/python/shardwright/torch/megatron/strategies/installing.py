# SPDX-License-Identifier: Apache-2.0
"""One call by which megatron-core saves and loads with this library."""
from __future__ import annotations

import dataclasses
import importlib
import io
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
import torch.distributed as dist

from ....errors import FailedPreconditionError, NotFoundError
from ..._durable import remove_file, replace_file
from .async_calls import AsyncCallsQueue
from .torch_dist import TorchDistLoadShardedStrategy, TorchDistSaveShardedStrategy

_PACKAGE = "megatron.core.dist_checkpointing"
_COMMON, _MARKER = "common.pt", "metadata.json"

_installed: Installed | None = None


class Installed:
    """What `install` gives; at the end of a `with` block it is undone."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Puts a value in the place of the original's."""
        self._before.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def undo(self) -> None:
        """Puts back what was there."""
        while self._before:
            owner, name, value = self._before.pop()
            setattr(owner, name, value)

    def __enter__(self) -> Installed:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, stack: TracebackType | None) -> None:
        uninstall()


def install() -> Installed:
    """Lets `megatron.core.dist_checkpointing.save` and `load`, and what makes their strategies by name, use ours: for this
    process, until `uninstall` or the end of a `with` block. Call it on all ranks, before the strategies are made.

    common.pt and metadata.json are then replaced in one step each and durable, and a metadata.json that is there goes before
    common.pt does: whenever the job is killed, Megatron finds one whole checkpoint, or no marker.

    Raises:
        NotFoundError: megatron-core cannot be imported. FailedPreconditionError: it is installed already.
    """
    global _installed
    if _installed is not None:
        raise FailedPreconditionError("shardwright.torch.megatron.install() was called before; uninstall() comes first")
    try:
        torch_dist, queues, common, serialization, core = (
            importlib.import_module(f"{_PACKAGE}.{name}")
            for name in ("strategies.torch", "strategies.async_utils", "strategies.common", "serialization", "core"))
    except ImportError as e:
        raise NotFoundError(f"install() needs megatron-core, which cannot be imported: {e}; pip install megatron-core",
                            {"parameter": "megatron-core"}) from e
    made = Installed()
    # The registry of defaults is filled anew by these names whenever it is asked.
    made.replace(torch_dist, "TorchDistSaveShardedStrategy", TorchDistSaveShardedStrategy)
    made.replace(torch_dist, "TorchDistLoadShardedStrategy", TorchDistLoadShardedStrategy)
    made.replace(queues, "AsyncCallsQueue", AsyncCallsQueue)
    made.replace(common.TorchCommonSaveStrategy, "save_common", _save_common)
    for module in (core, serialization):
        made.replace(module, "save_config", _save_config)
    _installed = made
    return made


def uninstall() -> None:
    """Undoes install(); nothing where it was not called."""
    global _installed
    made, _installed = _installed, None
    if made is not None:
        made.undo()


def _save_common(_: Any, common_state_dict: Any, checkpoint_dir: str | Path) -> None:
    """In the place of a method of the original's."""
    if dist.get_rank() != 0:
        return
    data = io.BytesIO()
    torch.save(common_state_dict, data)
    remove_file(os.fspath(checkpoint_dir), _MARKER)
    replace_file(os.fspath(checkpoint_dir), _COMMON, data.getbuffer())


def _save_config(config: Any, checkpoint_dir: str | Path) -> None:
    """The marker, which comes last."""
    replace_file(os.fspath(checkpoint_dir), _MARKER, json.dumps(dataclasses.asdict(config)).encode())
