# SPDX-License-Identifier: Apache-2.0
"""One call by which megatron-core's users save and load with this library."""
from __future__ import annotations

import importlib
from pathlib import Path
from types import TracebackType
from typing import Any

import torch.distributed as dist

from ...errors import FailedPreconditionError, NotFoundError
from . import config, loading, saving, stored_metadata
from ._directory import Directory
from .unsharded import COMMON_FILE, encoded
from .strategies import AsyncCallsQueue, TorchDistLoadShardedStrategy, TorchDistSaveShardedStrategy
from .strategies.unsharded import load_common_state_dict
from .strategies.fully_parallel import FullyParallelLoadStrategyWrapper, FullyParallelSaveStrategyWrapper

_PACKAGE = "megatron.core.dist_checkpointing"
_FUNCTIONS = {
    "save": saving.save, "load": loading.load, "load_common_state_dict": load_common_state_dict,
    **{name: getattr(stored_metadata, name) for name in ("load_tensors_metadata", "load_sharded_metadata", "load_plain_tensors",
                                                         "load_content_metadata", "remove_sharded_tensors")},
    **{name: getattr(config, name) for name in ("check_is_distributed_checkpoint", "maybe_load_config", "save_config")}}

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
    """Puts ours in the place of `megatron.core.dist_checkpointing.save`, `load` and what stands beside them, and of the
    strategies that are made by name: for this process, until `uninstall` or the end of a `with` block. Call it on all ranks,
    before strategies are made. Functions that a module has imported by name before stay the original's, and use ours below.

    Whenever the job is killed, Megatron finds one whole checkpoint, or no metadata.json.

    Raises:
        NotFoundError: megatron-core cannot be imported. FailedPreconditionError: it is installed already.
    """
    global _installed
    if _installed is not None:
        raise FailedPreconditionError("shardwright.torch.megatron.install() was called before; uninstall() comes first")
    try:
        package, torch_dist, parallel, queues, common, serialization, core = (
            importlib.import_module(_PACKAGE + name)
            for name in ("", ".strategies.torch", ".strategies.fully_parallel", ".strategies.async_utils", ".strategies.common",
                         ".serialization", ".core"))
    except ImportError as e:
        raise NotFoundError(f"install() needs megatron-core, which cannot be imported: {e}; pip install megatron-core",
                            {"parameter": "megatron-core"}) from e
    made = Installed()
    # The registry of defaults is filled anew by these names whenever it is asked; 0.19 has no registry, and makes them where
    # it saves and loads.
    for module in (torch_dist, serialization):
        for strategy in (TorchDistSaveShardedStrategy, TorchDistLoadShardedStrategy):
            if hasattr(module, strategy.__name__):
                made.replace(module, strategy.__name__, strategy)
    made.replace(parallel, "FullyParallelSaveStrategyWrapper", FullyParallelSaveStrategyWrapper)
    made.replace(parallel, "FullyParallelLoadStrategyWrapper", FullyParallelLoadStrategyWrapper)
    made.replace(queues, "AsyncCallsQueue", AsyncCallsQueue)
    if hasattr(common, "TorchCommonSaveStrategy"):
        made.replace(common.TorchCommonSaveStrategy, "save_common", lambda _, *arguments: _save_common(*arguments))
    else:  # since 0.19
        made.replace(common, "save_common", _save_common)
    for module in (package, serialization, core):
        for name, function in _FUNCTIONS.items():
            if hasattr(module, name):
                made.replace(module, name, function)
    _installed = made
    return made


def uninstall() -> None:
    """Undoes install(); nothing where it was not called."""
    global _installed
    made, _installed = _installed, None
    if made is not None:
        made.undo()


def _save_common(common_state_dict: Any, checkpoint_dir: str | Path) -> None:
    """In the place of a function of the original's, for whoever calls it beside `save`."""
    if dist.get_rank() != 0:
        return
    directory = Directory(checkpoint_dir)
    content = encoded(common_state_dict, f"{directory.path}/{COMMON_FILE}")
    directory.remove(config.MARKER)
    directory.replace(COMMON_FILE, content)
