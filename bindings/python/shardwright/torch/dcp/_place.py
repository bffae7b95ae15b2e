# SPDX-License-Identifier: Apache-2.0
"""Place: where a checkpoint lies."""
from __future__ import annotations

from typing import Any, NamedTuple

from ... import calls
from ...checkpoint import Checkpoint


class Place(NamedTuple):
    """A path, or a key prefix in a storage."""

    path: Any
    storage: Any = None

    def open(self) -> Checkpoint:
        """The checkpoint there."""
        return calls.open(self.path, storage=self.storage)
