# SPDX-License-Identifier: Apache-2.0
"""Whether the ranks of a save describe one checkpoint. What has not changed since it was proved costs some bytes per rank."""
from __future__ import annotations

import hashlib
import logging
import pickle
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch.distributed as dist

from ._agreement import Ranks
from ._exchange import group_rank, group_size
from .trees import dict_list_map_outplace, diff, nested_values
from .validation import described_on_all, validate_sharding_integrity

logger = logging.getLogger(__name__)

_PROOFS_MAX = 8  # a state has one description as it is given and one as a wrapper shares it out


class _Proofs:
    """What this rank described in the last proofs of the default group. All ranks make the same proofs in the same order, so
    what each of them described in the proof of one number is what was proved together."""

    def __init__(self) -> None:
        self._group: Any = None
        self._numbers: OrderedDict[bytes, int] = OrderedDict()
        self._count = 0

    def meet(self) -> None:
        """Forgets the proofs of another default group."""
        group = dist.group.WORLD if dist.is_available() and dist.is_initialized() else None
        known = None if self._group is None else self._group()
        if group is None or known is not group:
            self._numbers.clear()
        self._group = None if group is None else weakref.ref(group)

    def number_of(self, digest: bytes) -> int:
        """The proof in which this rank described that; 0 = none."""
        return self._numbers.get(digest, 0)

    def add(self, digest: bytes) -> None:
        """Notes a proof that held on all ranks."""
        self._count += 1
        self._numbers[digest] = self._count
        self._numbers.move_to_end(digest)
        if len(self._numbers) > _PROOFS_MAX:
            self._numbers.popitem(last=False)


_proofs = _Proofs()


def prove(sharded_state_dict: Any, ranks: Ranks) -> None:
    """Proves that the main replicas of all ranks make whole tensors and grids. Collective; `ranks`: those of the
    default group. Descriptions travel when one of them has changed since they were proved together.

    Raises:
        ShardingError on all ranks, the same one.
    """
    digest = ranks.together(lambda: _digest([repr(leaf.without_data()) for leaf in nested_values(sharded_state_dict)]))
    _proofs.meet()
    numbers = set(ranks.gathered(_proofs.number_of(digest)))
    if len(numbers) == 1 and 0 not in numbers:
        return
    validate_sharding_integrity(described_on_all(sharded_state_dict, ranks)[1])
    _proofs.add(digest)


def _digest(value: Any) -> bytes:
    return hashlib.blake2b(pickle.dumps(value), digest_size=16).digest()


def compare_common_states(common: Any, preprocess: Callable[[Any], Any] | None, ranks: Ranks) -> None:
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

    mine, digest = ranks.together(lambda: (found := compared(), _digest(found)))
    if len(set(ranks.gathered(digest))) == 1:
        return
    first = ranks.from_first(lambda: None, lambda: mine)
    rank = group_rank(None)
    left, right, mismatch = diff(first, mine) if rank else ([], [], [])
    if left or right or mismatch:
        logger.warning("Rank %d common state dict differs from rank 0 common state dict. Keys only on rank 0: %s, Keys only on "
                       "%d: %s, Mismatched keys: %s", rank, left, rank, right, mismatch)
