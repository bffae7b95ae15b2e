# SPDX-License-Identifier: Apache-2.0
"""Mesh: what one rank is in the device mesh of its job, and the communicators along the axes."""
from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

from .._library import native
from .._options import word
from ..errors import CancelledError, ShardwrightError
from .communicator import Communicator

_LANES = {"gather": 0, "reduce": 1, "secondary": 2}


class Mesh:
    """The mesh as `rank` sees it.

    Args:
        shape: extents, such as (2, 4) for 2 replicas of 4 shards.
        rank: this rank, one of `ranks`.
        ranks: global ranks in row-major order; None = 0, 1, 2, ...
        names: axis names.
    Raises InvalidArgumentError.
    """

    def __init__(self, shape: Sequence[int], *, rank: int, ranks: Sequence[int] | None = None,
                 names: Sequence[str] | None = None) -> None:
        self.shape = tuple(int(extent) for extent in shape)
        self.ranks = tuple(ranks) if ranks is not None else tuple(range(math.prod(self.shape)))
        self.names = None if names is None else tuple(names)
        fields: dict[str, Any] = {"mesh_shape": self.shape, "mesh_ndim": len(self.shape)}
        if names is not None:
            fields["axis_names"] = [name.encode() for name in names]
        if ranks is not None:
            fields |= {"ranks": tuple(ranks), "rank_count": len(ranks)}
        self._rank = rank
        self._communicators: dict[Any, Communicator] = {}
        self._handle: Any = native.shw_hsdp_mesh_create(fields, rank)

    def set_communicator(self, axis: int, communicator: Communicator, lane: str = "gather") -> None:
        """The communicator of the ranks along an axis, in the order of their coordinates: "gather" for gathers, and for
        reductions unless they have their own; "reduce"; "secondary" of n neighbours, for units that keep 1/n of their parameters
        after forward. Before the context is made, and between a failure and `Hsdp.reset`. InvalidArgumentError."""
        native.shw_hsdp_mesh_set_communicator(self._handle, axis, word("lane", lane, _LANES), communicator._handle)
        self._communicators[axis, lane, communicator.size if lane == "secondary" else 0] = communicator

    def _cancel(self) -> None:
        """This rank is interrupted while it waits: all ranks that wait along its axes are CancelledError. Any thread."""
        for each in list(self._communicators.values()):
            with contextlib.suppress(ShardwrightError, ValueError):  # it cannot be woken: the call ends with its time-out
                each.abort(f"cancelled by the host: rank {self._rank} was interrupted", CancelledError.code)

    def close(self) -> None:
        """Releases the mesh; contexts keep it alive. Twice is fine."""
        native.shw_py_close(self._handle)
