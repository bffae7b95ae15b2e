# SPDX-License-Identifier: Apache-2.0
"""Exchanges of loads: ranks read stored blocks for each other, and their host moves the bytes. In steps:

1. each rank: `plan = planner.local_plan()` and `planner.want_list(world_size)`;
2. one rank, with the want lists of all: `exchange_plans`, one plan for each rank;
3. each rank: `exchange = planner.exchange(its exchange plan)`, and for each of the rounds, of which all ranks have equally
   many, what stands in `outgoing` for rank r goes to that rank's `incoming` of this one;
4. each rank: `exchange.finish()`.

    for part in exchange:
        host.all_to_all(part.outgoing, part.incoming)
    report = exchange.finish()

With a collective, `load` does all of this by itself.
"""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ._library import native
from .errors import FailedPreconditionError
from .report import Report


class ExchangeRound(NamedTuple):
    """One round of one rank: a view of bytes for each rank, empty where there is nothing to move. Usable until the round ends,
    which releases the views."""

    outgoing: tuple[memoryview, ...]
    """What goes to each rank; read-only."""
    incoming: tuple[memoryview, ...]
    """To be filled with what each rank has for this one."""


class LoadExchange:
    """The exchange of one load of one rank, made by LoadPlanner.exchange. Used by one thread at a time. A context manager.

    As an iterator it gives the rounds: each begins when it is asked for and ends when the next one is, the last one when there
    is none. Who iterates over the exchanges of several ranks at once therefore asks all of them: `zip(..., strict=True)`.
    """

    def __init__(self, handle: Any, planner: Any, loaded: Callable[[Report], None]) -> None:
        self._handle: Any = handle
        self._planner = planner  # has the tensors
        self._loaded = loaded
        self._round: ExchangeRound | None = None
        self._memory: tuple[Any, ...] = ()  # of the round, behind its views
        self._ended = 0

    @property
    def round_count(self) -> int:
        """How many rounds there are, the same number on all ranks; 0 where nothing is exchanged."""
        return int(native.shw_load_exchange_round_count(self._handle))

    def begin_round(self) -> ExchangeRound:
        """Begins the next round: what this rank reads for others in it is there. FailedPreconditionError when the round before
        has not ended or there are no more; after any other error the load has failed."""
        outgoing, incoming = native.shw_py_exchange_begin_round(self._handle)
        self._round = ExchangeRound(tuple(outgoing), tuple(incoming))
        self._memory = (outgoing[0].obj, incoming[0].obj)
        return self._round

    def end_round(self) -> None:
        """Ends the round, whose `incoming` is filled: what came is checked and goes to where it is wanted. DataLossError when it
        is not what was stored. FailedPreconditionError without a round, and while an array or view that was made of the round's
        views is still there; then the round goes on, without its views."""
        self._release_views()
        native.shw_load_exchange_end_round(self._handle)
        self._ended += 1

    def finish(self) -> Report:
        """Reads what no other rank wants, once, when all rounds have ended. Where rounds are iterated over they have."""
        report = Report(native.shw_load_exchange_finish(self._handle))
        self._loaded(report)
        return report

    def close(self) -> None:
        """Releases the exchange. Twice is fine. FailedPreconditionError as for end_round."""
        self._release_views()
        native.shw_py_close(self._handle)

    def _release_views(self) -> None:
        if self._round is None:
            return
        with contextlib.suppress(BufferError):  # what was made of a view says below that it is there
            for view in (*self._round.outgoing, *self._round.incoming):
                view.release()
        if any(memory.is_used() for memory in self._memory):
            raise FailedPreconditionError("views of the round are still in use; let go of what was made of them before the "
                                          "round ends", {"hint": "del the array, or copy"})
        self._round, self._memory = None, ()

    def __iter__(self) -> Iterator[ExchangeRound]:
        while self._ended < self.round_count:
            yield self.begin_round()
            self.end_round()

    def __len__(self) -> int:
        return self.round_count

    def __enter__(self) -> LoadExchange:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a LoadExchange points into memory of this process and is not pickled; move what it has outgoing")
