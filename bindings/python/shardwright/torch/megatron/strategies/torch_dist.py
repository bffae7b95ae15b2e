# SPDX-License-Identifier: Apache-2.0
"""The strategies of the backend "torch_dist": megatron-core's save and load take them, and the library does the work.

Plans, digests and the commit are those of the library: data goes to files under new names, and the replacement of `.metadata`
is the commit. common.pt and metadata.json are written by the caller; a metadata.json that is there goes before anything is
replaced, so that it never vouches for parts of two checkpoints.
"""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

import torch.distributed as dist

from .... import calls
from ....errors import ShardwrightError
from ... import _Prepared
from ...dcp import _async, _choice, _saving
from ...dcp._direct import Members
from ...dcp._errors import of_call
from ...dcp._lazy_metadata import LazyMetadata
from ...dcp._saving import SaveCall
from ...dcp.filesystem import FileSystemWriter
from ...dcp.state_dict_loader import _load
from .._directory import Directory, location_of
from ..checkpointable import LocalShard, LocalShardsContainer, _Boxes
from ..unsharded import Trust
from ..config import MARKER
from ..conversion import mcore_to_pyt_state_dict
from ..errors import ShardingError, failure
from ..flattening import _replace_state_dict_keys_with_sharded_keys
from ..planners import MCoreSavePlanner
from ._described import ShardedState, ShardLeaves
from ._hinted_writer import HintedWriter
from ._pending import Pending, wait_until_ended
from ._request import Request
from ._stored_metadata import read_metadata, remove_prefix, sharded_metadata, tensors_metadata
from .async_calls import AsyncRequest
from .asynchronous import get_async_strategy
from .base import AsyncSaveShardedStrategy, LoadShardedStrategy, StrategyAction, register_default_strategy

_metadata_fn = ".metadata"


