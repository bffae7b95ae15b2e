# SPDX-License-Identifier: Apache-2.0
"""A process beside each rank that saves what it is sent: `async_save` of the kind PROCESS. It has a Gloo group of its own
over the ranks of the save, and an interpreter of its own, so that planning and writing leave that of the trainer alone.

States pass through shared memory. A save that fails leaves the daemon ready for the next; one that dies is replaced then.
"""
from __future__ import annotations

import atexit
import contextlib
import datetime
import os
import socket
from typing import Any

import torch.distributed as dist
import torch._C._distributed_c10d as _c10d
import torch.multiprocessing as mp
from torch.distributed.checkpoint.metadata import Metadata

from ...errors import AbortedError, DeadlineExceededError
from . import _choice
from ._direct import Members
from ._lazy_metadata import LazyMetadata, filler_of
from ._saving import SaveCall, run
from ._steps import Steps, that_travels

_START_SECONDS = 1800.0
_END_SECONDS = 5.0
_READY, _END = "ready", "end"

_daemons: dict[tuple[int, ...], Daemon] = {}


def of(members: Members) -> Daemon:
    """The daemon of this rank. Collective where one has to be started: on all ranks then."""
    group = _choice.group_of(members)
    ranks = () if group is None else tuple(dist.get_process_group_ranks(group))
    steps = Steps(group)
    known = _daemons.get(ranks)
    if known is not None and not steps.any(not known.alive):
        return known
    if known is not None:
        known.end()
    daemon = Daemon(steps.rank, steps.size)
    place = steps.all_reduce("start", daemon.place, lambda places: places[0])
    steps.together("start", lambda: daemon.meet(place))
    _daemons[ranks] = daemon
    return daemon


class Daemon:
    """The process of one rank. Used by one thread at a time."""

    def __init__(self, rank: int, size: int) -> None:
        context = mp.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process: Any = context.Process(target=_serve, args=(rank, size, theirs), name="shardwright-save", daemon=True)
        self._process.start()
        theirs.close()  # so that the end of the process is seen as the end of the pipe

    @property
    def alive(self) -> bool:
        """Whether it can take a save."""
        return bool(self._process.is_alive())

    def place(self) -> tuple[str, int]:
        """Where its store can be reached; of use on the first rank."""
        port = int(self._answer(_START_SECONDS))
        return os.environ.get("MASTER_ADDR") or socket.getfqdn(), port

    def meet(self, place: tuple[str, int]) -> None:
        """Lets it meet those of the other ranks."""
        self._pipe.send(place)
        self._answer(_START_SECONDS)

    def save(self, tree: dict[str, Any], call: SaveCall) -> Metadata:
        """Has a state saved; raises what the save raised there."""
        self._pipe.send((tree, call._replace(members=Members(None, call.members.alone))))
        answer = self._answer(None)
        return answer if isinstance(answer, Metadata) else LazyMetadata(answer)

    def _answer(self, seconds: float | None) -> Any:
        try:
            if seconds is not None and not self._pipe.poll(seconds):
                raise DeadlineExceededError(f"the process for background saves did not answer within {seconds:g} s")
            answer = self._pipe.recv()
        except (EOFError, ConnectionError) as e:
            self._process.join(_END_SECONDS)
            raise AbortedError(f"the process for background saves ended with exit code {self._process.exitcode}; the next "
                               "save starts another one", retryable=True) from e
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def end(self) -> None:
        """Ends the process, within seconds."""
        with contextlib.suppress(OSError):
            self._pipe.send(_END)
        self._process.join(_END_SECONDS)
        if self._process.is_alive():
            self._process.terminate()


@atexit.register
def _end_all() -> None:
    for daemon in _daemons.values():
        daemon.end()
    _daemons.clear()


# ---- in the process ----

def _serve(rank: int, size: int, pipe: Any) -> None:
    try:
        begun = _begin(rank, size, pipe)
    except BaseException as e:
        pipe.send(that_travels(e))
        return
    pipe.send(_READY)
    with contextlib.suppress(EOFError):  # the trainer has gone
        while (request := pipe.recv()) != _END:
            pipe.send(_answer_to(*request))
    if begun:
        dist.destroy_process_group()


def _begin(rank: int, size: int, pipe: Any) -> bool:
    """Makes the group of the daemons; False where there is but one."""
    limit = datetime.timedelta(seconds=_START_SECONDS)
    own = _c10d.TCPStore("localhost", 0, None, True, limit, wait_for_workers=False) if rank == 0 else None
    pipe.send(0 if own is None else own.port)
    host, port = pipe.recv()
    if size == 1:
        return False
    store = own or _c10d.TCPStore(host, port, None, False, limit)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    return True


def _answer_to(tree: dict[str, Any], call: SaveCall) -> Any:
    try:
        found = run(tree, call)
        return filler_of(found) if isinstance(found, LazyMetadata) else found
    except BaseException as e:
        return that_travels(e)
