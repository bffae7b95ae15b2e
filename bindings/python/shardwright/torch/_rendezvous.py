# SPDX-License-Identifier: Apache-2.0
"""Rendezvous: how the ranks of a group agree on a new id through a store.

A store may outlive processes: after a restart it can hold what earlier ones wrote. So every rank shows a nonce that
nobody used before, and rank 0 replies to that nonce; what is older gets no reply.
"""
from __future__ import annotations

import datetime
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch.distributed as dist

from ..errors import DeadlineExceededError

_SLICE_SECONDS = 0.5
_PAUSE_MAX_SECONDS = 0.05


def rendezvous(store: Any, place: str, rank: int, size: int, seconds: float, offer: str = "",
               decide: Callable[[Mapping[int, str]], str] = lambda _: "") -> tuple[str, str]:
    """Collective: the id of this rendezvous, and what rank 0 decides of the offers of all. Raises DeadlineExceededError
    where ranks did not come."""
    until = time.monotonic() + seconds
    if rank != 0:
        agreed = _join(store, place, rank, offer, seconds, until)
    else:
        agreed = _host(store, place, size, seconds, until, lambda offers: decide({0: offer} | offers))
    nonce, _, decision = agreed.partition(" ")
    return nonce, decision


def _join(store: Any, place: str, rank: int, offer: str, seconds: float, until: float) -> str:
    nonce = secrets.token_hex(8)
    reply = f"{place}/to/{nonce}"
    store.set(f"{place}/{rank}", f"{nonce} {offer}")
    try:
        while not _arrives(store, reply, until):
            if time.monotonic() >= until:
                raise DeadlineExceededError(f"rank {rank}: rank 0 did not begin the call within {seconds:g} s",
                                            {"rank": str(rank)})
        agreed: str = store.get(reply).decode()
        store.delete_key(reply)
        return agreed
    finally:
        store.set(f"{place}/{rank}", "")  # rank 0 reads this as: it has the id, or has gone


def _arrives(store: Any, key: str, until: float) -> bool:
    """Waits for one slice, so that a signal is seen."""
    span = max(0.001, min(_SLICE_SECONDS, until - time.monotonic()))
    try:
        store.wait([key], datetime.timedelta(seconds=span))
    except dist.DistStoreError:
        return False
    return True


def _host(store: Any, place: str, size: int, seconds: float, until: float,
          decide: Callable[[dict[int, str]], str]) -> str:
    nonce, replied = secrets.token_hex(8), {rank: "" for rank in range(1, size)}
    agreed = f"{nonce} {decide({})}" if size == 1 else ""
    waiting, all_came, pause = set(replied), False, 0.001
    while waiting:
        shown = {rank: _shown_by(store, place, rank) for rank in waiting}
        if not all_came and all(shown.values()):
            all_came = True
            agreed = f"{nonce} {decide({rank: each.partition(' ')[2] for rank, each in shown.items()})}"
        if all_came:
            _reply(store, place, agreed, shown, replied)
            waiting = {rank for rank in waiting if shown[rank]}
        if waiting and time.monotonic() >= until:
            missing = [rank for rank in sorted(waiting) if not shown[rank]] or sorted(waiting)
            raise DeadlineExceededError(f"rank 0: ranks {missing} did not begin the call within {seconds:g} s",
                                        {"rank": "0"})
        time.sleep(pause)
        pause = min(2 * pause, _PAUSE_MAX_SECONDS)
    return agreed


def _reply(store: Any, place: str, agreed: str, shown: dict[int, str], replied: dict[int, str]) -> None:
    """To every nonce that is new: a rank that was restarted shows another one than the process before it."""
    for rank, each in shown.items():
        if each and replied[rank] != each:
            store.set(f"{place}/to/{each.partition(' ')[0]}", agreed)
            replied[rank] = each


def _shown_by(store: Any, place: str, rank: int) -> str:
    key = f"{place}/{rank}"  # never deleted, so that get cannot block
    return str(store.get(key).decode()) if store.check([key]) else ""