class TorchDistSaveShardedStrategy(AsyncSaveShardedStrategy):
    """Saves sharded state dicts as torch.distributed.checkpoint's directories.

    A state is compared with that of the save before by its content, so one that has changed is planned anew and one that has
    not costs 16 bytes per rank, whatever `cached_metadata` says.

    Args:
        backend, version: what the caller writes into metadata.json.
        keep_only_main_replica: False = one of equal shards is chosen by the library instead of by replica_id.
        thread_count: threads that write on a rank.
        cached_metadata: accepted; see above.
        separation_hint: what belongs to keys that begin with it goes to files whose names begin with it, so that it can be
            removed without the rest (TorchDistLoadShardedStrategy.remove_sharded_tensors).
        cpu_shm_mode: accepted; nothing is handed to another process.
    """

    takes_marker_away = True  # before anything is replaced, and data of the checkpoint before stays as it is

    def __init__(self, backend: str = "torch_dist", version: int = 1, keep_only_main_replica: bool = True,
                 thread_count: int = 2, cached_metadata: bool = False, separation_hint: str | None = None,
                 cpu_shm_mode: bool = False) -> None:
        super().__init__(backend, version)
        self.keep_only_main_replica = keep_only_main_replica
        self.thread_count = thread_count
        self.separation_hint = separation_hint
        # Drivers set these from outside. The library keeps its plans by content and looks at none of them.
        self.use_cached_ckpt_structure = cached_metadata
        self.cached_central_plan: Any = None
        self.cached_local_plan: Any = None
        self.cached_global_metadata: Any = None
        self.validated_cache_reuse = False
        self.validated_loaded_metadata_reuse = False

    @property
    def can_handle_sharded_objects(self) -> bool:
        """True."""
        return True

    def save(self, sharded_state_dict: Any, checkpoint_dir: str | Path) -> None:
        """Saves; returns when the directory has been committed. Collective over the default group.

        Raises:
            CheckpointError on all ranks: torch's CheckpointException, a ShardwrightError, and the type of its cause. What was
                in the directory is then still there.
        """
        call = self._call(checkpoint_dir)
        if self.separation_hint is not None:
            tree = _together(call.members, lambda: self._grouped(sharded_state_dict))
            _take_marker_away(call)
            _saving.run(tree, call)
            return
        made = self._prepared(sharded_state_dict, call, background=False)
        _take_marker_away(call)
        try:
            calls.save(made.state, call.writer.place.path, collective=made.collective, **_options(call))
        except ShardwrightError as e:
            raise of_call("write", e, call.members.rank) from e

    def async_save(self, sharded_state_dict: Any, checkpoint_dir: str | Path, async_strategy: str = "nvrx") -> AsyncRequest:
        """Begins a save; tensors may change when it returns. Collective over the default group. `async_strategy` is accepted,
        as by `save`.

        The request's function waits for the end, in this process or in one that a queue of Megatron forks or spawns; its
        first finalizer raises what the save failed with, on all ranks.
        """
        get_async_strategy(async_strategy)
        call = self._call(checkpoint_dir)
        if self.separation_hint is not None:
            tree = _together(call.members, lambda: _copied(self._grouped(sharded_state_dict)))
            _take_marker_away(call)
            pending = Pending(_async.start(tree, call, cast(Any, _AsItIs()), process=False))
        else:
            made = self._prepared(sharded_state_dict, call, background=True)
            _take_marker_away(call)
            job = calls.save_async(made.state, call.writer.place.path, collective=made.collective, **_options(call))
            pending = Pending(job)
            with contextlib.suppress(ShardwrightError):  # which the finalizer raises, on all ranks
                job.wait_staged()
        return self._get_save_and_finalize_callbacks(call.writer, pending)

    def _get_save_and_finalize_callbacks(self, writer: Any, save_state_dict_ret: Pending) -> AsyncRequest:
        """The request for a save that has begun. Drivers override it to add to the request."""
        rank = _choice.members_of(None, False).rank

        def finalize() -> None:
            try:
                save_state_dict_ret.result()
            except ShardwrightError as e:
                raise of_call("write", e, rank) from e

        return AsyncRequest(wait_until_ended, save_state_dict_ret.arguments, [finalize])

    def _grouped(self, sharded_state_dict: Any) -> dict[str, Any]:
        grouped, _, _ = _replace_state_dict_keys_with_sharded_keys(sharded_state_dict, self.keep_only_main_replica)
        return mcore_to_pyt_state_dict(grouped)

    def _prepared(self, sharded_state_dict: Any, call: SaveCall, background: bool) -> _Prepared:
        members = call.members

        def state_of(rank: int) -> ShardedState:
            leaves = ShardLeaves(members.group, False, members.alone)
            return ShardedState(self._grouped(sharded_state_dict), leaves, rank)

        return _Prepared(None, members.group, writable=False, background=background, objects="json", options={},
                         targets=state_of, alone=members.alone, use=members.use)

    def _call(self, checkpoint_dir: str | Path) -> SaveCall:
        members = _choice.members_of(None, False)
        writer: Any = _choice.storage_of(None, location_of(checkpoint_dir), reader=False)
        planner = None
        if self.separation_hint is not None:
            if type(writer) is not FileSystemWriter:
                raise failure(ShardingError, f"separation_hint needs a directory, not {checkpoint_dir}", path=checkpoint_dir)
            writer = HintedWriter(writer.path, self.separation_hint)
            planner = MCoreSavePlanner(flatten_state_dict=False)
        writer.thread_count = self.thread_count
        return SaveCall(writer, planner, members, True, "off", {})


def _together(members: Members, function: Callable[[], Any]) -> Any:
    """What a function of each rank gives. Fails on all ranks where one fails, so that none waits for it later."""
    return _choice.steps_of(members).together("plan", function)


def _take_marker_away(call: SaveCall) -> None:
    """What says that a checkpoint of Megatron is whole goes before one is replaced, on all ranks before any goes on."""
    _together(call.members, lambda: Directory(call.writer.path).remove(MARKER) if call.members.rank == 0 else None)


def _options(call: SaveCall) -> dict[str, Any]:
    return {"storage": call.writer.place.storage, "verify_replicas": "off", **_saving.options_of(call)}


def _copied(tree: dict[str, Any]) -> dict[str, Any]:
    """The state with memory of its own."""
    return {key: LocalShardsContainer([LocalShard(shard.descriptor, shard.data.detach().clone()) for shard in value._shards])
            if isinstance(value, _Boxes) else value for key, value in tree.items()}


class _AsItIs:
    """The stager of what has been copied already."""

    should_synchronize_after_execute = False

    def stage(self, state_dict: Any) -> Any:
        """The state as it is."""
        return state_dict


