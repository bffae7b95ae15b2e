# SPDX-License-Identifier: Apache-2.0
"""Small files of a checkpoint: in a folder, or below a URL of fsspec. Each is replaced in one step."""
from __future__ import annotations

import contextlib
import os
from pathlib import PurePath
from typing import Any

from ...errors import NotFoundError, UnimplementedError
from .._durable import remove_file, replace_file
from ..dcp import _choice
from ..dcp._fsspec import host_storage_of, is_url
from .errors import CheckpointingException, failure

MSC_PREFIX = "msc://"
_MSC_PACKAGE = "multi-storage-client"


class NoPackageError(CheckpointingException, UnimplementedError):
    """A path needs a package that is not installed."""


def location_of(checkpoint_dir: Any) -> str:
    """A path or URL as text; of a URL that went through pathlib, which takes a slash away, the URL.

    Raises:
        NoPackageError: the path begins with msc:// and the package that serves it is not installed.
    """
    text = os.fspath(checkpoint_dir)
    if isinstance(checkpoint_dir, PurePath) and text.startswith("msc:/") and not text.startswith(MSC_PREFIX):
        text = MSC_PREFIX + text.removeprefix("msc:/")
    if text.startswith(MSC_PREFIX) and not is_url(text):
        raise failure(NoPackageError, f"{text} needs fsspec and the package {_MSC_PACKAGE} (module multistorageclient), of which "
                      f"one is not installed: pip install {_MSC_PACKAGE} fsspec", path=text, package=_MSC_PACKAGE)
    return str(text)


class Directory:
    """The small files of one checkpoint. Thread-compatible."""

    def __init__(self, checkpoint_dir: Any) -> None:
        self.path = location_of(checkpoint_dir)
        self._remote = host_storage_of(self.path) if is_url(self.path) else None

    @property
    def is_remote(self) -> bool:
        """Whether it lies below a URL, where directories come into being by what lies in them."""
        return self._remote is not None

    @property
    def reader(self) -> Any:
        """A reader of the checkpoint that is there."""
        return _choice.storage_of(None, self.path, reader=True)

    def exists(self) -> bool:
        """Whether files can be there."""
        return os.path.isdir(self.path) if self._remote is None else True

    def is_empty(self) -> bool:
        """Whether nothing is there."""
        if self._remote is None:
            with os.scandir(self.path) as entries:
                return next(entries, None) is None
        return not list(self._remote.list(""))

    def names(self) -> list[str]:
        """Names of the regular files at the top, sorted."""
        if self._remote is None:
            with os.scandir(self.path) as entries:
                return sorted(entry.name for entry in entries if entry.is_file())
        return sorted(row[0] for row in self._remote.list("") if "/" not in row[0])

    def version(self, name: str) -> Any:
        """What changes when a file is replaced; None where there is none."""
        try:
            if self._remote is not None:
                return self._remote.stat(name)
            found = os.stat(os.path.join(self.path, name))
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def read(self, name: str) -> bytes | None:
        """All of a file; None where there is none."""
        try:
            if self._remote is not None:
                content = bytearray(self._remote.stat(name)[0])
                self._remote.open(name, "read").read_at(0, memoryview(content))
                return bytes(content)
            with open(os.path.join(self.path, name), "rb") as stream:
                return stream.read()
        except FileNotFoundError:
            return None

    def replace(self, name: str, data: bytes | memoryview) -> None:
        """Puts a file in the place of what has its name; durable when this returns."""
        if self._remote is None:
            replace_file(self.path, name, data)
            return
        stream = self._remote.open(name, "create")
        try:
            stream.write_at(0, memoryview(data))
            stream.sync()
            stream.commit("", "")
        finally:
            stream.close()

    def remove(self, name: str) -> None:
        """Removes a file, if it is there."""
        if self._remote is None:
            with contextlib.suppress(FileNotFoundError):
                remove_file(self.path, name)
        else:
            with contextlib.suppress(NotFoundError):
                self._remote.remove(name)
