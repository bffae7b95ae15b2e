# SPDX-License-Identifier: Apache-2.0
"""What two ranks do with saves in the background: in our queues, in those of megatron-core and the processes that they fork and
spawn, and when such a process is killed."""
import concurrent.futures
import json
import multiprocessing
import os
import signal
from unittest import mock

import torch
import torch.distributed as dist
from megatron.core.dist_checkpointing.strategies import async_utils
from rank_cases import original
from shardwright.torch import megatron as ours
from shardwright.torch.megatron.strategies._pending import Pending, wait_until_ended
from states import assert_equal
from strategy_cases import expected, failure_of, full_state, load, save, saver

CASES = []
ANSWER_SECONDS = 80  # below those of a case


def case(function):
    CASES.append(function)
    return function


@case
def a_save_in_the_background_is_finalized_by_either_queue(folder, rank):
    """Tensors change as soon as the call returns; the marker comes after the data."""
    queues = {"ours": ours.AsyncCallsQueue(), "persistent": ours.AsyncCallsQueue(persistent=True),
              "theirs": async_utils.AsyncCallsQueue()}
    for name, calls in queues.items():
        tree = full_state(rank)
        request = save(tree, folder / name, saver(), async_sharded_save=True)
        for leaf in ours.nested_values(tree["sharded"]):
            if hasattr(leaf, "local_shape"):
                leaf.data.fill_(-5)
        assert not (folder / name / "metadata.json").exists()
        dist.barrier()
        assert calls.schedule_async_request(request) == 0 and calls.get_num_unfinalized_calls() == 1
        assert calls.maybe_finalize_async_calls(blocking=True) == [0] and calls.get_num_unfinalized_calls() == 0
        assert json.loads((folder / name / "metadata.json").read_text())["sharded_backend"] == "torch_dist"
        assert_equal(load(rank, folder / name, original.strategies.TorchDistLoadShardedStrategy()), expected(rank))
        calls.close()


@case
def another_process_waits_for_a_save_and_its_death_harms_nobody(folder, rank):
    """What Megatron's queues do with the function of a request."""
    request = save(full_state(rank), folder / "c", saver(), async_sharded_save=True)
    if rank == 0:
        spawned, killed = (multiprocessing.get_context("spawn").Process(target=request.async_fn, args=request.async_fn_args)
                           for _ in range(2))
        spawned.start()
        killed.start()
        killed.kill()
        killed.join()
        spawned.join()
        assert spawned.exitcode == 0
    request.execute_sync()
    assert_equal(load(rank, folder / "c", ours.TorchDistLoadShardedStrategy()), expected(rank))
    path = request.async_fn_args[0]
    assert not os.path.exists(path)


class Waiting(ours.TorchDistSaveShardedStrategy):
    """The child of a queue waits until `let_go`, whenever the save ends."""

    def _get_save_and_finalize_callbacks(self, writer, save_state_dict_ret):
        self._until = concurrent.futures.Future()
        self._held = Pending(self._until)
        return super()._get_save_and_finalize_callbacks(writer, save_state_dict_ret)._replace(async_fn_args=self._held.arguments)

    def let_go(self):
        self._until.set_result(None)


@case
def the_death_of_the_child_that_a_queue_forks_loses_and_hangs_nothing(folder, rank):
    """Its queue takes the death for the end; the first finalizer waits for the save itself. The other child ends by itself."""
    strategy, calls = Waiting("torch_dist", 1), async_utils.AsyncCallsQueue()
    request = save(full_state(rank), folder / "c", strategy, async_sharded_save=True)
    with mock.patch.object(async_utils, "mp", multiprocessing):  # it forks, which it does not elsewhere here (originals.py)
        calls.schedule_async_request(request)
    child = calls.async_calls[0].async_caller.process
    if rank == 0:
        child.kill()
        child.join()
        assert child.exitcode == -signal.SIGKILL
    else:
        strategy.let_go()
    assert calls.maybe_finalize_async_calls(blocking=True) == [0]
    assert_equal(load(rank, folder / "c", ours.TorchDistLoadShardedStrategy()), expected(rank))
    if rank == 0:
        strategy.let_go()


