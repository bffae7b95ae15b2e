# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C in calls of shardwright.hsdp that wait for a rank that does not come."""
import os
import signal
import sys
import threading

import numpy as np
import pytest
import shardwright
from shardwright.hsdp import Hsdp, Mesh, Param, _interrupts, thread_communicators

SECONDS = 60.0  # of each operation: a signal that is missed ends a test with another error
WEIGHT = np.arange(12, dtype=np.float32).reshape(4, 3)
STEPS = {"seal": lambda hsdp, unit: unit.seal(),
         "pre_forward": lambda hsdp, unit: unit.pre_forward(),
         "post_forward": lambda hsdp, unit: unit.post_forward(),
         "pre_backward": lambda hsdp, unit: unit.pre_backward(),
         "post_backward": lambda hsdp, unit: (unit.add_grads([0], [WEIGHT]), unit.post_backward()),
         "finalize_backward": lambda hsdp, unit: hsdp.finalize_backward(),
         "global_norm": lambda hsdp, unit: hsdp.global_norm()}
# What travels for the last of these is asked for by the one before.
MISSED_FROM = {"finalize_backward": "post_backward"}


def rank_of(rank, end):
    mesh = Mesh((2,), rank=rank)
    mesh.set_communicator(0, end)
    hsdp = Hsdp(mesh, timeout=SECONDS, order_guard_steps=0)
    unit = hsdp.unit("layer", reshard_after_forward=True)
    unit.add_params([Param("weight", WEIGHT)])
    return mesh, hsdp, unit


def before(name):
    names = list(STEPS)
    return names[:names.index(name)]


def in_thread(call):
    """Begins the call; what it returned or raised comes from the function."""
    found = []

    def run():
        try:
            found.append(call())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def join():
        thread.join()
        return found[0]

    return join


def run_steps(names, hsdp, unit):
    for name in names:
        STEPS[name](hsdp, unit)


def when_main_waits(then):
    """Calls `then` on another thread once the main one is in C."""
    main = threading.main_thread().ident

    def look():
        while sys._current_frames()[main].f_code is not _interrupts._armed.__code__ or _interrupts._watch().give_up is None:
            os.sched_yield()
        then()

    return in_thread(look)


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("name", ["seal", "pre_forward", "pre_backward", "finalize_backward", "global_norm"])
def test_an_interrupt_ends_a_call_on_all_ranks(name):
    ends = thread_communicators(2)
    _, hsdp, unit = rank_of(0, ends[0])
    _, other, other_unit = rank_of(1, ends[1])
    missed = MISSED_FROM.get(name, name)
    join = in_thread(lambda: run_steps(before(missed), other, other_unit))
    run_steps(before(name), hsdp, unit)
    assert join() is None
    joins = when_main_waits(interrupt)
    with pytest.raises(KeyboardInterrupt):
        STEPS[name](hsdp, unit)
    assert joins() is None
    late = in_thread(lambda: run_steps([missed, name], other, other_unit))()
    assert isinstance(late, shardwright.CancelledError) and "rank 0 was interrupted" in str(late), late
    if name == "seal":
        return
    # A signal that came just before the call began has ended the communicators, not the context: the next wait finds that.
    with pytest.raises((shardwright.FailedPreconditionError, shardwright.CancelledError), match="rank 0 was interrupted"):
        unit.pre_forward()


def test_all_go_on_after_an_interrupt():
    ends, fresh = thread_communicators(2), thread_communicators(2)
    ranks = [rank_of(rank, ends[rank]) for rank in range(2)]
    join = in_thread(ranks[1][2].seal)
    ranks[0][2].seal()
    assert join() is None
    joins = when_main_waits(interrupt)
    with pytest.raises(KeyboardInterrupt):
        ranks[0][2].pre_forward()
    assert joins() is None

    def go_on(rank):
        mesh, hsdp, unit = ranks[rank]
        mesh.set_communicator(0, fresh[rank])
        hsdp.reset()
        run_steps(list(STEPS)[1:], hsdp, unit)
        return unit.grad(0).numpy().copy()

    join = in_thread(lambda: go_on(1))
    assert np.array_equal(np.concatenate([go_on(0), join()]), WEIGHT)


def test_signals_that_the_host_handles_end_nothing():
    """They go on to where the host hears of them, and their handlers run after the call."""
    ends = thread_communicators(2)
    ranks = [rank_of(rank, ends[rank]) for rank in range(2)]
    heard = []
    begin, end = os.pipe()
    os.set_blocking(end, False)
    handler = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    wakeup = signal.set_wakeup_fd(end)
    try:
        def come_late():
            interrupt()
            assert os.read(begin, 1) == bytes([signal.SIGINT])
            ranks[1][2].seal()

        joins = when_main_waits(come_late)
        ranks[0][2].seal()
        assert joins() is None and heard == [signal.SIGINT]
        assert signal.set_wakeup_fd(end) == end
    finally:
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGINT, handler)
        os.close(begin)
        os.close(end)


def test_other_threads_wait_as_before():
    ends = thread_communicators(2)
    joins = [in_thread(rank_of(rank, ends[rank])[2].seal) for rank in range(2)]
    assert [join() for join in joins] == [None, None]
