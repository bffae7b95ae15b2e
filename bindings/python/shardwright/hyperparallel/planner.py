# SPDX-License-Identifier: Apache-2.0
"""What a planner offers, in the words of HyperParallel and in those of torch.distributed.checkpoint.

The methods of the second spelling call those of the first one, so a subclass overrides configure_planner,
build_local_plan and so on, and both spellings follow.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from .model import LoadPlan, Metadata, MetadataIndex, ReadItem, SavePlan


class SavePlanner(ABC):
    """Plans the save of one rank."""

    @abstractmethod
    def configure_planner(self, state_dict: Mapping[Any, Any], **kwargs: Any) -> None:
        """Takes the state to save and the rank's place."""

    @abstractmethod
    def build_local_plan(self) -> SavePlan:
        """What this rank holds."""

    @abstractmethod
    def build_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """From the plans of all ranks: what each rank writes, and the checkpoint's metadata."""

    @abstractmethod
    def finalize_plan(self, plan: SavePlan) -> SavePlan:
        """Takes this rank's part of the global plan."""

    @abstractmethod
    def get_tensor(self, index: MetadataIndex) -> Any:
        """The local tensor of an item of the final plan, None when there is none."""

    def set_up_planner(self, state_dict: Mapping[Any, Any], storage_meta: Any = None, is_coordinator: bool = False,
                       **kwargs: Any) -> None:
        """configure_planner in torch's spelling; `storage_meta` is not looked at."""
        self.configure_planner(state_dict, is_coordinator=is_coordinator, **kwargs)

    def create_local_plan(self) -> SavePlan:
        """build_local_plan in torch's spelling."""
        return self.build_local_plan()

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """build_global_plan in torch's spelling."""
        return self.build_global_plan(all_plans)

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """finalize_plan in torch's spelling."""
        return self.finalize_plan(new_plan)


class LoadPlanner(ABC):
    """Plans the load of one rank, and puts what was read into the state."""

    @abstractmethod
    def configure_planner(self, state_dict: Mapping[Any, Any], metadata: Metadata, **kwargs: Any) -> None:
        """Takes the state to fill and the checkpoint's metadata."""

    @abstractmethod
    def build_local_plan(self) -> LoadPlan:
        """What this rank reads."""

    @abstractmethod
    def build_global_plan(self, all_plans: list[LoadPlan]) -> list[LoadPlan]:
        """The plans of all ranks, coordinated."""

    @abstractmethod
    def finalize_plan(self, plan: LoadPlan) -> LoadPlan:
        """Takes this rank's part of the global plan."""

    @abstractmethod
    def acquire_tensor(self, read_item: ReadItem) -> Any:
        """Writable view of where an item goes."""

    @abstractmethod
    def apply_tensor(self, read_item: ReadItem, tensor: Any) -> None:
        """Puts what was read where the item goes."""

    @abstractmethod
    def apply_bytes(self, read_item: ReadItem, value: Any) -> None:
        """Puts an object into the state."""

    def set_up_planner(self, state_dict: Mapping[Any, Any], metadata: Metadata, is_coordinator: bool = False,
                       **kwargs: Any) -> None:
        """configure_planner in torch's spelling."""
        self.configure_planner(state_dict, metadata, is_coordinator=is_coordinator, **kwargs)

    def create_local_plan(self) -> LoadPlan:
        """build_local_plan in torch's spelling."""
        return self.build_local_plan()

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """build_global_plan in torch's spelling."""
        return self.build_global_plan(global_plan)

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """finalize_plan in torch's spelling."""
        return self.finalize_plan(central_plan)

    def resolve_tensor(self, read_item: ReadItem) -> Any:
        """acquire_tensor in torch's spelling."""
        return self.acquire_tensor(read_item)

    def commit_tensor(self, read_item: ReadItem, tensor: Any) -> None:
        """apply_tensor in torch's spelling."""
        self.apply_tensor(read_item, tensor)

    def load_bytes(self, read_item: ReadItem, value: Any) -> None:
        """apply_bytes in torch's spelling."""
        self.apply_bytes(read_item, value)
