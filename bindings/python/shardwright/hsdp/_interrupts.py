# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C in calls that wait for other ranks. The main thread is in C then, where no handler of Python runs: a thread beside it
hears of the signal and ends what the call waits for, so that the call returns and KeyboardInterrupt comes out of it."""
from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

from ..errors import ShardwrightError


def waiting(give_up: Callable[[], None], call: Callable[..., Any], *args: Any) -> Any:
    """What `call(*args)` gives. SIGINT that is to raise KeyboardInterrupt runs `give_up` on another thread, if this is the main
    one; other signals, and handlers of the host, come after the call."""
    if threading.get_ident() != threading.main_thread().ident:  # no handler runs here
        return call(*args)
    watch = _watch()
    if watch.give_up is not None:  # code of the host that a call runs
        return call(*args)
    try:
        return _armed(watch, give_up, call, args)
    except KeyboardInterrupt:  # also one that came just before or after the call
        give_up()
        raise
    except ShardwrightError as error:
        if watch.gave_up:  # a transport in Python ran meanwhile, and has swallowed what the handler raised
            raise KeyboardInterrupt from error
        raise


def _armed(watch: _Watch, give_up: Callable[[], None], call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        watch.gave_up, watch.give_up = False, give_up
        watch.forward_to(signal.set_wakeup_fd(watch.end, warn_on_full_buffer=False))
        return call(*args)
    finally:
        watch.give_up = None
        signal.set_wakeup_fd(watch.next)


class _Watch:
    """The thread, and the pipe into which the interpreter writes the numbers of signals."""

    def __init__(self) -> None:
        self._begin, self.end = os.pipe()
        os.set_blocking(self.end, False)
        self.give_up: Callable[[], None] | None = None
        self.gave_up = False  # in this call
        self.next = -1  # where numbers went before, as of an event loop
        threading.Thread(target=self._listen, name="shardwright-interrupts", daemon=True).start()

    def forward_to(self, before: int) -> None:
        """Where numbers go on to."""
        if before != self.end:  # a signal in `waiting` itself left it there
            self.next = before

    def _listen(self) -> None:
        while True:
            numbers = os.read(self._begin, 512)
            if self.next >= 0:
                with contextlib.suppress(OSError):
                    os.write(self.next, numbers)
            give_up = self.give_up
            if give_up is not None and signal.SIGINT in numbers:
                if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                    self.gave_up = True
                    give_up()


_current: _Watch | None = None


def _watch() -> _Watch:
    global _current
    if _current is None:
        _current = _Watch()
    return _current


def _forget() -> None:
    """In a child: the thread is not there, and the pipe is that of the parent."""
    global _current
    _current = None


os.register_at_fork(after_in_child=_forget)
