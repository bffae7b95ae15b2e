# SPDX-License-Identifier: Apache-2.0
"""Ranks that agree before they go on: what fails on one rank is one failure of all, of the kind that it has there.

What is exchanged passes through host memory, over groups of the library's own beside those of the caller.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.distributed as dist

from ...errors import ShardwrightError
from ..dcp import _choice
from ..dcp._errors import CheckpointError
from ..dcp._steps import Steps


def _steps(group: dist.ProcessGroup | None) -> Steps:
    members = _choice.members_of(group, False)
    return Steps(_choice.group_of(members), 0, members.use)


def together(function: Callable[[], Any], group: dist.ProcessGroup | None = None) -> Any:
    """What `function` gives on each rank. Collective; None = the default group. One word travels where nothing fails.

    Raises on all ranks, where it fails on some: the error of the lowest of them, if that is one of the library's.
    """
    try:
        return _steps(group).together("plan", function)
    except CheckpointError as e:
        raise _of_lowest(e) from e


def from_first(local: Callable[[], Any], first: Callable[[], Any], group: dist.ProcessGroup | None = None) -> Any:
    """What `first` gives on rank 0, on all ranks, after `local` has succeeded on each. Collective. Raises as `together` does."""
    try:
        return _steps(group).all_reduce("plan", lambda: local() and None, lambda _: first())
    except CheckpointError as e:
        raise _of_lowest(e) from e


def gathered(value: Any, group: dist.ProcessGroup | None = None) -> list[Any]:
    """The values of all ranks, in rank order, on each. Collective. Raises as `together` does where one cannot be sent."""
    steps = _steps(group)
    if steps.size == 1:
        return [value]
    try:
        return steps.all_gather("plan", value)
    except CheckpointError as e:
        raise _of_lowest(e) from e


def any_of(here: bool, group: dist.ProcessGroup | None = None) -> bool:
    """True on all ranks where it is on one. Collective."""
    return _steps(group).any(here)


def _of_lowest(error: CheckpointError) -> BaseException:
    rank, (cause, _) = min(error.failures.items())
    if not isinstance(cause, ShardwrightError):
        return error
    cause.details.setdefault("rank", str(rank))
    return cause
