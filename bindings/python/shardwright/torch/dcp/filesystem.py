# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in directories. `FileSystemWriter(path)` and `FileSystemReader(path)` name place and options in our save and
load, which then let the library do the work. torch's own save and load use them as storage: then the library writes the items,
with digests; a save is refused where a part of it failed, replaces its index in one step and touches nothing else in the
directory; a load reads only what it wants, from every format that the library opens.
"""
from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import io
import itertools
import os
import pathlib
import queue
import uuid
from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed.checkpoint import filesystem as _original
from torch.distributed.checkpoint.filesystem import FileSystem, FileSystemBase, SerializationFormat
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta, TensorStorageMetadata
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner
from torch.distributed.checkpoint.storage import WriteResult

from ...errors import DataLossError, NotFoundError
from .._durable import sync_folder
from . import _item_files, _metadata_file, _stored
from ._place import Place
from ._errors import CheckpointExistsError

__all__ = ["FileSystem", "FileSystemBase", "FileSystemReader", "FileSystemWriter", "SerializationFormat"]

_INDEX, _MEGATRON, _VERSION = ".metadata", "metadata.json", "1.0.0"
_READERS_MAX = 8


class FileSystemWriter(_original.FileSystemWriter):
    """Writes to a directory.

    Args:
        path: the directory; it is made.
        single_file_per_rank: False = a file per item.
        sync_files: False = what was saved survives the end of the process, not a loss of power.
        thread_count: files that a rank writes at the same time.
        per_thread_copy_ahead, cache_staged_state_dict, _extensions, serialization_format: as in torch.
        overwrite: False = CheckpointExistsError (a RuntimeError) where there is a checkpoint.
    """

    is_followed = False  # whether leave_to_ranks follows a save without collectives

    def __init__(self, path: str | os.PathLike[str], single_file_per_rank: bool = True, sync_files: bool = True,
                 thread_count: int = 1, per_thread_copy_ahead: int = 10_000_000, cache_staged_state_dict: bool = False,
                 overwrite: bool = True, _extensions: Sequence[Any] | None = None,
                 serialization_format: Any = SerializationFormat.TORCH_SAVE) -> None:
        _original.FileSystemWriter.__init__(self, path, single_file_per_rank, sync_files, thread_count, per_thread_copy_ahead,
                                            cache_staged_state_dict, overwrite, _extensions, serialization_format)
        self._has_extensions = bool(_extensions)

    @property
    def place(self) -> Place:
        """Where the checkpoint lies."""
        return Place(os.fspath(self.path))

    @property
    def is_plain(self) -> bool:
        """Whether the library writes what this writer would: one file per rank, of archives without transforms."""
        return self.single_file_per_rank and not self._has_extensions and self.serialization_format == SerializationFormat.TORCH_SAVE

    @property
    def save_options(self) -> dict[str, Any]:
        """What the library is told."""
        return {"overwrite": "replace" if self.overwrite else "refuse", **self._durability, **self._threads}

    @property
    def _durability(self) -> dict[str, Any]:
        return {} if self.sync_files else {"durability": "none"}

    @property
    def _threads(self) -> dict[str, Any]:
        return {"threads": self.thread_count} if self.thread_count > 1 else {}

    # ---- as storage of torch's save ----

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Makes the directory; CheckpointExistsError where a checkpoint is not to be replaced, or would hide what ranks save by
        themselves."""
        hidden = not self.use_collectives and self.fs.exists(self._get_metadata_path())
        if not self.overwrite and (hidden or self._metadata_exists()):
            raise CheckpointExistsError("Checkpoint already exists and self.overwrite=False.", {"path": os.fspath(self.path)})
        if hidden and not self.is_followed:
            raise CheckpointExistsError("Checkpoint already exists: its .metadata is read before the indexes of single ranks, which "
                                        "it would hide; remove it, or save by shardwright.torch.dcp.save, which replaces it",
                                        {"path": os.fspath(self.path)})
        self.fs.mkdir(self.path)
        return _with_prefix(plan, self.rank) if self.rank is not None and not self.use_collectives else plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Tells the ranks what their files are called, and the generation that the files are of."""
        return _item_files.with_generation(super().prepare_global_plan(plans))

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> torch.futures.Future[list[WriteResult]]:
        """Writes the items of this rank to files that no save had before: by the library, with digests, what it can describe;
        the rest, what is transformed, and files of other file systems as torch does."""
        prefix = plan.storage_data
        generation = prefix.next_generation() if isinstance(prefix, _item_files.Prefix) else uuid.uuid4().hex
        items = list(plan.items)
        results: list[WriteResult] = []
        if self.is_plain and type(self.fs) is FileSystem:
            results, items = _item_files.write(items, planner, os.fspath(self.path), _name(prefix, 0, generation), generation,
                                               {**self._durability, **self._threads})
        if items or not results:
            results += self._write_as_torch(items, planner, prefix, generation, 1 if results else 0)
        future: torch.futures.Future[list[WriteResult]] = torch.futures.Future()
        future.set_result(results)
        return future

    def _write_as_torch(self, items: list[Any], planner: SavePlanner, prefix: Any, generation: str,
                        first: int) -> list[WriteResult]:
        names: queue.Queue[tuple[Any, str, list[Any]]] = queue.Queue()
        groups = (_original._split_by_size_and_type(self.thread_count, items) if self.single_file_per_rank
                  else [[item] for item in items])
        for number, group in enumerate(groups, first):
            name = _name(prefix, number, generation)
            names.put((self.fs.concat_path(self.path, name), name, group))
        results: queue.Queue[list[WriteResult]] = queue.Queue()
        with concurrent.futures.ThreadPoolExecutor(max(1, self.thread_count), "shardwright-write") as pool:
            for done in [pool.submit(self._write_files, names, results, planner) for _ in range(max(1, self.thread_count))]:
                done.result()
        self._sync_folder()
        return [result for _ in range(results.qsize()) for result in results.get()]

    def _write_files(self, names: Any, results: Any, planner: SavePlanner) -> None:
        _original._write_files_from_queue(self.fs.create_stream, names, results, planner, self.transforms,
                                          self.per_thread_copy_ahead, self.sync_files, self.thread_count,
                                          self.serialization_format)

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Writes the index, in one step, when every item has a place; then removes the files of the checkpoint that it
        replaced."""
        metadata.version = _VERSION
        metadata.storage_data, digests = _item_files.taken(results)
        _check_all_written(metadata)
        metadata.storage_meta = StorageMeta(checkpoint_id=os.fspath(self.path), save_id=self.save_id)
        index = self._get_metadata_path(None if self.use_collectives else self.rank)
        replaced = self._files_of(index)
        data = io.BytesIO()
        _metadata_file.write(metadata, data)
        if digests and os.path.basename(index) == _INDEX:  # indexes of single ranks have none
            _item_files.write_digests(os.fspath(self.path), data.getvalue(), digests, self._durability)
        partial = self.fs.concat_path(self.path, f"{os.path.basename(index)}.{uuid.uuid4().hex[:8]}.tmp")
        with self.fs.create_stream(partial, "wb") as stream:
            stream.write(data.getbuffer())
            if self.sync_files:
                stream.flush()
                with contextlib.suppress(AttributeError, io.UnsupportedOperation):
                    os.fsync(stream.fileno())
        self._replace(partial, index)
        self._remove(replaced - _with_digests({getattr(place, "relative_path", "") for place in metadata.storage_data.values()}))

    def leave_to_ranks(self, size: int) -> None:
        """Takes away what a save without collectives replaced, once the indexes of all its `size` ranks are there: those of ranks
        that there are no more, and then that of all ranks, which hides the others until it goes."""
        others = list(itertools.takewhile(self.fs.exists, map(self._get_metadata_path, itertools.count(size))))
        whole = self._get_metadata_path()
        for index in [*reversed(others), *([whole] if self.fs.exists(whole) else [])]:
            names = self._files_of(index)
            self.fs.rm_file(index)
            self._sync_folder()
            self._remove(names)

    def _remove(self, names: set[str]) -> None:
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                self.fs.rm_file(self.fs.concat_path(self.path, name))

    def _files_of(self, index: Any) -> set[str]:
        """Files of data and of digests of the checkpoint that is replaced, none of them anywhere else."""
        if not self.fs.exists(index):
            return set()
        try:
            with self.fs.create_stream(index, "rb") as stream:
                places = (_metadata_file.read(stream).storage_data or {}).values()
        except Exception:  # what cannot be read is not cleaned up
            return set()
        names = {place.relative_path for place in places if isinstance(getattr(place, "relative_path", None), str)}
        return _with_digests({name for name in names
                              if name.endswith(_item_files.SUFFIX) and "/" not in name and "\\" not in name})

    def _replace(self, partial: Any, index: Any) -> None:
        if type(self.fs) is FileSystem:
            os.replace(partial, index)
            self._sync_folder()
            return
        if self.fs.exists(index):  # file systems of others rename only to names that are free
            self.fs.rm_file(index)
        self.fs.rename(partial, index)

    def _sync_folder(self) -> None:
        if self.sync_files and type(self.fs) is FileSystem:
            sync_folder(self.path)


