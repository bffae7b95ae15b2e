# SPDX-License-Identifier: Apache-2.0
"""Files of their own for the entries whose keys begin with a prefix."""
from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner
from torch.distributed.checkpoint.storage import WriteResult

from ...dcp.filesystem import FileSystemWriter


class HintedWriter(FileSystemWriter):
    """Writes to a directory; the names of some files begin with `hint`, and these hold the entries that do."""

    def __init__(self, path: Any, hint: str) -> None:
        super().__init__(path)
        self._hint = hint

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> torch.futures.Future[list[WriteResult]]:
        """Writes the items of this rank: those of the hint to their files, then the others."""
        apart = [item for item in plan.items if item.index.fqn.startswith(self._hint)]
        others = [item for item in plan.items if not item.index.fqn.startswith(self._hint)]
        prefix: Any = plan.storage_data
        # Both kinds of file are of one generation, which a prefix gives once.
        hinted = dataclasses.replace(prefix, prefix=self._hint + prefix.prefix)
        results: list[WriteResult] = []
        for items, place in ((apart, hinted), (others, prefix)):
            if items:
                results += super().write_data(dataclasses.replace(plan, items=items, storage_data=place), planner).value()
        future: torch.futures.Future[list[WriteResult]] = torch.futures.Future()
        future.set_result(results)
        return future
