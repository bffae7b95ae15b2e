# SPDX-License-Identifier: Apache-2.0
"""Three ranks in one process read for each other, and the test moves plans and bytes: a checkpoint saved in rows is loaded in
columns, and a replica."""
import gc
import pickle
import weakref

import numpy as np
import pytest
import shardwright

RANKS, ROWS, COLUMNS = 3, 1023, 3 * 1024
WIDTH = COLUMNS // RANKS
WHOLE = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
REPLICA = -np.arange(2**20, dtype=np.float32)


def rows_of(rank):
    begin = ROWS * rank // RANKS
    part = WHOLE[begin:ROWS * (rank + 1) // RANKS]
    return {"w": shardwright.Shard(part, WHOLE.shape, boxes=(((begin, 0), part.shape),)), "r": REPLICA, "step": 3}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("exchange") / "p"
    planners = [shardwright.SavePlanner(rows_of(r), path=path, rank=r, world_size=RANKS) for r in range(RANKS)]
    parts = planners[0].global_plan([p.local_plan() for p in planners])
    for planner, part in zip(planners, parts, strict=True):
        planner.finish(part)
    planners[0].commit([p.execute() for p in planners])
    return path


class Loader:
    """One rank of the load."""

    def __init__(self, path, rank, **options):
        self.columns, self.replica = np.zeros((ROWS, WIDTH), np.float32), np.zeros_like(REPLICA)
        shard = shardwright.Shard(self.columns, WHOLE.shape, boxes=(((0, rank * WIDTH), (ROWS, WIDTH)),))
        self.state = {"w": shard, "r": self.replica, "step": 0}
        with shardwright.open(path) as checkpoint:
            self.planner = shardwright.LoadPlanner(checkpoint, self.state, rank=rank, **options)
        self.plan = self.planner.local_plan()

    def is_loaded(self, rank):
        return ((self.columns == WHOLE[:, rank * WIDTH:(rank + 1) * WIDTH]).all() and (self.replica == REPLICA).all()
                and self.state["step"] == 3)


def start(path, **options):
    """Loaders and what the exchange plans say as bytes, as if they had come from elsewhere."""
    loaders = [Loader(path, rank, **options) for rank in range(RANKS)]
    wants = [loader.planner.want_list(RANKS) for loader in loaders]
    assert [(w.kind, w.rank) for w in wants] == [("want_list", r) for r in range(RANKS)]
    plans = shardwright.exchange_plans([shardwright.Plan.from_bytes(w.to_bytes()) for w in wants])
    assert [(p.kind, p.rank) for p in plans] == [("exchange", r) for r in range(RANKS)]
    return loaders, [shardwright.Plan.from_bytes(p.to_bytes()) for p in plans]


def exchanges_of(loaders, plans):
    return [loader.planner.exchange(plan) for loader, plan in zip(loaders, plans, strict=True)]


def move(rounds):
    """What a transport would do."""
    for to, mine in enumerate(rounds):
        for sender, theirs in enumerate(rounds):
            mine.incoming[sender][:] = theirs.outgoing[to]


def test_each_byte_is_read_once(saved):
    loaders, plans = start(saved)
    exchanges = exchanges_of(loaders, plans)
    assert len({len(e) for e in exchanges}) == 1 and len(exchanges[0]) == exchanges[0].round_count > 0
    for rounds in zip(*exchanges, strict=True):
        assert [len(r.outgoing) for r in rounds] == [len(r.incoming) for r in rounds] == [RANKS] * RANKS
        assert all(view.readonly for r in rounds for view in r.outgoing)
        move(rounds)
    reports = [e.finish() for e in exchanges]
    assert all(loader.is_loaded(rank) for rank, loader in enumerate(loaders))
    payload = WHOLE.nbytes + REPLICA.nbytes
    assert payload <= sum(r.bytes_read for r in reports) <= 1.05 * payload
    assert 1.9 * payload < sum(r.bytes_received for r in reports) <= 2 * payload + 4096
    assert reports[0].loaded == reports[1].loaded and "w" in reports[0].loaded


def test_steps_out_of_order_are_refused(saved):
    loaders, plans = start(saved)
    exchange = loaders[0].planner.exchange(plans[0])
    for step in (exchange.end_round, exchange.finish):
        with pytest.raises(shardwright.FailedPreconditionError):
            step()
    exchange.begin_round()
    for step in (exchange.begin_round, exchange.finish):
        with pytest.raises(shardwright.FailedPreconditionError):
            step()
    exchange.close()
    with pytest.raises(shardwright.FailedPreconditionError, match="closed"):
        exchange.begin_round()
    exchanges = exchanges_of(loaders, plans)
    for rounds in zip(*exchanges, strict=True):
        move(rounds)
    for exchange in exchanges:
        assert list(exchange) == []
        exchange.finish()
        with pytest.raises(shardwright.FailedPreconditionError):
            exchange.begin_round()
        with pytest.raises(shardwright.FailedPreconditionError):
            exchange.finish()


def test_plans_of_others_are_refused(saved):
    loaders, plans = start(saved)
    planner = loaders[0].planner
    with pytest.raises(shardwright.FailedPreconditionError, match="of rank 1"):
        planner.exchange(plans[1])
    with pytest.raises(shardwright.InvalidArgumentError):
        planner.exchange(loaders[0].plan)
    with pytest.raises(shardwright.FailedPreconditionError, match="local_plan"):
        with shardwright.open(saved) as checkpoint:
            shardwright.LoadPlanner(checkpoint, {"r": np.zeros_like(REPLICA)}).want_list(1)
    with pytest.raises(shardwright.InvalidArgumentError, match="there are 2 ranks"):
        loaders[2].planner.want_list(2)
    wants = [loader.planner.want_list(RANKS) for loader in loaders]
    for given in ([], wants[:2], [wants[1], wants[0], wants[2]], [wants[0], loaders[1].plan, wants[2]]):
        with pytest.raises(shardwright.InvalidArgumentError):
            shardwright.exchange_plans(given)
    other = np.zeros(REPLICA.shape, np.float32)
    with shardwright.open(saved) as checkpoint:
        small = shardwright.LoadPlanner(checkpoint, {"r": other}, rank=0)
        small.local_plan()
        with pytest.raises(shardwright.FailedPreconditionError, match="blocks"):
            small.exchange(plans[0])


def test_views_end_with_their_round(saved):
    loaders, plans = start(saved)
    exchange = loaders[0].planner.exchange(plans[0])
    part = exchange.begin_round()
    kept, inner = np.frombuffer(part.incoming[1], np.uint8), memoryview(part.outgoing[2])
    with pytest.raises(shardwright.FailedPreconditionError, match="still in use"):
        exchange.end_round()
    with pytest.raises(shardwright.FailedPreconditionError, match="still in use"):
        exchange.close()
    assert kept.size >= 0  # the memory is there as long as the array
    del kept
    with pytest.raises(shardwright.FailedPreconditionError, match="still in use"):
        exchange.close()
    inner.release()
    exchange.close()
    exchange.close()
    for view in (*part.outgoing, *part.incoming):
        with pytest.raises(ValueError, match="released"):
            view.tobytes()


def test_memory_stays_as_long_as_a_view(saved):
    loaders, plans = start(saved)
    exchange = loaders[0].planner.exchange(plans[0])
    part = exchange.begin_round()
    told = [(bytes(view), view) for view in part.outgoing]
    gone = weakref.ref(exchange)
    del exchange, part, loaders
    gc.collect()
    assert gone() is None
    for content, view in told:
        assert bytes(view) == content


def test_what_came_is_checked(saved):
    loaders, plans = start(saved)
    exchanges = exchanges_of(loaders, plans)
    while not any(map(len, (rounds := [e.begin_round() for e in exchanges])[1].incoming)):
        for exchange in exchanges:
            exchange.end_round()
    move(rounds)
    view = max(rounds[1].incoming, key=len)
    view[len(view) // 2] ^= 1
    with pytest.raises(shardwright.DataLossError):
        exchanges[1].end_round()
    with pytest.raises(shardwright.DataLossError):
        exchanges[1].finish()


def test_a_rank_by_itself_has_no_rounds(saved):
    loader = Loader(saved, 0)
    plan, = shardwright.exchange_plans([loader.planner.want_list(1)])
    with loader.planner.exchange(plan) as exchange:
        assert list(exchange) == [] and exchange.round_count == 0
        exchange.finish()
    assert loader.is_loaded(0)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(exchange)


def test_machines_are_texts_without_nul():
    shardwright.Context(threads=1, machine="a").close()
    with pytest.raises(shardwright.InvalidArgumentError, match="NUL"):
        shardwright.Context(threads=1, machine="a\0b")