def _with_prefix(plan: SavePlan, rank: int) -> SavePlan:
    return dataclasses.replace(plan, storage_data=_original._StoragePrefix(f"__{rank}_"))


def _name(prefix: Any, number: int, generation: str) -> str:
    return f"{prefix.prefix}{number}.{generation}{_item_files.SUFFIX}"


def _with_digests(names: set[str]) -> set[str]:
    return names | {found for name in names if (found := _item_files.digests_file_of(name)) is not None}


def _check_all_written(metadata: Metadata) -> None:
    """DataLossError for an item that no rank reported as written."""
    places = metadata.storage_data
    for name, stored in metadata.state_dict_metadata.items():
        chunks = stored.chunks if isinstance(stored, TensorStorageMetadata) else [None]
        for chunk in chunks:
            index = MetadataIndex(name) if chunk is None else MetadataIndex(name, chunk.offsets)
            if index not in places:
                where = "" if chunk is None else f" at {tuple(chunk.offsets)}"
                raise DataLossError(f"{name}{where} was written by no rank; the checkpoint is not published", {"tensor": name})


class FileSystemReader(_original.FileSystemReader):
    """Reads from a directory, of whatever format that the library opens. Nothing that is stored is run.

    Args:
        path: the directory, or a file of torch.save or safetensors.
        _extension_registry: stream transforms beyond those of torch; then items are read whole, as torch does.
    """

    def __init__(self, path: str | os.PathLike[str], _extension_registry: Any = None) -> None:
        _original.FileSystemReader.__init__(self, path, _extension_registry)
        self._has_extensions = _extension_registry is not None
        self.merges_ranks = False  # indexes of single ranks are taken for one, of what several hold the lowest rank's copy

    @property
    def place(self) -> Place:
        """Where the checkpoint lies."""
        return Place(os.fspath(self.path))

    @property
    def is_plain(self) -> bool:
        """Whether the library reads what this reader would: neither transforms of the caller, nor checkpoints of Megatron, which
        have an index of torch and are taken for what that says."""
        return not self._has_extensions and not all(
            self.fs.exists(self.fs.concat_path(self.path, name)) for name in (_INDEX, _MEGATRON))

    # ---- as storage of torch's load ----

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """The index. With `rank`, that of a rank that saved without collectives."""
        rank = kwargs.get("rank")
        self._by_items = rank is not None or not self.is_plain
        found = self._index(rank) if self._by_items else self.metadata()[0]
        meta = getattr(found, "storage_meta", None) or StorageMeta()
        meta.load_id = self.load_id
        found.storage_meta = meta
        return found

    def metadata(self) -> tuple[Metadata, str]:
        """The index as it is stored, and the generation that it is of ("" where the format has none). What is no index, or a
        hostile one, is refused before Python sees it."""
        with self._open() as checkpoint:
            alone = checkpoint.format == "torch-dcp" and not self.fs.exists(self._get_metadata_path())
            if checkpoint.format != "torch-dcp" or (alone and self.merges_ranks):
                return _stored.metadata_of(checkpoint), checkpoint.generation
            if alone:
                raise NotFoundError(f"{os.fspath(self.path)} holds no index of all ranks, only those of single ones",
                                    {"path": os.fspath(self.path)})
            return self._index(None), checkpoint.generation

    def _open(self) -> Any:
        return self.place.open()

    def _index(self, rank: int | None) -> Metadata:
        with self.fs.create_stream(self._get_metadata_path(rank), "rb") as stream:
            return _metadata_file.read(stream)

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> torch.futures.Future[None]:
        """Fills what the items of a plan want. Parts of tensors are read from where they lie, several at a time."""
        if getattr(self, "_by_items", False) or _stored.has_transforms(self.storage_data, plan.items):
            return super().read_data(plan, planner)
        with self._open() as checkpoint:
            items = list(plan.items)
            tensors = [item for item in items if item.type != LoadItemType.BYTE_IO]
            for item in items:
                if item.type == LoadItemType.BYTE_IO:
                    planner.load_bytes(item, self._object(checkpoint, item))
            with concurrent.futures.ThreadPoolExecutor(min(_READERS_MAX, max(1, len(tensors))), "shardwright-read") as pool:
                for item, target in pool.map(lambda item: _stored.fill(checkpoint, item, planner), tensors):
                    planner.commit_tensor(item, target)
        future: torch.futures.Future[None] = torch.futures.Future()
        future.set_result(None)
        return future

    def _object(self, checkpoint: Any, item: ReadItem) -> io.BytesIO:
        place = self.storage_data.get(item.storage_index)
        if place is None:
            return _stored.archive_of(checkpoint, item.storage_index.fqn)
        with self.fs.create_stream(self.fs.concat_path(self.path, place.relative_path), "rb") as stream:
            stream.seek(place.offset)
            return io.BytesIO(stream.read(place.length))

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether an id is a path."""
        return isinstance(checkpoint_id, pathlib.Path) or bool(FileSystem.validate_checkpoint_id(checkpoint_id))


def __getattr__(name: str) -> Any:
    return getattr(_original, name)
