# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on one rank on its way to the library ends the call on the others at once."""
import threading

import numpy as np
import pytest
import shardwright
from shardwright import errors
from shardwright.collective import thread_collectives


class Leaf:
    pass


def good():
    return {"w": np.arange(4, dtype=np.float32)}


def outside():
    return {"w": shardwright.Shard(np.ones(4, np.float32), (4,), boxes=(((2,), (4,)),))}


def save(path, collective, state, **options):
    shardwright.save(state(), path, collective=collective, **options)


def save_async(path, collective, state, **options):
    shardwright.save_async(state(), path, collective=collective, **options).result()


def load(path, collective, state, **options):
    shardwright.load(path, state(), collective=collective, **options)


def load_all(path, collective, state, **options):
    shardwright.load(path if state is good else path / "nowhere", collective=collective, **options)


def load_async(path, collective, state, **options):
    shardwright.load_async(path, state(), collective=collective, **options).result()


FAULTS = {
    "bad leaf": lambda call, path, end: call(path, end, lambda: {"w": Leaf()}),
    "bad option": lambda call, path, end: call(path, end, good, weather="fine"),
    "bad value": lambda call, path, end: call(path, end, good, threads=-7),
    "box outside": lambda call, path, end: call(path, end, outside),
    "no path": lambda call, path, end: call(None, end, good),
}


def run(call, fault, path):
    """What each rank raised; the second one does something wrong."""
    raised = [None, None]

    def rank(number, end, body):
        try:
            body(call, path, end)
        except Exception as e:  # noqa: BLE001 - whatever it is, it is looked at
            raised[number] = e

    bodies = [lambda call, path, end: call(path, end, good), fault]
    threads = [threading.Thread(target=rank, args=(i, end, bodies[i])) for i, end in enumerate(thread_collectives(2))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


@pytest.mark.parametrize("call", [save, save_async, load, load_all, load_async], ids=lambda call: call.__name__)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_rank_that_cannot_call_tells_the_others(call, fault, tmp_path):
    shardwright.save(good(), tmp_path / "c")
    first, second = run(call, FAULTS[fault], tmp_path / "c")
    assert second is not None
    assert isinstance(first, errors.ShardwrightError) and not isinstance(first, errors.DeadlineExceededError)
    assert "rank 1 of 2 failed" in first.message and first.details["rank"] == "1"
    shardwright.load(tmp_path / "c", good())
