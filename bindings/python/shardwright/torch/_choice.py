# SPDX-License-Identifier: Apache-2.0
"""Which collective carries the calls over a process group: that of the plugin (c10d), or its stand-in in Python.

All ranks of a group must use the same, so they agree when the first call uses the group: the plugin where every rank can
load it. SHW_TORCH_COLLECTIVE says "c10d" (calls fail where a rank cannot), "python", or "auto": then ranks that all run on
one machine meet over that collective, and go on in memory.
"""
from __future__ import annotations

import json
import os
import weakref
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch.distributed as dist

from .._log import logger
from ..collective import Collective, CustomCollective, NodeCollective
from ..errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from ..hsdp import Communicator, over
from . import _c10d
from ._groups import GroupTransport
from ._rendezvous import rendezvous
from ._side import DEFAULT_SECONDS, default_store, is_over, name_of
from ._waiting import interruptible

ENVIRONMENT = "SHW_TORCH_COLLECTIVE"
_WANTED = ("auto", "c10d", "python")


class CollectiveChoice(NamedTuple):
    """What the ranks of a process group agreed on: `kind` is "c10d" or "python", and `reason` says why it is not "c10d".
    `in_memory`: ranks that all run on one machine only meet over it, and go on in memory."""

    kind: str
    reason: str
    in_memory: bool


_choices: weakref.WeakKeyDictionary[dist.ProcessGroup, CollectiveChoice] = weakref.WeakKeyDictionary()
_logged: set[str] = set()


def collective_choice(group: dist.ProcessGroup, seconds: float | None = None) -> CollectiveChoice:
    """Collective at the first call for a group. FailedPreconditionError on all ranks where one insists on what another
    cannot; InvalidArgumentError on all for a wrong word in the environment of one."""
    known = _choices.get(group)
    if known is None:
        known = _choices[group] = _agreed(group, DEFAULT_SECONDS if seconds is None else seconds)
        if known.reason and known.reason not in _logged:
            _logged.add(known.reason)
            logger.warning("calls go through Python instead of libshardwright_torch.so: %s", known.reason)
    return known


def collective_over(group: dist.ProcessGroup, use: str, seconds: float | None, *,
                    renew: bool = False) -> tuple[Collective, Callable[[], bool]]:
    """This rank's end for one call, and a function that tells whether another rank gave the group up before this call
    began. `renew`: of the stand-in in Python; the plugin finds out by itself."""
    if collective_choice(group, seconds).kind == "c10d":
        return _c10d.open_collective(group, use, seconds), lambda: False
    transport = GroupTransport(group, use, seconds, renew=renew)
    return CustomCollective(transport), lambda: transport.missed_the_end


def meet(group: dist.ProcessGroup, end: Collective, seconds: float | None) -> Collective:
    """Collective over `end`, which is used through what is returned from then on."""
    choice = collective_choice(group, seconds)
    if not choice.in_memory:
        return end
    if choice.kind == "python":  # its waits are cut into slices
        return NodeCollective(end, seconds)
    made: Collective = interruptible(lambda: NodeCollective(end, seconds), lambda: end.abort("the call was interrupted"))
    return made


def communicator_over(group: dist.ProcessGroup, use: str, seconds: float | None) -> Communicator:
    """This rank's end for tensors: in memory where ranks meet there, else the plugin's, which moves bytes between sockets and
    tensors, else over the stand-in in Python. Collective."""
    choice = collective_choice(group, seconds)
    if choice.kind == "c10d" and not choice.in_memory:
        return _c10d.open_communicator(group, use, seconds)
    end, _ = collective_over(group, use, seconds)
    return over(meet(group, end, seconds))


def must_renew(group: dist.ProcessGroup, use: str, end: Collective) -> bool:
    """Collective over `end`: whether some rank knows that the group of that use has ended."""
    if collective_choice(group).kind == "c10d":
        return False
    return end.all_reduce_i64([is_over(group, use)], "max")[0] == 1


def _agreed(group: dist.ProcessGroup, seconds: float) -> CollectiveChoice:
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    wanted = os.environ.get(ENVIRONMENT, "") or "auto"
    against = "" if wanted == "python" else _c10d.problem() or _c10d.problem_with(group)
    offer = json.dumps({"wanted": wanted, "against": against})
    try:
        _, decision = rendezvous(default_store(), f"shardwright/choice/{name_of(group)}", rank, size, seconds, offer, _decide)
    except dist.DistError as e:
        raise UnavailableError(f"rank {rank}: the ranks cannot agree on a collective: {e}", retryable=True) from e
    decided = json.loads(decision)
    if decided["error"]:
        kind = InvalidArgumentError if decided["is_wrong"] else FailedPreconditionError
        raise kind(decided["error"], {"rank": str(decided["rank"])})
    return CollectiveChoice(decided["kind"], decided["reason"], decided["in_memory"])


def _decide(offers: Mapping[int, str]) -> str:
    """On rank 0: what follows from the offers of all."""
    given = {rank: json.loads(offer) for rank, offer in sorted(offers.items())}

    def first(holds: Callable[[dict[str, Any]], bool]) -> int | None:
        return next((rank for rank, each in given.items() if holds(each)), None)

    wrong = first(lambda each: each["wanted"] not in _WANTED)
    python = first(lambda each: each["wanted"] == "python")
    insists = first(lambda each: each["wanted"] == "c10d")
    cannot = first(lambda each: bool(each["against"]))
    decided = {"kind": "c10d", "reason": "", "error": "", "is_wrong": wrong is not None, "rank": wrong,
               "in_memory": all(each["wanted"] == "auto" for each in given.values())}
    if wrong is not None:
        decided["error"] = (f"rank {wrong}: {ENVIRONMENT} is {given[wrong]['wanted']!r}, not one of {', '.join(_WANTED)}")
    elif python is not None or cannot is not None:
        why = (f"{ENVIRONMENT} is python on rank {python}" if python is not None
               else f"rank {cannot}: {given[cannot]['against']}")  # type: ignore[index]
        decided |= {"kind": "python", "reason": why}
        if insists is not None:
            decided |= {"error": f"{ENVIRONMENT} is c10d on rank {insists}, which cannot be: {why}", "rank": insists}
    return json.dumps(decided)
