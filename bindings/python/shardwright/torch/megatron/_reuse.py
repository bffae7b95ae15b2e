# SPDX-License-Identifier: Apache-2.0
"""Plans of an earlier save that a host gives to a later one, as Megatron's strategies do with `cached_metadata`: is the
state still described as the one that such a plan was made for?

What a rank writes may be less than what it describes, where others write its replicas. So a plan's list notes the digest of
the description behind it; for an equal plan that comes anew from the coordinator, the last ones of this process are known.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from torch.distributed.checkpoint.planner import SavePlan, WriteItem

from ..planner import _engine
from ..planner._cache import _Recent
from ..planner._items import _Items as Items
from ..planner._items import plan_of_items
from ..planner._save import create_default_local_save_plan
from .errors import ChangedStateError, failure

_NAMES_MAX = 5
_ADVICE = ("nothing was written by this rank; let all ranks plan anew, with a new save strategy, or with "
           "cached_central_plan, cached_local_plan and cached_global_metadata None and validated_cache_reuse False, "
           "and save again")
_descriptions: _Recent[bytes] = _Recent()


def _digest(plan: SavePlan) -> bytes | None:
    """16 bytes that name the items; None where columns cannot hold them."""
    buffer = plan_of_items(plan.items)
    return None if buffer is None else _engine.digest(buffer)


def remember(plan: SavePlan, described: SavePlan) -> None:
    """Notes that `plan` is what this rank writes where it holds what `described` says."""
    held = _digest(described)
    if held is None:
        return
    if plan.items is not described.items:
        written = _digest(plan)
        if written is not None and written != held:
            _descriptions.put(written, held)
    _note(plan, held)


def check(plan: SavePlan, state_dict: dict[str, Any]) -> None:
    """Raises ChangedStateError where the state is not described as that for which `plan` was made. Values are no part of
    a description."""
    described = create_default_local_save_plan(state_dict, False)
    held, noted = _digest(described), getattr(plan.items, "made_for", None)
    if held is not None and (noted == held if noted is not None else _known(plan, held)):
        _note(plan, held)
        return
    changes = _changes(_by_name(plan.items), _by_name(described.items))
    if changes:
        raise failure(ChangedStateError, "this save uses the plan of an earlier one again, and what this rank holds has "
                      f"changed since: {', '.join(changes[:_NAMES_MAX])}{' ...' * (len(changes) > _NAMES_MAX)}; {_ADVICE}")


def _note(plan: SavePlan, held: bytes) -> None:
    if isinstance(plan.items, Items):
        plan.items.made_for = held


def _known(plan: SavePlan, held: bytes) -> bool:
    written = _digest(plan)
    return written is not None and held in (written, _descriptions.get(written))


def _by_name(items: Iterable[WriteItem]) -> dict[str, list[WriteItem]]:
    found: dict[str, list[WriteItem]] = defaultdict(list)
    for item in items:
        found[item.index.fqn].append(item)
    return {name: sorted(held, key=lambda item: item.index.offset or ()) for name, held in found.items()}


def _changes(before: dict[str, list[WriteItem]], now: dict[str, list[WriteItem]]) -> list[str]:
    """What differs, in words. The order of items is no difference."""
    return [f"{name} is {'gone' if name not in now else 'new' if name not in before else 'described otherwise'}"
            for name in {**before, **now} if before.get(name) != now.get(name)]
