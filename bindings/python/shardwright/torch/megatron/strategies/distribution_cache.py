# SPDX-License-Identifier: Apache-2.0
"""A distribution kept between calls, in memory or in a file, as long as no rank of the group has changed what it holds.

The file `pg_dist_{LOWEST GLOBAL RANK}.json` of a group holds a digest of each rank beside the owners, so one that was made for
another state or another group is planned anew, never used:

    {"version": 1, "digests": [HEX, ...], "shards": [[KEY, OFFSET, RANGE or null, OWNER or null, HOLDERS], ...]}

OWNER null and HOLDERS []: a shard that this group does not save.
"""
from __future__ import annotations

import json
import logging
from typing import Any

import torch.distributed as dist

from ....errors import ShardwrightError
from .._agreement import Ranks
from .._directory import Directory
from .._exchange import group_rank, group_size
from ..distribution import (ShardDistribution, ShardId, content_digest, determine_main_replica_uniform_distribution, has_elements,
                            shard_id_of)
from ..kinds import is_sharded_tensor
from ..trees import nested_values

logger = logging.getLogger(__name__)
_VERSION = 1


class DistributionCache:
    """The distribution of a group, as `of` gives it.

    Args:
        group: ranks; None = the default group.
        loading: also distribute shards whose main replica no rank of the group has.
        keep: use the distribution of the call before where nothing has changed.
        folder: where distributions lie as files; None = nowhere.
        create: write the file; otherwise it is read where it fits.
    """

    def __init__(self, group: dist.ProcessGroup | None, loading: bool, keep: bool, folder: Any = None,
                 create: bool = False) -> None:
        self._group, self._loading, self._keep, self._folder, self._create = group, loading, keep, folder, create
        self._digest = b""
        self.kept: ShardDistribution | None = None
        self.is_new = False  # whether the last call has planned

    def of(self, sharded_state_dict: Any) -> ShardDistribution | None:
        """The distribution of a state; None for a group of one rank. Collective in the group."""
        self.is_new = False
        if group_size(self._group) <= 1:
            return None
        if not self._keep and self._folder is None:
            return self._planned(sharded_state_dict)
        ranks = Ranks(self._group)
        digest = ranks.together(lambda: content_digest(sharded_state_dict))
        if self._keep and not ranks.any_of(self.kept is None or digest != self._digest):
            return self.kept
        found = None if self._folder is None or self._create else self._read(sharded_state_dict, digest, ranks)
        if found is None:
            found = self._planned(sharded_state_dict)
            if self._folder is not None and self._create and found is not None:
                self._write(found, digest, ranks)
        self.kept, self._digest = (found, digest) if self._keep else (None, b"")
        return found

    def _planned(self, sharded_state_dict: Any) -> ShardDistribution | None:
        self.is_new = True
        return determine_main_replica_uniform_distribution(sharded_state_dict, self._group, self._loading)

    @property
    def _name(self) -> str:
        lowest = 0 if self._group is None else min(dist.get_process_group_ranks(self._group))
        return f"pg_dist_{lowest}.json"

    def _write(self, distribution: ShardDistribution, digest: bytes, ranks: Ranks) -> None:
        digests = [each.hex() for each in ranks.gathered(digest)]
        rows = [[*shard, distribution.main_rank_for_shard.get(shard), distribution.all_ranks_for_shard.get(shard, [])]
                for shard in distribution.shard_to_metadata]
        content = json.dumps({"version": _VERSION, "loading": self._loading, "digests": digests, "shards": rows}).encode()
        ranks.from_first(lambda: None, lambda: Directory(self._folder).replace(self._name, content))

    def _read(self, sharded_state_dict: Any, digest: bytes, ranks: Ranks) -> ShardDistribution | None:
        """What the file says, where it was made for what all ranks of the group hold now."""
        content = ranks.from_first(lambda: None, lambda: self._content())
        said = _parsed(content)
        ours = said is not None and said["loading"] == self._loading and len(said["digests"]) == group_size(self._group)
        fits = ours and said is not None and said["digests"][group_rank(self._group)] == digest.hex()
        if ranks.any_of(not fits):
            if content is not None:
                logger.warning("%s of %s was made for another state or other ranks; the distribution is planned anew", self._name,
                               self._folder)
            return None
        assert said is not None, "it fits"
        return _restored(said, sharded_state_dict, self._loading)

    def _content(self) -> bytes | None:
        try:
            return Directory(self._folder).read(self._name)
        except (OSError, ShardwrightError):
            return None


def _parsed(content: bytes | None) -> dict[str, Any] | None:
    try:
        said = json.loads(content or b"")
        if said["version"] == _VERSION and isinstance(said["digests"], list) and isinstance(said["shards"], list):
            return {"loading": said.get("loading"), "digests": said["digests"], "shards": [_row(*row) for row in said["shards"]]}
    except (ValueError, TypeError, KeyError):
        pass  # not a file of ours
    return None


def _row(key: str, offset: list[int], flat: list[int] | None, owner: int | None,
         holders: list[int]) -> tuple[ShardId, int | None, list[int]]:
    return (key, tuple(offset), None if flat is None else (flat[0], flat[1])), owner, holders


def _restored(said: dict[str, Any], sharded_state_dict: Any, loading: bool) -> ShardDistribution:
    """Descriptions are those of this rank, which are all that it needs."""
    mine = {shard_id_of(leaf): leaf for leaf in nested_values(sharded_state_dict) if is_sharded_tensor(leaf) and has_elements(leaf)}
    owned = [row for row in said["shards"] if row[1] is not None]
    made = ShardDistribution({shard: owner for shard, owner, _ in owned}, {shard for shard, _, _ in owned}, mine,
                             {shard: holders for shard, _, holders in owned})
    made.loading = loading
    return made
