# SPDX-License-Identifier: Apache-2.0
"""The common state: what of a state dict is not sharded, alike on all ranks. It is the file common.pt, or one object of the
index.

It is read as data: classes beyond those that every load takes are refused by name unless the caller allows them.
"""
from __future__ import annotations

import io
from typing import Any, NamedTuple

from ..._pickles import DamagedPickle, UnsafePickle, refusal
from ...errors import DataLossError, NotFoundError
from .. import _stored_objects
from ..dcp.planner._errors import UntrustedObjectError
from ._allowed_types import allowed_types
from ._directory import Directory
from .errors import CheckpointingException, failure
from .sharded_object import ShardedObject

COMMON_FILE = "common.pt"
COMMON_KEY = "common_state"


class NoCommonStateError(CheckpointingException, NotFoundError):
    """A checkpoint has neither common.pt nor an object of the common state."""


class DamagedCommonStateError(CheckpointingException, DataLossError):
    """The bytes of a common state are no archive of torch, or hold no dict."""


class Trust(NamedTuple):
    """What a load may make of pickles.

    Attributes: `everything`: whatever they say, code of the checkpoint included; `types`: classes of the program.
    """

    everything: bool = False
    types: tuple[Any, ...] = ()


NO_TRUST = Trust()


def common_object(data: Any, rank: int) -> ShardedObject:
    """The common state as an object, which rank 0 stores."""
    return ShardedObject(COMMON_KEY, data, (1,), (0,), rank)


def encoded(common: Any, where: str) -> memoryview:
    """The content of common.pt. `where` names it in the log."""
    stream = io.BytesIO()
    _stored_objects.write(common, where, stream, allowed_types())
    return stream.getbuffer()


def decoded(content: bytes, where: str, trust: Trust = NO_TRUST) -> dict[Any, Any]:
    """The common state of a content.

    Raises:
        PermissionDeniedError: it uses a class that is neither known nor allowed. DamagedCommonStateError.
    """
    try:
        found = _stored_objects.read(io.BytesIO(content), trust.everything, [*trust.types, *allowed_types()])
    except UnsafePickle as e:
        raise refusal(where, e, "trust_pickles", UntrustedObjectError) from e
    except DamagedPickle as e:
        raise failure(DamagedCommonStateError, f"{where} cannot be read: {e}", file=where) from e
    if not isinstance(found, dict):
        raise failure(DamagedCommonStateError, f"{where} holds a {type(found).__name__}, no dict", file=where)
    return found


def no_common_state(where: str) -> CheckpointingException:
    """What to raise where there is none."""
    return failure(NoCommonStateError, f"{where} has neither {COMMON_FILE} nor the object {COMMON_KEY}/shard_0_1: the checkpoint "
                   "is not whole", path=where)


def read_common_file(directory: Directory, trust: Trust = NO_TRUST) -> dict[Any, Any] | None:
    """What common.pt holds; None where there is no such file."""
    content = directory.read(COMMON_FILE)
    return None if content is None else decoded(content, f"{directory.path}/{COMMON_FILE}", trust)
