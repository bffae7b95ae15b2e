# SPDX-License-Identifier: Apache-2.0
"""Small files of a directory, each replaced in one step and durable."""
from __future__ import annotations

import os
import uuid


def replace_file(folder: str, name: str, data: bytes | memoryview) -> None:
    """Writes a file beside the one that it then replaces. After a failure the old one is there, and nothing of the new."""
    partial = os.path.join(folder, f"{name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with open(partial, "xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, os.path.join(folder, name))
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise
    sync_folder(folder)


def remove_file(folder: str, name: str) -> None:
    """Removes a file, if it is there."""
    path = os.path.join(folder, name)
    if os.path.lexists(path):
        os.unlink(path)
        sync_folder(folder)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Makes the names in a folder durable."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
