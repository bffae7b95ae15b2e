# SPDX-License-Identifier: Apache-2.0
"""Plans of an earlier save that a host gives to a later one, as Megatron's strategies do with `cached_metadata`: is the
state still described as the one that such a plan was made for?

What a rank writes may be less than what it describes, where others write its replicas. So a plan's list notes the digest of
the description behind it; for an equal plan that comes anew from the coordinator, the last ones of this process are known.
"""
from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence

from torch.distributed.checkpoint.planner import SavePlan, WriteItem

from ..dcp.planner._cache import _Recent
from ..dcp.planner._items import _Items as Items
from ..dcp.planner._items import described as described_items
from .errors import ChangedStateError, failure

_NAMES_MAX = 5
_ADVICE = ("nothing was written by this rank; let all ranks plan anew, with a new save strategy, or with "
           "cached_central_plan, cached_local_plan and cached_global_metadata None and validated_cache_reuse False, "
           "and save again")
_descriptions: _Recent[bytes] = _Recent()
_Named = dict[str, list[WriteItem]]
_whole: deque[tuple[_Named, _Named]] = deque(maxlen=2)  # (share, description) where no digest names the items


def _digest(plan: SavePlan) -> bytes | None:
    """16 bytes that name the items; None where columns cannot hold them."""
    found = described_items(plan.items)
    return None if found is None else found.digest


def remember(plan: SavePlan, described: SavePlan) -> None:
    """Notes that `plan` is what this rank writes where it holds what `described` says."""
    if plan.items is described.items:
        _note(plan, _digest(described))
        return
    held, written = _digest(described), _digest(plan)
    if held is None or written is None:
        _whole.append((_by_name(plan.items), _by_name(described.items)))
    elif written != held:
        _descriptions.put(written, held)
    _note(plan, held)


def check(plan: SavePlan, now: Sequence[SavePlan]) -> None:
    """Raises ChangedStateError where the state, in none of the ways `now` to describe it, is what `plan` was made for.
    Values and paths are no part of a description."""
    changes: list[str] = []
    for described in now:
        if _is_made_for(plan, described):
            return
        changes = _changes(_by_name(plan.items), _by_name(described.items))
        if not changes:
            return
    if changes:
        raise failure(ChangedStateError, "this save uses the plan of an earlier one again, and what this rank holds has "
                      f"changed since: {', '.join(changes[:_NAMES_MAX])}{' ...' * (len(changes) > _NAMES_MAX)}; {_ADVICE}")


def _is_made_for(plan: SavePlan, described: SavePlan) -> bool:
    held, noted = _digest(described), getattr(plan.items, "made_for", None)
    if held is None:
        return bool(_whole) and (_by_name(plan.items), _by_name(described.items)) in _whole
    if noted is not None:
        return bool(noted == held)
    written = _digest(plan)
    if written is None or held not in (written, _descriptions.get(written)):
        return False
    _note(plan, held)
    return True


def _note(plan: SavePlan, held: bytes | None) -> None:
    if held is not None and isinstance(plan.items, Items):
        plan.items.made_for = held


def _by_name(items: Iterable[WriteItem]) -> _Named:
    found: dict[str, list[WriteItem]] = defaultdict(list)
    for item in items:
        found[item.index.fqn].append(item)
    return {name: sorted(held, key=lambda item: item.index.offset or ()) for name, held in found.items()}


def _changes(before: _Named, now: _Named) -> list[str]:
    """What differs, in words. The order of items is no difference."""
    return [f"{name} is {'gone' if name not in now else 'new' if name not in before else 'described otherwise'}"
            for name in {**before, **now} if before.get(name) != now.get(name)]
