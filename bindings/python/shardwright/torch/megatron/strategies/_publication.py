# SPDX-License-Identifier: Apache-2.0
"""Directories that saves of the library (format "megatron", from any language) were putting in place when they were killed."""
from __future__ import annotations

from ....checkpoint import collect_garbage
from .._directory import Directory
from ..errors import CheckpointingException, failure

_JOURNAL = ".shardwright.publish"
_FOREVER = 1e9  # seconds: nothing is old enough to be removed


def finish_publication(directory: Directory) -> None:
    """Puts in place what was committed, as the next save would: index, common state and metadata.json are then of one checkpoint.

    Raises:
        CheckpointingException: a save is running there. PermissionDeniedError and others: nothing can be written there.
    """
    if directory.version(_JOURNAL) is None:
        return
    place = directory.reader.place
    collect_garbage(place.path, storage=place.storage, apply=True, grace=_FOREVER)
    if directory.version(_JOURNAL) is not None:
        raise failure(CheckpointingException, f"a save is putting its checkpoint in place at {directory.path}; load when it has "
                      "ended", path=directory.path)
