# SPDX-License-Identifier: Apache-2.0
"""Padding of a vocabulary that is stored beside what ranks hold, or left out: saves, loads, refusals."""
import json
import threading

import numpy as np
import pytest
import shardwright

WIDTH = 3


def rows(begin, end):
    return np.arange(begin * WIDTH, end * WIDTH, dtype=np.float32).reshape(end - begin, WIDTH) + 1


def pad(size, real=None):
    step = {"axis": 0, "size": size} | ({} if real is None else {"real": real})
    return shardwright.Mapping(json.dumps({"schema": 1, "rules": [{"match": "embedding", "steps": [{"pad": step}]}]}))


def state_of(held, rank, ranks, mapping, writable=False):
    return shardwright.State({"embedding": shardwright.Shard.of_grid(held, (ranks, 1), (rank, 0))}, mapping=mapping,
                             writable=writable)


def on_ranks(ranks, function):
    failures = []

    def call(rank, collective):
        try:
            function(rank, collective)
        except BaseException as error:  # told below
            failures.append(error)

    threads = [threading.Thread(target=call, args=(rank, collective))
               for rank, collective in enumerate(shardwright.thread_collectives(ranks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def save(path, held_rows, ranks, mapping, **options):
    """Each rank has its share of so many rows in all."""
    share = held_rows // ranks

    def one(rank, collective):
        state = state_of(rows(rank * share, rank * share + share), rank, ranks, mapping)
        shardwright.save(state, path, collective=collective, **options)

    on_ranks(ranks, one)


def loaded(path, held_rows, ranks, mapping):
    """What ranks that have so many rows in all get, in row order; memory was full of sevens."""
    share = held_rows // ranks
    memory = np.full((held_rows, WIDTH), 7, dtype=np.float32)

    def one(rank, collective):
        state = state_of(memory[rank * share:rank * share + share], rank, ranks, mapping, writable=True)
        shardwright.load(path, into=state, collective=collective)

    on_ranks(ranks, one)
    return memory


@pytest.mark.parametrize("format", ["native", "torch_dcp", "megatron"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_padding_that_nobody_has_is_stored_as_zeros(format, ranks, tmp_path):
    save(tmp_path / "c", 8, ranks, pad(11, real=6), format=format)
    with shardwright.open(tmp_path / "c") as checkpoint:
        stored = np.asarray(checkpoint["embedding"][:])
    assert (stored[:8] == rows(0, 8)).all() and stored.shape == (11, WIDTH) and not stored[8:].any()


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_larger_table_gets_zeros_behind_what_is_stored(ranks, tmp_path):
    save(tmp_path / "c", 6, 2, pad(6))
    found = loaded(tmp_path / "c", 12, ranks, pad(6))
    assert (found[:6] == rows(0, 6)).all() and not found[6:].any()


def test_a_smaller_table_leaves_stored_padding_out(tmp_path):
    save(tmp_path / "c", 12, 2, pad(12))  # with rows of padding that are no zeros
    mapping = pad(12, real=5)
    assert (loaded(tmp_path / "c", 8, 2, mapping) == rows(0, 8)).all()
    # A save of a state that was loaded into has zeros there again.
    held = np.zeros((8, WIDTH), dtype=np.float32)
    state = state_of(held, 0, 1, mapping, writable=True)
    shardwright.load(tmp_path / "c", into=state)
    shardwright.save(state, tmp_path / "d")
    with shardwright.open(tmp_path / "d") as checkpoint:
        stored = np.asarray(checkpoint["embedding"][:])
    assert (stored[:8] == rows(0, 8)).all() and not stored[8:].any()


def test_sizes_of_padding_come_and_go(tmp_path):
    """Jobs whose tables have 8, 12 and 10 rows, of which 7 are real, give each other theirs."""
    digests = []
    for number, (held, ranks) in enumerate([(8, 2), (12, 3), (10, 1), (8, 4)]):
        path = tmp_path / str(number)
        if number == 0:
            save(path, held, ranks, pad(7))
        else:
            memory = loaded(tmp_path / str(number - 1), held, ranks, pad(7))
            assert (memory[:7] == rows(0, 7)).all() and not memory[7:].any()
            shardwright.save(state_of(memory, 0, 1, pad(7)), path)
        with shardwright.open(path) as checkpoint:
            digests.append(checkpoint["embedding"].digest())
    assert len(set(digests)) == 1


@pytest.mark.parametrize("size, real, text", [(9, None, r"pad\.size.*8 of 9 elements.*\"real\""), (10, 9, r"pad\.real.*8 of 9")])
def test_real_rows_are_not_cut(size, real, text):
    with pytest.raises(shardwright.InvalidArgumentError, match=text) as caught:
        state_of(rows(0, 4), 0, 2, pad(size, real))
    assert caught.value.details["rule"] == "1" and caught.value.details["tensor"] == "embedding"


def test_a_stored_table_of_another_size_is_refused(tmp_path):
    save(tmp_path / "c", 8, 1, pad(8))
    with pytest.raises(shardwright.InvalidArgumentError, match="embedding"):
        shardwright.load(tmp_path / "c", into=state_of(rows(0, 8), 0, 1, pad(6), writable=True))


def test_memory_that_is_cleared_must_be_writable(tmp_path):
    save(tmp_path / "c", 8, 1, pad(4))
    held = rows(4, 8)  # a rank that holds nothing but padding
    held.flags.writeable = False
    other = shardwright.State({"embedding": shardwright.Shard(held, (8, WIDTH), boxes=(((4, 0), (4, WIDTH)),))}, mapping=pad(4),
                              writable=True)
    with pytest.raises(shardwright.InvalidArgumentError, match="read-only"):
        shardwright.load(tmp_path / "c", into=other)
