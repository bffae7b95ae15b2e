# SPDX-License-Identifier: Apache-2.0
"""integrity.json: the SHA-256 of each file of a checkpoint, as megatron-core 0.19 writes it.

    {"algorithm": "sha256", "files": {NAME: HEX, ...}}

Files at the top, itself left out. They are read by several threads.
"""
from __future__ import annotations

import concurrent.futures
import hashlib
import json
import os
from typing import Any

from ...errors import DataLossError, NotFoundError
from ._directory import Directory
from .errors import CheckpointingException, failure

MANIFEST = "integrity.json"
_ALGORITHM = "sha256"
_THREADS_MAX = 8
_READ_BYTES = 1 << 20
_SHOWN_DIGITS = 16
_SHOWN_FILES_MAX = 5


class NoManifestError(CheckpointingException, NotFoundError):
    """A checkpoint has no integrity.json."""


class DamagedCheckpointError(CheckpointingException, DataLossError):
    """Files are not those that integrity.json lists, or it cannot be read."""


def save_integrity_manifest(checkpoint_dir: Any) -> None:
    """Writes integrity.json, in one step and durable. One process calls it, when all files are there."""
    directory = Directory(checkpoint_dir)
    files = _digests(directory, [name for name in directory.names() if name != MANIFEST])
    directory.replace(MANIFEST, json.dumps({"algorithm": _ALGORITHM, "files": files}).encode())


def verify_integrity_manifest(checkpoint_dir: Any) -> None:
    """Compares all files with integrity.json; files that it does not list are not looked at.

    Raises:
        NoManifestError: there is none. DamagedCheckpointError: names up to five files that are missing or differ.
    """
    directory = Directory(checkpoint_dir)
    files = _listed(directory)
    present = set(directory.names())
    found = _digests(directory, [name for name in files if name in present])
    wrong = [f"{name} is missing" for name in files if name not in present]
    wrong += [f"{name} has {found[name][:_SHOWN_DIGITS]}..., expected {digest[:_SHOWN_DIGITS]}..."
              for name, digest in files.items() if found.get(name, digest) != digest]
    if wrong:
        raise failure(DamagedCheckpointError, f"{len(wrong)} of {len(files)} files of {directory.path} are not what {MANIFEST} "
                      f"says: {'; '.join(wrong[:_SHOWN_FILES_MAX])}", path=directory.path, file=wrong[0].partition(" ")[0])


def _listed(directory: Directory) -> dict[str, str]:
    content = directory.read(MANIFEST)
    if content is None:
        raise failure(NoManifestError, f"{directory.path} has no {MANIFEST}, which saves write with verify_integrity=True; load "
                      "it without", path=directory.path)
    try:
        said = json.loads(content)
        algorithm, files = said["algorithm"], {str(name): str(digest) for name, digest in said["files"].items()}
    except (ValueError, TypeError, KeyError, AttributeError) as e:
        raise failure(DamagedCheckpointError, f"{directory.path}/{MANIFEST} cannot be read: {e}", path=directory.path) from e
    if algorithm != _ALGORITHM:
        raise failure(DamagedCheckpointError, f"{directory.path}/{MANIFEST} is by {algorithm!r}, expected {_ALGORITHM!r}",
                      path=directory.path)
    return files


def _digests(directory: Directory, names: list[str]) -> dict[str, str]:
    with concurrent.futures.ThreadPoolExecutor(_THREADS_MAX) as threads:
        return dict(zip(names, threads.map(lambda name: _digest(directory, name), names), strict=True))


def _digest(directory: Directory, name: str) -> str:
    if directory.is_remote:
        return hashlib.sha256(directory.read(name) or b"").hexdigest()
    digest = hashlib.sha256()
    with open(os.path.join(directory.path, name), "rb", buffering=0) as stream:
        while data := stream.read(_READ_BYTES):
            digest.update(data)
    return digest.hexdigest()
