# SPDX-License-Identifier: Apache-2.0
"""rank_local entries: each rank gets its own, in every call; an open checkpoint lists each name once, with its ranks."""
import threading

import numpy
import pytest
import shardwright

KINDS = {"own": "rank_local", "rng": "rank_local", "late": "rank_local"}


def together(size, work):
    """What `work(rank, end)` gives on each rank of a world of threads; an exception is raised here."""
    ends, found = shardwright.thread_collectives(size), [None] * size

    def run(rank):
        try:
            found[rank] = work(rank, ends[rank])
        except BaseException as e:
            found[rank] = e

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in found:
        if isinstance(result, BaseException):
            raise result
    return found


def state_of(rank):
    """Rank 1 alone has `late`; shapes of `own` differ."""
    state = {"w": numpy.arange(4.0), "own": numpy.full(2 + rank, rank, "int32"), "rng": {"seed": rank}}
    return state | ({"late": numpy.array([7])} if rank == 1 else {})


@pytest.fixture
def path(tmp_path):
    together(2, lambda rank, end: shardwright.save(state_of(rank), tmp_path / "p", collective=end, kind=KINDS))
    return tmp_path / "p"


def plain(found):
    return {name: value.numpy().tolist() if hasattr(value, "numpy") else value for name, value in found.items()}


def expected(rank):
    own = {"own": [rank] * (2 + rank), "rng": {"seed": rank}} if rank < 2 else {}
    return {"w": [0.0, 1.0, 2.0, 3.0], **own, **({"late": [7]} if rank == 1 else {})}


@pytest.mark.parametrize("size", [1, 2, 3])
def test_each_rank_of_a_load_without_a_target_gets_its_own(path, size):
    found = together(size, lambda rank, end: plain(shardwright.load(path, collective=end)))
    assert found == [expected(rank) for rank in range(size)]


def test_a_load_without_a_collective_is_that_of_rank_0(path):
    assert plain(shardwright.load(path)) == expected(0)
    into = {"own": numpy.zeros(2, "int32"), "rng": None}
    shardwright.load(path, into)
    assert into["own"].tolist() == [0, 0] and into["rng"] == {"seed": 0}


@pytest.mark.parametrize("background", [False, True])
def test_each_rank_fills_its_own_entries(path, background):
    def load(rank, end):
        into = {"own": numpy.zeros(2 + rank, "int32"), "rng": {"seed": -1}}
        if background:
            shardwright.load_async(path, into, collective=end).result()
        else:
            shardwright.load(path, into, collective=end)
        return into["own"].tolist(), into["rng"]

    assert together(2, load) == [([0, 0], {"seed": 0}), ([1, 1, 1], {"seed": 1})]


def test_a_rank_that_saved_none_is_told_which_ranks_did(path):
    def load(rank, end):
        shardwright.load(path, {"rng": None} if rank == 2 else {"w": numpy.zeros(4)}, collective=end)

    with pytest.raises(shardwright.NotFoundError, match="rank 2; it is stored as rank_local of 2 ranks: 0, 1"):
        together(3, load)


def test_an_open_checkpoint_lists_each_name_once_with_its_ranks(path):
    with shardwright.open(path) as c:
        assert sorted(c.keys()) == sorted(c) == ["late", "own", "w"] and len(c) == 3
        assert {name: c.ranks(name) for name in ("w", "own", "rng", "late")} == {
            "w": [], "own": [0, 1], "rng": [0, 1], "late": [1]}
        assert [c.tensor("own", rank=rank).shape for rank in (0, 1)] == [(2,), (3,)]
        assert [c.object("rng", rank=rank) for rank in (0, 1)] == [{"seed": 0}, {"seed": 1}]
        with pytest.raises(shardwright.NotFoundError, match="own"):
            c.ranks("onw")


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_checkpoint_opened_for_a_rank_shows_what_this_rank_is_given(path, rank):
    with shardwright.open(path, rank=rank) as c:
        shown = {name: c[name].numpy().tolist() for name in c} | c.objects()
        assert shown == expected(rank)
        assert sorted(c.digest()) == sorted(c.keys()) and ("late" in c) == (rank == 1)