class TorchDistLoadShardedStrategy(LoadShardedStrategy):
    """Loads sharded state dicts from torch.distributed.checkpoint's directories, of Megatron 0.7 and later and of everybody
    else, along any grid.

    Args:
        cache_metadata, checkpoint_name, stream_ckpt_dequant: accepted; metadata is read again where it has changed, and
            requests are filled in the precision that they have.
        trust_pickles, allow_types: what stored objects may do: everything, or use these classes of the program.
    Attributes:
        cached_global_metadata: metadata of the directory that was loaded last.
    """

    def __init__(self, cache_metadata: bool = False, checkpoint_name: Any = None, stream_ckpt_dequant: bool = True, *,
                 trust_pickles: bool = False, allow_types: Iterable[Any] = ()) -> None:
        self.cached_global_metadata: Any = None
        self._trust = Trust(trust_pickles, tuple(allow_types))

    @property
    def can_handle_sharded_objects(self) -> bool:
        """True."""
        return True

    def load(self, sharded_state_dict: Any, checkpoint_dir: str | Path, async_strategy: str = "mcore") -> Any:
        """The values of a request, in its structure. Tensors of the request are filled where they lie. Collective over the
        default group. `async_strategy` is accepted: it says nothing about a load.

        Raises:
            CheckpointError on all ranks: torch's CheckpointException, a ShardwrightError, and the type of its cause: a
                KeyError for a key that is not stored, megatron-core's CheckpointingException for another shape.
        """
        return self.load_over(sharded_state_dict, checkpoint_dir, None)

    def load_over(self, sharded_state_dict: Any, checkpoint_dir: str | Path, process_group: dist.ProcessGroup | None) -> Any:
        """The same over the ranks of a group; None = the default one."""
        return self._load(sharded_state_dict, checkpoint_dir, _choice.members_of(process_group, False))

    def load_alone(self, sharded_state_dict: Any, checkpoint_dir: str | Path) -> Any:
        """The same in this process, whatever others do."""
        return self._load(sharded_state_dict, checkpoint_dir, Members(None, True))

    def _load(self, sharded_state_dict: Any, checkpoint_dir: str | Path, members: Members) -> Any:
        reader = Directory(checkpoint_dir).reader
        steps = _choice.steps_of(members)
        request = steps.together("plan", lambda: Request(sharded_state_dict, reader.place, self._trust))
        if not request.fill(members, steps):
            _load(request.wanted, reader, request.planner(), members, _choice.Stored(*self._trust), {})
        self.cached_global_metadata = LazyMetadata(lambda: read_metadata(checkpoint_dir))
        return request.values()

    def load_tensors_metadata(self, checkpoint_dir: str | Path, metadata: Any = None) -> dict[str, Any]:
        """A ShardedTensor without data, and not sharded, for each stored tensor, by key."""
        return tensors_metadata(read_metadata(checkpoint_dir) if metadata is None else metadata)

    def load_sharded_metadata(self, checkpoint_dir: str | Path) -> dict[str, Any]:
        """The same with a ShardedObject without data for each stored object, by unique_key; it is a request of everything."""
        return sharded_metadata(read_metadata(checkpoint_dir))

    def remove_sharded_tensors(self, checkpoint_dir: str | Path, key_prefix: str) -> None:
        """Removes the entries whose keys begin with a prefix, where there are files whose names do, and the files that hold
        nothing else: shardwright.remove_entries, which says what happens to the rest. One process calls it.

        A warning, and nothing happens, where there are no such files, as without `separation_hint`, or no such entries.
        """
        remove_prefix(checkpoint_dir, key_prefix)


def _get_filesystem_reader(checkpoint_dir: str | Path, cache_metadata: bool = False, async_strategy: str = "nvrx") -> Any:
    """The reader of a directory, or of a URL. Metadata is read again where it has changed, whatever `cache_metadata` says;
    `async_strategy` is accepted."""
    return Directory(checkpoint_dir).reader


def register_default_torch_strategies() -> None:
    """Makes these strategies the defaults of ("torch_dist", 1)."""
    register_default_strategy(StrategyAction.LOAD_SHARDED, "torch_dist", 1, TorchDistLoadShardedStrategy())
    register_default_strategy(StrategyAction.SAVE_SHARDED, "torch_dist", 1, TorchDistSaveShardedStrategy("torch_dist", 1))
