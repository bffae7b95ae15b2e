# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.checkpoint (DCP) under its own names, done by shardwright:

    import shardwright.torch.dcp as dcp             # was: import torch.distributed.checkpoint as dcp

    dcp.save(state, checkpoint_id=path)             # a directory that torch reads
    dcp.load(state, checkpoint_id=path)             # one that torch wrote, or any other that the library opens

Signatures and results are those of torch 2.15; classes of the state-dict interface, of metadata, plans and stagers are torch's
own. What differs on purpose is listed in docs/compatibility.md.
"""
from typing import TYPE_CHECKING, Any

from . import (
    api,
    default_planner,
    filesystem,
    fsspec_filesystem,
    hf_storage,
    logger,
    logging_handlers,
    metadata,
    optimizer,
    planner,
    planner_helpers,
    protocol,
    quantized_hf_storage,
    resharding,
    staging,
    state_dict,
    state_dict_loader,
    state_dict_saver,
    stateful,
    storage,
    utils,
)
from ._errors import CheckpointError, CheckpointExistsError, NoCheckpointError
from .api import CheckpointException
from .default_planner import DefaultLoadPlanner, DefaultSavePlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .fsspec_filesystem import FsspecReader, FsspecWriter
from .hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, Metadata, TensorStorageMetadata
from .optimizer import load_sharded_optimizer_state_dict
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem
from .protocol import CheckpointableTensor
from .quantized_hf_storage import QuantizedHuggingFaceStorageReader
from .state_dict_loader import load, load_state_dict
from .state_dict_saver import AsyncCheckpointerType, AsyncSaveResponse, async_save, save, save_state_dict
from .storage import StorageReader, StorageWriter

if TYPE_CHECKING:
    from . import format_utils as format_utils

__all__ = [
    "AsyncCheckpointerType", "AsyncSaveResponse", "BytesStorageMetadata", "CheckpointError", "CheckpointException",
    "CheckpointExistsError", "CheckpointableTensor", "ChunkStorageMetadata", "DefaultLoadPlanner", "DefaultSavePlanner",
    "FileSystemReader", "FileSystemWriter", "FsspecReader", "FsspecWriter", "HuggingFaceStorageReader",
    "HuggingFaceStorageWriter", "LoadPlan", "LoadPlanner", "Metadata", "NoCheckpointError",
    "QuantizedHuggingFaceStorageReader", "ReadItem", "SavePlan", "SavePlanner", "StorageReader", "StorageWriter",
    "TensorStorageMetadata", "WriteItem", "api", "async_save", "default_planner", "filesystem", "format_utils",
    "fsspec_filesystem", "hf_storage", "load", "load_sharded_optimizer_state_dict", "load_state_dict", "logger",
    "logging_handlers", "metadata", "optimizer", "planner", "planner_helpers", "protocol", "quantized_hf_storage",
    "resharding", "save", "save_state_dict", "staging", "state_dict", "state_dict_loader", "state_dict_saver", "stateful",
    "storage", "utils",
]


def __getattr__(name: str) -> Any:
    """format_utils is also a program, which wants to be the first to import it."""
    if name == "format_utils":
        import importlib
        return importlib.import_module(f"{__name__}.format_utils")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
