# SPDX-License-Identifier: Apache-2.0
"""Whether the ranks of a save describe one checkpoint. What has not changed since it was proved costs some bytes per rank."""
from __future__ import annotations

import hashlib
import logging
import pickle
from collections.abc import Callable
from typing import Any

import torch.distributed as dist

from ._agreement import from_first, gathered, together
from ._exchange import group_rank, group_size
from .trees import dict_list_map_outplace, diff, nested_values
from .validation import determine_global_metadata, validate_sharding_integrity

logger = logging.getLogger(__name__)

# What this rank described when all ranks were proved last, and the group of which they were all.
_proved: tuple[Any, bytes] | None = None


def prove(sharded_state_dict: Any) -> None:
    """Proves that the main replicas of all ranks of the default group make whole tensors and grids. Collective. Descriptions
    travel when one of them has changed since the last proof.

    Raises:
        ShardingError on all ranks, the same one.
    """
    global _proved
    digest = together(lambda: _digest([repr(leaf.without_data()) for leaf in nested_values(sharded_state_dict)]))
    group = dist.group.WORLD if dist.is_available() and dist.is_initialized() else None
    is_known = _proved is not None and _proved[0] is group and _proved[1] == digest
    if all(gathered(is_known)):
        return
    _proved = None
    validate_sharding_integrity(determine_global_metadata(sharded_state_dict)[1])
    _proved = (group, digest)


def _digest(value: Any) -> bytes:
    return hashlib.blake2b(pickle.dumps(value), digest_size=16).digest()


def compare_common_states(common: Any, preprocess: Callable[[Any], Any] | None) -> None:
    """Warns on each rank whose common state is not that of rank 0, and says where. Collective. States travel where their
    pickles differ.

    Args:
        preprocess: called with a copy of the tree; what it gives is compared.
    """
    if group_size(None) == 1:
        return

    def compared() -> Any:
        copied = dict_list_map_outplace(lambda leaf: leaf, common)
        return copied if preprocess is None else preprocess(copied)

    mine, digest = together(lambda: (found := compared(), _digest(found)))
    if len(set(gathered(digest))) == 1:
        return
    first = from_first(lambda: None, lambda: mine)
    rank = group_rank(None)
    left, right, mismatch = diff(first, mine) if rank else ([], [], [])
    if left or right or mismatch:
        logger.warning("Rank %d common state dict differs from rank 0 common state dict. Keys only on rank 0: %s, Keys only on "
                       "%d: %s, Mismatched keys: %s", rank, left, rank, right, mismatch)
