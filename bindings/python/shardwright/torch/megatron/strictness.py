# SPDX-License-Identifier: Apache-2.0
"""What happens to keys that are requested and not stored (unexpected), or stored and requested by no rank (missing).

Objects are compared shard by shard: a missing cell of a grid is named by its unique key, a grid of which every cell is
missing by its key.
"""
from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from ...errors import InvalidArgumentError
from .errors import CheckpointingException, MissingKeyError, failure, require
from .flattening import global_name
from .kinds import is_sharded_base, is_sharded_object
from .trees import extract_matching_values, nested_values
from .validation import validate_sharding_integrity

logger = logging.getLogger(__name__)
COMMON_STATE_KEY = "common_state"


class StrictHandling(Enum):
    """How a load takes mismatches between request and checkpoint."""

    ASSUME_OK_UNEXPECTED = "assume_ok_unexpected"
    LOG_UNEXPECTED = "log_unexpected"
    LOG_ALL = "log_all"
    RAISE_UNEXPECTED = "raise_unexpected"
    RAISE_ALL = "raise_all"
    RETURN_UNEXPECTED = "return_unexpected"
    RETURN_ALL = "return_all"
    IGNORE_ALL = "ignore_all"

    @staticmethod
    def requires_explicit_ckpt_mismatch_check(val: Any) -> bool:
        """Whether the checkpoint's metadata is read before the load. Takes members of megatron-core's enumeration, too."""
        return _ours(val) is not StrictHandling.ASSUME_OK_UNEXPECTED

    @staticmethod
    def requires_global_app_metadata(val: Any) -> bool:
        """Whether the requests of all ranks are needed."""
        return _ours(val) in (StrictHandling.RAISE_ALL, StrictHandling.RETURN_ALL, StrictHandling.LOG_ALL,
                       StrictHandling.IGNORE_ALL)

    @staticmethod
    def requires_returning_mismatch_keys(val: Any) -> bool:
        """Whether the load returns the two sets of keys beside the state dict."""
        return _ours(val) in (StrictHandling.RETURN_UNEXPECTED, StrictHandling.RETURN_ALL)


_REPORTS_MISSING = (StrictHandling.RAISE_ALL, StrictHandling.RETURN_ALL, StrictHandling.LOG_ALL)
_RAISES = (StrictHandling.RAISE_UNEXPECTED, StrictHandling.RAISE_ALL)
_LOGS = (StrictHandling.LOG_UNEXPECTED, StrictHandling.LOG_ALL)


def _ours(strict: Any) -> Any:
    """Our member for one of megatron-core's own enumeration; anything else as it is."""
    if isinstance(strict, Enum) and type(strict).__name__ == "StrictHandling" and not isinstance(strict, StrictHandling):
        return StrictHandling(strict.value)
    return strict


def reports_missing(strict: Any) -> bool:
    """Whether what no rank requests is told, for which the requests of all ranks are needed."""
    return _ours(strict) in _REPORTS_MISSING


def parse_strict_flag(strict: Any) -> Any:
    """The flag of a text; a flag, also one of megatron-core's own, as it is. InvalidArgumentError for anything else."""
    try:
        return strict if isinstance(_ours(strict), StrictHandling) else StrictHandling(strict)
    except ValueError as e:
        raise InvalidArgumentError(f"Invalid strict flag: {e}", {"parameter": "strict", "value": str(strict)}) from e


