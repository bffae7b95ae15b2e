# SPDX-License-Identifier: Apache-2.0
"""The greedy choice of owners, by the planning engine: preset megatron, owner exact."""
from __future__ import annotations

import itertools
from array import array
from collections.abc import Sequence

from ... import planning
from ...errors import InvalidArgumentError

_BYTES_MAX = 2**63 - 1


def choose_owners(holder_sets: Sequence[tuple[int, ...]], set_of: Sequence[int], sizes: Sequence[int],
                  secondary: Sequence[bool], num_ranks: int) -> list[int]:
    """The holder of each shard with the fewest bytes so far, ties to the lowest rank.

    Args:
        holder_sets: distinct sets of ranks, ascending.
        set_of: number of the holder set of each shard; shards stand in the order of the choice.
        sizes: bytes of each shard.
        secondary: whether a shard is chosen after all others.
    Raises:
        InvalidArgumentError: negative sizes, or sizes whose sum the engine cannot hold.
    """
    if not set_of:
        return []
    if min(sizes) < 0 or sum(sizes) > _BYTES_MAX:
        raise InvalidArgumentError(f"sizes go from {min(sizes)} to {max(sizes)} bytes", {"parameter": "shard_to_size"})
    ends = itertools.accumulate(map(len, holder_sets), initial=0)
    return planning.owners(array("Q", sizes), array("I", set_of), array("Q", ends),
                           array("i", itertools.chain.from_iterable(holder_sets)), num_ranks,
                           secondary=bytes(secondary)).tolist()
