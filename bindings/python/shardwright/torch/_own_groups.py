# SPDX-License-Identifier: Apache-2.0
"""Process groups that only their own ranks make.

dist.new_group and DeviceMesh want every rank of the world, also those that are not in the group: ranks that train while others
do something else would wait for them. Here the ranks of a group meet in the store of torch.distributed and nobody else is asked.
"""
from __future__ import annotations

import datetime
import hashlib
import weakref
from collections.abc import Sequence

import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

from ..errors import UnavailableError
from ._rendezvous import rendezvous
from ._side import DEFAULT_SECONDS, default_store

_PREFIX = "shardwright/"
_made: weakref.WeakKeyDictionary[dist.ProcessGroup, dict[tuple[int, ...], dist.ProcessGroup]] = weakref.WeakKeyDictionary()


def group_of(ranks: Sequence[int], seconds: float | None = None) -> dist.ProcessGroup:
    """The Gloo group of these global ranks in this order, with this rank among them. The first call with them is collective over
    them, later ones give the same group. UnavailableError where they do not meet."""
    known = _made.setdefault(c10d._get_default_group(), {})
    key = tuple(ranks)
    if key not in known:
        known[key] = _new_group(key, DEFAULT_SECONDS if seconds is None else seconds)
    return known[key]


def is_own(group: dist.ProcessGroup) -> bool:
    """Whether it was made here."""
    return group.group_name.startswith(_PREFIX)


def _new_group(ranks: tuple[int, ...], seconds: float) -> dist.ProcessGroup:
    rank = ranks.index(dist.get_rank())
    place = f"shardwright/ranks/{hashlib.sha256(repr(ranks).encode()).hexdigest()[:32]}"
    try:
        # Not the name of any group before it, also not of one of an earlier life of this job.
        number, _ = rendezvous(default_store(), place, rank, len(ranks), seconds)
        # new_group without its first step, which counts calls that other ranks did not make, and its last one, where all meet.
        made, _ = c10d._new_process_group_helper(len(ranks), rank, list(ranks), "gloo", c10d._get_default_store(),
                                                 dist.GroupName(f"{_PREFIX}{number}"),
                                                 timeout=datetime.timedelta(seconds=seconds))
    except dist.DistError as e:
        raise UnavailableError(f"rank {dist.get_rank()}: no process group of the ranks {list(ranks)} could be made: {e}",
                               retryable=True) from e
    assert isinstance(made, dist.ProcessGroup)
    c10d._world.pg_group_ranks[made] = {each: number for number, each in enumerate(ranks)}
    return made
