# SPDX-License-Identifier: Apache-2.0
"""Checkpoints on file systems of fsspec: `FsspecWriter("s3://bucket/run/step-100")`. In our save and load they name the
place and options; torch's own save and load use them as storage, too."""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from torch.distributed.checkpoint import fsspec_filesystem as _original

from . import _fsspec
from ._place import Place
from .filesystem import FileSystemReader, FileSystemWriter, SerializationFormat

__all__ = ["FsspecReader", "FsspecWriter"]

_FileSystem = _original._FileSystem


class FsspecWriter(FileSystemWriter, _original.FsspecWriter):
    """Writes to a URL of fsspec. Arguments as for FileSystemWriter; `options` are those of the file system."""

    def __init__(self, path: str | os.PathLike[str], single_file_per_rank: bool = True, sync_files: bool = True,
                 thread_count: int = 1, per_thread_copy_ahead: int = 10_000_000, cache_staged_state_dict: bool = False,
                 overwrite: bool = True, _extensions: Sequence[Any] | None = None,
                 serialization_format: Any = SerializationFormat.TORCH_SAVE, **options: Any) -> None:
        super().__init__(path, single_file_per_rank, sync_files, thread_count, per_thread_copy_ahead, cache_staged_state_dict,
                         overwrite, _extensions, serialization_format)
        self.fsspec_options = options
        self.fs: Any = _FileSystem()
        self.path = self.fs.init_path(path, **options)

    @property
    def place(self) -> Place:
        """Where the checkpoint lies."""
        return Place("", _fsspec.storage_of(os.fspath(self.path), **self.fsspec_options))

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether fsspec knows the file system that an id names."""
        return bool(_FileSystem.validate_checkpoint_id(checkpoint_id))


class FsspecReader(FileSystemReader, _original.FsspecReader):
    """Reads from a URL of fsspec; `options` are those of the file system."""

    def __init__(self, path: str | os.PathLike[str], **options: Any) -> None:
        FileSystemReader.__init__(self, path)
        self.fsspec_options = options
        self.fs: Any = _FileSystem()
        self.path = self.fs.init_path(path, **options)

    @property
    def place(self) -> Place:
        """Where the checkpoint lies."""
        return Place("", _fsspec.storage_of(os.fspath(self.path), **self.fsspec_options))

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether fsspec knows the file system that an id names."""
        return bool(_FileSystem.validate_checkpoint_id(checkpoint_id))


def __getattr__(name: str) -> Any:
    return getattr(_original, name)
