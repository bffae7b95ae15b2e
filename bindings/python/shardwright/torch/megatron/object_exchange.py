# SPDX-License-Identifier: Apache-2.0
"""ShardedObjects that their main replicas have read, to the ranks that want them. A value that nobody else wants stays."""
from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch.distributed as dist

from ._agreement import Ranks
from .distribution import ObjectId
from .errors import CheckpointingException, failure


def exchange_loaded_objects(loaded: Mapping[ObjectId, Any], wanted: Collection[ObjectId],
                            group: dist.ProcessGroup | None = None) -> dict[ObjectId, Any]:
    """The values of the wanted objects, each from the lowest rank that has loaded it. Collective; None = the default group.

    Raises:
        CheckpointingException on all ranks: no rank has loaded one of them.
    """
    ranks = Ranks(group)
    everyone: list[tuple[list[ObjectId], list[ObjectId]]] = ranks.gathered((list(wanted), list(loaded)))
    asked = {name for names, _ in everyone for name in names}
    if not asked:
        return {}
    owners: dict[ObjectId, int] = {}
    for rank, (_, names) in enumerate(everyone):
        for name in names:
            owners.setdefault(name, rank)
    missing = sorted(asked - set(owners), key=str)
    if missing:
        raise failure(CheckpointingException, f"Missing object shards after fully parallel loading: {missing[:5]}", key=missing[0][0])
    rank = dist.get_rank(group)
    values: dict[ObjectId, Any] = {}
    for sent in ranks.gathered({name: loaded[name] for name in asked if owners[name] == rank}):
        values.update(sent)
    return {name: values[name] for name in wanted}
