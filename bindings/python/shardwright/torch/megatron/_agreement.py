# SPDX-License-Identifier: Apache-2.0
"""Ranks that agree before they go on: what fails on one rank is one failure of all, of the kind that it has there.

What is exchanged passes through host memory, over groups of the library's own beside those of the caller.
"""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch.distributed as dist

from ...errors import ShardwrightError
from ..dcp import _choice
from ..dcp._errors import CheckpointError


class Ranks:
    """The ranks of a group during one call of all of them; None = the default group. Making one is collective, too: it costs
    more than a step, so a call makes one for all of its steps. One thread.

    A step raises on all ranks, where it fails on some: the error of the lowest of them, if that is one of the library's.
    """

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self.group = group
        self._steps = _choice.steps_of(_choice.members_of(group, False))

    def together(self, function: Callable[[], Any]) -> Any:
        """What `function` gives on each rank. One word travels where nothing fails."""
        with _one_failure():
            return self._steps.together("plan", function)

    def from_first(self, local: Callable[[], Any], first: Callable[[], Any]) -> Any:
        """What `first` gives on rank 0, on all ranks, after `local` has succeeded on each."""
        with _one_failure():
            return self._steps.all_reduce("plan", lambda: local() and None, lambda _: first())

    def gathered(self, value: Any) -> list[Any]:
        """The values of all ranks, in rank order, on each. Fails where one cannot be sent."""
        if self._steps.size == 1:
            return [value]
        with _one_failure():
            return self._steps.all_gather("plan", value)

    def any_of(self, here: bool) -> bool:
        """True on all ranks where it is on one."""
        return self._steps.any(here)


@contextlib.contextmanager
def _one_failure() -> Iterator[None]:
    try:
        yield
    except CheckpointError as e:
        raise _of_lowest(e) from e


def _of_lowest(error: CheckpointError) -> BaseException:
    rank, (cause, _) = min(error.failures.items())
    if not isinstance(cause, ShardwrightError):
        return error
    cause.details.setdefault("rank", str(rank))
    return cause
