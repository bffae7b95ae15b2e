# SPDX-License-Identifier: Apache-2.0
"""save: a sharded state dict as a directory of Megatron, with or without megatron-core.

1. All ranks agree that each could take its state, on rank 0 that the directory is there.
2. The main replicas of all ranks are proved to make whole tensors and grids.
3. The strategy writes and commits what is sharded; a metadata.json that is there goes before anything is replaced.
4. Rank 0 replaces common.pt, then writes metadata.json, each in one step and durable.
A failure before the commit of step 3 leaves the checkpoint that was there, and brings its metadata.json back.
"""
from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from ...errors import InvalidArgumentError, ShardwrightError, UnimplementedError
from ._agreement import Ranks
from ._directory import Directory
from ._exchange import group_rank
from .unsharded import COMMON_FILE, common_object, encoded
from .config import MARKER, CheckpointingConfig, save_config
from .errors import CheckpointingException, ShardingError, failure
from .consistency import compare_common_states, prove
from .factories import with_factories_applied
from .integrity import MANIFEST, save_integrity_manifest
from .kinds import flat_range_of, is_main_replica, is_nonpersistent, is_sharded_base, is_sharded_tensor
from .strategies.asynchronous import get_async_strategy
from .strategies.async_calls import AsyncRequest
from .strategies.base import StrategyAction, get_default_strategy
from .trees import extract_matching_values, nested_values

logger = logging.getLogger(__name__)
CONTENT_METADATA = "content_metadata"
_INDEX = ".metadata"


class _Parts(NamedTuple):
    """A state dict as it is saved. `content`: that of common.pt, on rank 0."""

    strategy: Any
    sharded: Any
    common: Any
    content: memoryview | None


def save(sharded_state_dict: Any, checkpoint_dir: Any, sharded_strategy: Any = None, common_strategy: Any = None,
         validate_access_integrity: bool = True, async_sharded_save: bool = False,
         preprocess_common_before_consistancy_check: Callable[[Any], Any] | None = None,
         content_metadata: dict[str, Any] | None = None, async_strategy: str = "nvrx", verify_integrity: bool = False, *,
         common_layout: Literal["file", "object"] = "file") -> AsyncRequest | None:
    """Saves the state dicts of all ranks of the default group as one checkpoint. Collective. Nothing of the caller's is changed.

    Args:
        sharded_state_dict: tree of dict and list. Descriptors of ours and of megatron-core are saved by their main replicas;
            what is not sharded is the common state, of which rank 0's is saved; LocalNonpersistentObjects are left out.
        checkpoint_dir: a directory that exists, or a URL. What is there is replaced.
        sharded_strategy: a strategy, (backend, version), or None for TorchDistSaveShardedStrategy.
        common_strategy: must be None.
        validate_access_integrity: prove that main replicas neither overlap nor leave holes, and warn of ranks whose common
            state is another.
        async_sharded_save: return when tensors may change, with an AsyncRequest for a queue.
        preprocess_common_before_consistancy_check: called with a copy of the common state; what it gives is compared.
        content_metadata: stored in the common state as `content_metadata`, without its `dp_cp_group`.
        async_strategy: accepted, "nvrx" or "mcore"; saves in the background are jobs of the library.
        verify_integrity: also write integrity.json, the SHA-256 of every file.
        common_layout: "file" for common.pt, which all releases read; "object" as megatron-core 0.19 has it.
    Raises, the same kind on all ranks:
        CheckpointingException: the directory is missing, the strategy is unknown, shards overlap or are missing.
        CheckpointError: writing failed. UnimplementedError: common_strategy was given.
    """

    def prepare() -> _Save:
        _check_options(common_strategy, async_strategy, common_layout)
        strategy = _strategy_of(sharded_strategy, async_sharded_save)
        directory = Directory(checkpoint_dir)
        _check_directory(directory)
        return _Save(directory, _parts(sharded_state_dict, strategy, directory, content_metadata, common_layout), verify_integrity)

    ranks = Ranks()
    made: _Save = ranks.together(prepare)
    if validate_access_integrity:
        prove(made.parts.sharded, ranks)
        compare_common_states(made.parts.common, preprocess_common_before_consistancy_check, ranks)
    if async_sharded_save:
        return made.in_background(ranks)
    made.now(ranks)
    return None


def _check_options(common_strategy: Any, async_strategy: str, common_layout: str) -> None:
    if isinstance(common_strategy, bool):
        raise InvalidArgumentError("the fourth argument is common_strategy, as in megatron-core 0.16; pass "
                                   "validate_access_integrity by name", {"parameter": "common_strategy"})
    if common_strategy is not None:
        raise UnimplementedError("common_strategy is not supported: the common state has one layout", {"parameter": "common_strategy"})
    get_async_strategy(async_strategy)
    if common_layout not in ("file", "object"):
        raise InvalidArgumentError(f"common_layout {common_layout!r} is none of file, object", {"parameter": "common_layout"})


def _strategy_of(given: Any, background: bool) -> Any:
    found = given
    if given is None:
        found = get_default_strategy(StrategyAction.SAVE_SHARDED, "torch_dist", 1)
    elif isinstance(given, tuple):
        found = get_default_strategy(StrategyAction.SAVE_SHARDED, *given)
    needed = "async_save" if background else "save"
    if not callable(getattr(found, needed, None)):
        raise failure(CheckpointingException, f"Cannot apply async_save to a non-async strategy: {found} has no {needed}",
                      parameter="sharded_strategy")
    return found


