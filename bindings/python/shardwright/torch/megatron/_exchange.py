# SPDX-License-Identifier: Apache-2.0
"""Gathering descriptions from all ranks so that a failure on one rank is the failure of all."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.distributed as dist

from ...errors import HostExceptionError, ShardwrightError, from_native


def group_size(group: dist.ProcessGroup | None) -> int:
    """Number of ranks; 1 without process groups."""
    return dist.get_world_size(group) if dist.is_available() and dist.is_initialized() else 1


def group_rank(group: dist.ProcessGroup | None) -> int:
    """Rank in the group; 0 without process groups."""
    return dist.get_rank(group) if dist.is_available() and dist.is_initialized() else 0


def gather_from_all(make: Callable[[], Any], group: dist.ProcessGroup | None) -> list[Any]:
    """What make() gives on each rank, in rank order. Collective: all ranks call it.

    Where make() fails on one rank, all raise: that rank its own error, the others one that names the lowest such rank.
    """
    own: Exception | None = None
    mine: tuple[int, str, Any]
    try:
        mine = (0, "", make())
    except Exception as e:  # its peers must hear of any kind
        own = e
        mine = (e.code if isinstance(e, ShardwrightError) else HostExceptionError.code, f"{type(e).__name__}: {e}", None)
    found: list[Any] = [mine]
    if group_size(group) > 1:
        found = [None] * group_size(group)
        dist.all_gather_object(found, mine, group=group)
    if own is not None:
        raise own
    for rank, (code, text, _) in enumerate(found):
        if code:
            raise from_native(code, f"rank {rank} could not describe its state: {text}", [("rank", str(rank))], 0, None)
    return [value for _, _, value in found]
