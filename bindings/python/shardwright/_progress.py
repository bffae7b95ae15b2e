# SPDX-License-Identifier: Apache-2.0
"""What a call or job tells of its progress, at most ten times a second: to a function, or to a bar as tqdm makes them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from ._library import native
from .errors import InvalidArgumentError

INTERVAL_SECONDS = 0.1
STATES = ("queued", "running", "staged", "succeeded", "failed", "cancelled")


class Progress(NamedTuple):
    """How far a job is; bytes, items and seconds never go down."""

    state: str
    stage: str
    bytes_done: int
    bytes_total: int
    items_done: int
    items_total: int
    seconds: float


class ProgressBar(Protocol):
    """What a bar must have: `total` is set to the bytes that the call moves, and update told of those done. tqdm bars do."""

    total: Any

    def update(self, n: int, /) -> Any:
        """Takes the number of bytes since the last time."""


Listener = Callable[[Progress], object] | ProgressBar


def progress_of(job: Any) -> Progress:
    """A snapshot of a native job."""
    found = native.shw_job_progress(job)
    return Progress(STATES[found.state], found.stage, found.bytes_done, found.bytes_total, found.items_done,
                    found.items_total, found.elapsed_ns / 1e9)


class Display:
    """Tells a listener: a function of Progress, a bar, or a class of bars such as tqdm itself, of which one is made and closed.
    InvalidArgumentError for anything else."""

    def __init__(self, listener: Any) -> None:
        made = isinstance(listener, type) and hasattr(listener, "update")
        self._bar: Any = listener(unit="B", unit_scale=True) if made else listener if hasattr(listener, "update") else None
        self._made = made
        self._tell = listener
        self._shown = 0
        if self._bar is None and not callable(listener):
            raise InvalidArgumentError(f"progress is {listener!r}; it must be a function of one argument, or a bar that has "
                                       "total and update, as those of tqdm", {"parameter": "progress"})

    def show(self, progress: Progress) -> None:
        """Tells how far the call is; what the listener raises comes out."""
        if self._bar is None:
            self._tell(progress)
            return
        self._bar.total = progress.bytes_total
        if hasattr(self._bar, "set_postfix_str"):
            self._bar.set_postfix_str(progress.stage, refresh=False)
        self._bar.update(progress.bytes_done - self._shown)
        self._shown = progress.bytes_done

    def close(self) -> None:
        """Draws the last state of a bar, which otherwise skips what follows soon, and closes one that was made here."""
        if self._made:
            self._bar.close()
        elif hasattr(self._bar, "refresh"):
            self._bar.refresh()