def _check_directory(directory: Directory) -> None:
    if group_rank(None) != 0:
        return
    if not directory.exists():
        raise failure(CheckpointingException, f"Checkpoint destination directory {directory.path} does not exist",
                      path=directory.path)
    if not directory.is_empty():
        logger.warning("Overwriting old incomplete / corrupted checkpoint in %s: what is there is replaced", directory.path)


def _parts(sharded_state_dict: Any, strategy: Any, directory: Directory, content_metadata: dict[str, Any] | None,
           common_layout: str) -> _Parts:
    tree = sharded_state_dict
    if content_metadata is not None:
        tree = {**tree, CONTENT_METADATA: {name: value for name, value in content_metadata.items() if name != "dp_cp_group"}}
    tree = with_factories_applied(tree)
    sharded, _ = extract_matching_values(tree, _is_saved)
    for leaf in nested_values(sharded):
        if is_sharded_tensor(leaf) and leaf.data is None and is_main_replica(leaf.replica_id):
            raise failure(ShardingError, f"`data` attr is None for {leaf}", key=leaf.key)
    if not getattr(strategy, "can_handle_sharded_objects", False):
        _refuse_objects(sharded, strategy)
    common = extract_matching_values(tree, _is_taken)[1]
    if common_layout == "object":
        sharded = {"sharded": sharded, "common": common_object(common, group_rank(None))}
        return _Parts(strategy, sharded, common, None)
    content = encoded(common, f"{directory.path}/{COMMON_FILE}") if group_rank(None) == 0 else None
    return _Parts(strategy, sharded, common, content)


def _is_taken(leaf: Any) -> bool:
    return is_sharded_base(leaf) or is_nonpersistent(leaf)


def _is_saved(leaf: Any) -> bool:
    """Shards; not flattened ones without elements, as they come from ranks that have no part of a bucket."""
    if not is_sharded_base(leaf):
        return False
    flat = flat_range_of(leaf) if is_sharded_tensor(leaf) else None
    return flat is None or flat.start != flat.stop


def _refuse_objects(sharded: Any, strategy: Any) -> None:
    objects, _ = extract_matching_values(sharded, lambda leaf: not is_sharded_tensor(leaf))
    if objects:
        raise failure(CheckpointingException, f"{strategy} takes no ShardedObjects, and the state dict has some",
                      parameter="sharded_strategy")


class _Save:
    """One save after its state is known: the data, what comes after it, and metadata.json put back where that never came."""

    def __init__(self, directory: Directory, parts: _Parts, manifest: bool) -> None:
        self.parts = parts
        self._directory, self._manifest = directory, manifest
        self._leads = group_rank(None) == 0
        self._marker = directory.read(MARKER) if self._leads else None
        self._index = directory.version(_INDEX) if self._leads else None

    def now(self, ranks: Ranks) -> None:
        """Saves. Collective."""
        self._take_marker_away(ranks)
        self.following(lambda: ranks.together(lambda: self.parts.strategy.save(self.parts.sharded, self._directory.path)))
        ranks.together(self._publish)

    def in_background(self, ranks: Ranks) -> AsyncRequest:
        """Begins to save. Collective. What comes after the data are the last finalizers of the request."""
        self._take_marker_away(ranks)
        request = self.following(lambda: ranks.together(lambda: self.parts.strategy.async_save(self.parts.sharded, self._directory.path)))
        steps: list[Callable[[], Any]] = [functools.partial(self.following, step) for step in request.finalize_fns]
        return AsyncRequest(**{**request._asdict(), "finalize_fns": [*steps, self._publish_later]})

    def _take_marker_away(self, ranks: Ranks) -> None:
        """Where the strategy does not do it."""
        if not getattr(self.parts.strategy, "takes_marker_away", False):
            self._marker = None  # such a strategy may write over the data of the checkpoint before
            ranks.together(lambda: self._directory.remove(MARKER) if self._leads else None)

    def following(self, step: Callable[[], Any]) -> Any:
        """What a step gives. Where it fails, the checkpoint before is told to be whole again, if it still is."""
        try:
            return step()
        except BaseException:
            with contextlib.suppress(OSError, ShardwrightError):  # the failure of the step says more
                self._put_marker_back()
            raise

    def _put_marker_back(self) -> None:
        if self._marker is None or self._index is None or self._directory.version(_INDEX) != self._index:
            return
        if self._directory.read(MARKER) is None:
            self._directory.replace(MARKER, self._marker)

    def _publish_later(self) -> None:
        """Collective, in a call of its own."""
        Ranks().together(self._publish)

    def _publish(self) -> None:
        """Common state, then marker, then manifest."""
        if not self._leads:
            return
        config = CheckpointingConfig(self.parts.strategy.backend, self.parts.strategy.version)
        if self.parts.content is None:
            self._directory.remove(COMMON_FILE)  # of the checkpoint before, which would be taken for this one's
            config.common_backend = config.common_backend_version = None
        else:
            self._directory.replace(COMMON_FILE, self.parts.content)
        if not self._manifest:
            self._directory.remove(MANIFEST)
        save_config(config, self._directory.path)
        if self._manifest:
            save_integrity_manifest(self._directory.path)
