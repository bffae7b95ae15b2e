# SPDX-License-Identifier: Apache-2.0
"""load: a request filled from a directory of Megatron, with or without megatron-core.

1. Rank 0 looks at the directory, metadata.json and the common state, once for all; all ranks agree that the request is sound.
2. Requested and stored keys are compared as `strict` says, and the access pattern is proved, before data is read.
3. The strategy reads.
4. What was loaded, local values and the common state become one tree; factories merge their subtrees.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch.distributed as dist

from ...errors import InvalidArgumentError
from ._agreement import Ranks
from ._directory import Directory
from .unsharded import COMMON_FILE, Trust, decoded
from .config import MARKER, CheckpointingConfig, config_of
from .errors import CheckpointingException, failure
from .factories import with_factories_applied
from .high_precision import with_high_precision
from .integrity import verify_integrity_manifest
from .kinds import is_factory, is_nonpersistent, is_sharded_base
from .positions import Assembly, Path, leaves_with_paths, places_in, value_at
from .strategies._publication import finish_publication
from .strategies.unsharded import TorchCommonLoadStrategy, check_common_object, over_ranks
from .strategies.base import StrategyAction, get_default_strategy
from .strategies.torch_dist import TorchDistLoadShardedStrategy
from .strictness import StrictHandling, parse_strict_flag, reports_missing, validate_integrity_and_strict_load
from .trees import extract_matching_values
from .validation import described_on_all


class _Stored(NamedTuple):
    """What rank 0 found. `common`: bytes of common.pt; None = the common state is an object of the index."""

    config: CheckpointingConfig
    common: bytes | None


def load(sharded_state_dict: Any, checkpoint_dir: Any, sharded_strategy: Any = None, common_strategy: Any = None,
         validate_access_integrity: bool = True, strict: Any = StrictHandling.ASSUME_OK_UNEXPECTED,
         verify_integrity: bool = False, process_group: dist.ProcessGroup | None = None, *, trust_pickles: bool = False,
         allow_types: Iterable[Any] = ()) -> Any:
    """Fills a request. Collective over a group. The tree of the request and its descriptors stay as they are; tensors of the
    request are filled where they lie.

    Args:
        sharded_state_dict: tree of dict and list with descriptors of ours or of megatron-core; its other values are not used.
        checkpoint_dir: a directory or a URL.
        sharded_strategy: a strategy, (backend, version), or None for that of the backend in metadata.json.
        common_strategy: a strategy, which each rank asks for the common state, or None.
        validate_access_integrity: prove that the requests of all ranks cover whole tensors and grids once.
        strict: a StrictHandling or its text.
        verify_integrity: rank 0 first compares all files with integrity.json.
        process_group: the ranks that load; None = the default group.
        trust_pickles, allow_types: what pickles may do: everything, or use these classes of the program.
    Returns:
        The common state with what was loaded at the positions of the request; for the values of `strict` that return keys,
        (that, missing keys, unexpected keys of this rank).
    Raises, the same kind on all ranks:
        CheckpointingException: the directory is missing or holds no whole checkpoint, the backend is unknown, what `strict` and
        the proof say. InvalidArgumentError: no such `strict`. PermissionDeniedError: a pickle that is not trusted.
        CheckpointError: a requested key is not stored (a KeyError, too), shapes differ, or reading failed.
    """
    trust = Trust(trust_pickles, tuple(allow_types))
    parsed: list[Any] = []
    request: list[_Request] = []

    def look_at_request() -> None:
        _check_options(common_strategy)
        parsed.append(parse_strict_flag(strict))
        request.append(_Request(sharded_state_dict))

    ranks = Ranks(process_group)
    stored: _Stored = ranks.from_first(look_at_request, lambda: _look(Directory(checkpoint_dir), verify_integrity))
    strategy = ranks.together(lambda: _strategy_of(sharded_strategy, stored.config, trust))
    common = _common_state(Directory(checkpoint_dir), stored, common_strategy, trust, ranks)
    checked, missing, unexpected = _checked(request[0].sharded, parsed[0], validate_access_integrity, strategy, checkpoint_dir,
                                            ranks)
    loaded = ranks.together(lambda: _read(strategy, checked, checkpoint_dir, process_group))
    found = ranks.together(lambda: request[0].assembled(common, checked, loaded))
    if StrictHandling.requires_returning_mismatch_keys(parsed[0]):
        return found, missing, unexpected
    return found


def _read(strategy: Any, request: Any, checkpoint_dir: Any, group: dist.ProcessGroup | None) -> Any:
    """What a strategy loads; over the group where it can be told which."""
    path = Directory(checkpoint_dir).path
    if group is not None and callable(getattr(strategy, "load_over", None)):
        return strategy.load_over(request, path, group)
    return strategy.load(request, path)


def _check_options(common_strategy: Any) -> None:
    if isinstance(common_strategy, bool):
        raise InvalidArgumentError("the fourth argument is common_strategy, as in megatron-core 0.16; pass "
                                   "validate_access_integrity by name", {"parameter": "common_strategy"})
    if common_strategy is not None and not isinstance(common_strategy, tuple) and not hasattr(common_strategy, "load_common"):
        raise failure(CheckpointingException, f"{common_strategy} has no load_common", parameter="common_strategy")


def _look(directory: Directory, verify_integrity: bool) -> _Stored:
    if not directory.exists():
        raise failure(CheckpointingException, f"Checkpoint directory {directory.path} does not exist", path=directory.path)
    finish_publication(directory)
    config = config_of(directory.read(MARKER))
    if config is None:
        raise failure(CheckpointingException, f"{directory.path} is not a distributed checkpoint: it has no whole {MARKER}",
                      path=directory.path)
    if verify_integrity:
        verify_integrity_manifest(directory.path)
    return _Stored(config, directory.read(COMMON_FILE))


def _strategy_of(given: Any, config: CheckpointingConfig, trust: Trust) -> Any:
    if given is None:
        given = config.sharded_backend, config.sharded_backend_version
    if isinstance(given, tuple):
        found = get_default_strategy(StrategyAction.LOAD_SHARDED, *given)
        if type(found) is TorchDistLoadShardedStrategy:
            found = TorchDistLoadShardedStrategy(trust_pickles=trust.everything, allow_types=trust.types)
    else:
        found = given
    if not callable(getattr(found, "load", None)):
        raise failure(CheckpointingException, f"{found} has no load", parameter="sharded_strategy")
    for check, value in (("check_backend_compatibility", config.sharded_backend),
                         ("check_version_compatibility", config.sharded_backend_version)):
        if hasattr(found, check):
            getattr(found, check)(value)
    return found


# ---- the common state ----

def _common_state(directory: Directory, stored: _Stored, strategy: Any, trust: Trust, ranks: Ranks) -> Any:
    if isinstance(strategy, tuple):
        strategy = ranks.together(lambda: get_default_strategy(StrategyAction.LOAD_COMMON, *strategy))
    if strategy is not None and not isinstance(strategy, TorchCommonLoadStrategy):
        return ranks.together(lambda: strategy.load_common(directory.path))
    if stored.common is not None:
        content = stored.common
        return ranks.together(lambda: decoded(content, f"{directory.path}/{COMMON_FILE}", trust))
    ranks.from_first(lambda: None, lambda: check_common_object(directory.path))
    return over_ranks(directory.path, trust, ranks.group)


# ---- the request ----

def _checked(sharded: Any, strict: Any, validate: bool, strategy: Any, checkpoint_dir: Any,
             ranks: Ranks) -> tuple[Any, set[str], set[str]]:
    """The request without unexpected leaves, missing and unexpected keys. One error on all ranks."""
    stored = None
    if StrictHandling.requires_explicit_ckpt_mismatch_check(strict):
        stored = ranks.together(lambda: _metadata(strategy, checkpoint_dir))
    local = described = None
    if validate or reports_missing(strict):
        local, described = described_on_all(sharded, ranks)
    found: tuple[Any, set[str], set[str]] = ranks.together(
        lambda: validate_integrity_and_strict_load(sharded, strict, validate, local, described, stored))
    return found


def _metadata(strategy: Any, checkpoint_dir: Any) -> Any:
    source = strategy if hasattr(strategy, "load_sharded_metadata") else TorchDistLoadShardedStrategy()
    return source.load_sharded_metadata(Directory(checkpoint_dir).path)


class _Request:
    """A request whose factories are applied, and where in its tree the parts of it lie."""

    def __init__(self, sharded_state_dict: Any) -> None:
        given = with_high_precision(sharded_state_dict)
        self._factories = {path: leaf for path, leaf in leaves_with_paths(given) if is_factory(leaf)}
        self._template = with_factories_applied(given)
        self.sharded, _ = extract_matching_values(self._template, is_sharded_base)

    def assembled(self, common: Any, asked: Any, loaded: Any) -> Any:
        """Common state, local values and what was loaded for the part of the request that was asked for."""
        values = {path: value_at(loaded, place) for path, place in places_in(asked, self._template)}
        values |= {path: leaf.unwrap() for path, leaf in leaves_with_paths(self._template) if is_nonpersistent(leaf)}
        merges = {path: factory.merge_fn for path, factory in self._factories.items() if self._is_whole(path, factory, values)}
        return Assembly(self._template, values, _is_taken, merges).into(common)

    def _is_whole(self, path: Path, factory: Any, values: dict[Path, Any]) -> bool:
        """Whether all that a factory merges was loaded; an error where a part was."""
        built = value_at(self._template, path)
        wanted = [path] if not isinstance(built, (dict, list)) else [
            (*path, *below) for below, leaf in leaves_with_paths(built) if is_sharded_base(leaf)]
        absent = [where for where in wanted if where not in values]
        if absent and len(absent) < len(wanted):
            raise failure(CheckpointingException, f"{factory.key} cannot be merged: {len(absent)} of its {len(wanted)} parts are "
                          f"not stored, the first for {'.'.join(map(str, absent[0]))}", key=factory.key)
        return not absent


def _is_taken(leaf: Any) -> bool:
    return is_sharded_base(leaf) or is_nonpersistent(leaf)