def validate_integrity_and_strict_load(
        sharded_state_dict: Any, strict: Any, validate_access_integrity: bool,
        local_metadata: Sequence[Any] | None = None, global_metadata: Sequence[Sequence[Any]] | None = None,
        ckpt_sharded_metadata: Mapping[str, Any] | None = None) -> tuple[Any, set[str], set[str]]:
    """Checks a request against itself and against a checkpoint, before data is read. Pure: nothing is exchanged.

    Args:
        sharded_state_dict: the request of this rank.
        strict: a StrictHandling, of ours or of megatron-core.
        validate_access_integrity: also prove that the main replicas of all ranks make whole tensors and grids.
        local_metadata: descriptions of this rank's request; None = made from it.
        global_metadata: descriptions of all ranks' requests, in rank order.
        ckpt_sharded_metadata: descriptions of what is stored.
    Returns:
        The request without unexpected leaves; missing keys; unexpected keys of this rank.
    Raises:
        CheckpointingException: a needed description is None, or what `strict` and the check say.
    """
    strict = _ours(strict)
    missing: set[str] = set()
    unexpected: set[str] = set()
    if StrictHandling.requires_explicit_ckpt_mismatch_check(strict):
        if ckpt_sharded_metadata is None:
            raise failure(CheckpointingException, "Cannot verify checkpoint mismatch with ckpt_sharded_metadata=None.")
        local = list(nested_values(sharded_state_dict)) if local_metadata is None else local_metadata
        wanted = global_metadata if strict in _REPORTS_MISSING else None
        missing, unexpected = missing_and_unexpected_keys(ckpt_sharded_metadata, local, wanted)
        sharded_state_dict = adjust_non_strict_load(sharded_state_dict, unexpected)
        if strict is StrictHandling.IGNORE_ALL:
            missing, unexpected = set(), set()
        elif strict in _RAISES or strict in _LOGS:
            maybe_report_missing_and_unexpected_keys(missing, unexpected, strict in _RAISES)
    if validate_access_integrity:
        if global_metadata is None:
            raise failure(CheckpointingException, "Cannot check sharding intergrity without global_metadata (None).")
        validate_sharding_integrity(global_metadata)
    return sharded_state_dict, missing, unexpected


def missing_and_unexpected_keys(stored: Mapping[str, Any], local: Iterable[Any],
                                wanted: Sequence[Iterable[Any]] | None = None) -> tuple[set[str], set[str]]:
    """(stored and requested by no rank, requested here and not stored). Without `wanted` nothing is missing.

    The reserved key of the common state is neither.
    """
    names = {global_name(leaf): leaf for leaf in stored.values() if leaf.key != COMMON_STATE_KEY}
    here = {global_name(leaf): leaf for leaf in local if leaf.key != COMMON_STATE_KEY}
    unexpected = _named({name: leaf for name, leaf in here.items() if name not in names}, names.values())
    if wanted is None:
        return set(), unexpected
    requested = {global_name(leaf): leaf for rank in wanted for leaf in rank}
    absent = {name: leaf for name, leaf in names.items() if name not in requested}
    return _named(absent, requested.values()), unexpected


def _named(leaves: Mapping[str, Any], others: Iterable[Any]) -> set[str]:
    """Keys; unique keys for objects of which the other side has a part."""
    known = {leaf.key for leaf in others if is_sharded_object(leaf)}
    return {name if is_sharded_object(leaf) and leaf.key in known else leaf.key for name, leaf in leaves.items()}


def adjust_non_strict_load(sharded_state_dict: Any, sharded_keys_to_remove: set[str]) -> Any:
    """The request without the leaves of these keys or unique keys. ShardingAssertionError for a leaf of another
    kind."""

    def is_removed(leaf: Any) -> bool:
        require(is_sharded_base(leaf), f"Unexpected type {type(leaf)}")
        return leaf.key in sharded_keys_to_remove or global_name(leaf) in sharded_keys_to_remove

    return extract_matching_values(sharded_state_dict, is_removed)[1]


def maybe_report_missing_and_unexpected_keys(missing_keys: set[str], unexpected_keys: set[str],
                                             raise_error: bool = True) -> None:
    """Raises MissingKeyError, a CheckpointingException, or logs a warning; nothing when both sets are empty."""
    if not missing_keys and not unexpected_keys:
        return
    titles, bodies = [], []
    if missing_keys:
        titles.append("Some keys found in the checkpoint are missing in the provided sharded state dict. ")
        bodies.append(f"Missing keys (for all ranks): {sorted(missing_keys)}. ")
    if unexpected_keys:
        titles.append("Unexpected keys (not found in the checkpoint) encountered in the provided sharded state dict. ")
        bodies.append(f"Unexpected keys (for this rank): {sorted(unexpected_keys)}. ")
    text = "".join([*titles, "\n", *bodies])
    if raise_error:
        raise failure(MissingKeyError, text)
    logger.warning(text)