@case
def a_queue_with_a_spawned_worker_finalizes_a_save_of_ours(folder, rank):
    """Its worker takes requests of its own class alone, and answers no other; a poll that blocks would wait for ever."""
    calls = async_utils.AsyncCallsQueue(persistent=True)
    try:
        for count in range(2):
            calls.schedule_async_request(save(full_state(rank), folder / f"c{count}", saver(), async_sharded_save=True))
            calls.persistent_caller.cur_item = calls.persistent_caller.comp_q.get(timeout=ANSWER_SECONDS)
            assert calls.maybe_finalize_async_calls(blocking=True) == [count]
            assert_equal(load(rank, folder / f"c{count}", ours.TorchDistLoadShardedStrategy()), expected(rank))
    finally:
        calls.close(abort=True)


@case
def the_death_of_a_spawned_worker_loses_nothing_and_holds_no_step_of_training(folder, rank):
    """Its queue goes on asking a worker that is gone; what was saved is finalized without it."""
    strategy, calls = Waiting("torch_dist", 1), async_utils.AsyncCallsQueue(persistent=True)
    request = save(full_state(rank), folder / "c", strategy, async_sharded_save=True)
    calls.schedule_async_request(request)
    worker = calls.persistent_caller.process
    worker.kill()
    worker.join()
    assert worker.exitcode == -signal.SIGKILL
    assert calls.maybe_finalize_async_calls() == []
    calls.close(abort=True)
    strategy.let_go()
    assert not (folder / "c" / "metadata.json").exists()
    dist.barrier()
    request.execute_sync()
    assert_equal(load(rank, folder / "c", ours.TorchDistLoadShardedStrategy()), expected(rank))


@case
def a_queue_of_install_has_no_child(folder, rank):
    for persistent in (False, True):
        with ours.install():
            calls = async_utils.AsyncCallsQueue(persistent=persistent)
            calls.schedule_async_request(save(full_state(rank), folder / f"c{persistent}", None, async_sharded_save=True))
            assert multiprocessing.active_children() == []
            assert calls.maybe_finalize_async_calls(blocking=True) == [0]
            calls.close()
            assert_equal(load(rank, folder / f"c{persistent}", None), expected(rank))


@case
def a_process_that_waits_is_held_until_the_end(folder, rank):
    """The lock is what holds it: it is still waiting while the save is, and is let go by the end."""
    if rank != 0:
        return
    save_that_lasts = concurrent.futures.Future()
    pending = Pending(save_that_lasts)
    waiting, told = multiprocessing.get_context("spawn"), multiprocessing.get_context("spawn").Queue()
    process = waiting.Process(target=_wait_and_tell, args=(pending.arguments, told))
    process.start()
    assert told.get() == "waits"
    # It can end only by the lock; were that not held, the line after it would be there before the end is.
    process.join(timeout=1.0)
    assert process.exitcode is None and told.empty()
    save_that_lasts.set_result(None)
    assert told.get() == "ended"
    process.join()
    wait_until_ended(*pending.arguments)  # of a save that has ended


def _wait_and_tell(arguments, told):
    told.put("waits")
    wait_until_ended(*arguments)
    told.put("ended")


@case
def a_queue_tells_all_ranks_of_the_first_failure(folder, rank):
    """Of functions that are not ours, too: no finalizer runs, and the next request is served."""
    def write(first, second):
        if rank == 1:
            raise OSError("no room")

    for persistent in (False, True):
        calls, later = ours.AsyncCallsQueue(persistent), []
        calls.schedule_async_request(ours.AsyncRequest(write, (1, 2), [lambda: later.append("never")]))
        calls.schedule_async_request(ours.AsyncRequest(None, (), [lambda: later.append("next")]))
        error = failure_of(lambda: calls.maybe_finalize_async_calls(blocking=True))
        assert "rank 1" in str(error) and "no room" in str(error) and later == []
        assert calls.maybe_finalize_async_calls(blocking=True) == [1] and later == ["next"]
        calls.close()
    staged = []
    calls = ours.AsyncCallsQueue()
    calls.schedule_async_request(ours.AsyncRequest(lambda *a: staged.append(a), (1, None, 3), [], preload_fn=lambda: 2))
    assert calls.maybe_finalize_async_calls(blocking=True) == [0] and staged == [(1, 2, 3)]
    frozen = ours.AsyncRequest(None, (), []).freeze()
    assert isinstance(failure_of(lambda: frozen.add_finalize_fn(print)), RuntimeError)
