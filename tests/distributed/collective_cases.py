# SPDX-License-Identifier: Apache-2.0
"""Cases on the collective itself: which one carries the calls, and what it does when ranks stop. Each launch runs them with
the collective that SHW_TORCH_COLLECTIVE names. The decorator says for which world sizes."""
import ctypes
import os
import sys

import shardwright
import shardwright.torch
import torch
import torch.distributed as dist
from cases import raised, ranks, store, transport_name

GIL = ctypes.PyDLL(None)  # its functions run without giving the interpreter lock back


def meet(place):
    """All ranks, by the store."""
    store().set(f"{place}/{dist.get_rank()}", "")
    store().wait([f"{place}/{rank}" for rank in range(dist.get_world_size())])


class wanting:
    """A word in the environment of this rank, for what is chosen meanwhile."""

    def __init__(self, word):
        self.word = word

    def __enter__(self):
        self.before = os.environ.pop("SHW_TORCH_COLLECTIVE", None)
        if self.word is not None:
            os.environ["SHW_TORCH_COLLECTIVE"] = self.word

    def __exit__(self, *_):
        os.environ.pop("SHW_TORCH_COLLECTIVE", None)
        if self.before is not None:
            os.environ["SHW_TORCH_COLLECTIVE"] = self.before


@ranks(2)
def ranks_agree_on_a_collective(folder):
    for words, kind in (((None, None), "c10d"), (("auto", "c10d"), "c10d"), (("python", None), "python"),
                        ((None, "python"), "python"), (("", "auto"), "c10d")):
        group = dist.new_group([0, 1])
        with wanting(words[dist.get_rank()]):
            found = shardwright.torch.collective_in_use(group)
        assert found.kind == kind, (words, found)
        assert bool(found.reason) == (kind == "python"), found
        assert found.in_memory == all(word in (None, "", "auto") for word in words), (words, found)
        if kind == "python":
            assert f"rank {words.index('python')}" in found.reason, found
        assert shardwright.torch.collective_in_use(group) is found
        shardwright.torch.save({"w": torch.ones(2)}, folder / "p", process_group=group)


@ranks(2)
def ranks_that_cannot_agree_are_told_so(folder):
    for words, kind, text in ((("python", "c10d"), shardwright.FailedPreconditionError, "is c10d on rank 1, which cannot be"),
                              (("gloo", "auto"), shardwright.InvalidArgumentError, "is 'gloo', not one of")):
        group = dist.new_group([0, 1])
        with wanting(words[dist.get_rank()]):
            error = raised(lambda group=group: shardwright.torch.save({"w": torch.ones(2)}, folder / "p", process_group=group))
        assert isinstance(error, kind) and text in str(error), repr(error)
    group = dist.new_group([0, 1])
    shardwright.torch.save({"w": torch.ones(2)}, folder / "p", process_group=group)


@ranks(2)
def a_rank_that_cannot_load_the_plugin_is_named(folder):
    from shardwright.torch import _c10d
    group, problem = dist.new_group([0, 1]), _c10d.problem
    if dist.get_rank() == 1:
        _c10d.problem = lambda: "it is not there"
    try:
        with wanting("auto"):
            found = shardwright.torch.collective_in_use(group)
        assert found == ("python", "rank 1: it is not there", True), found
    finally:
        _c10d.problem = problem
    assert shardwright.torch.save({"w": torch.ones(2)}, folder / "p", process_group=group).collective == "node"


@ranks(2)
def groups_without_gloo_have_it_made(folder):
    from shardwright.torch import _c10d
    has_gloo = _c10d._has_gloo
    group = dist.new_group([0, 1])
    _c10d._has_gloo = lambda _: False
    try:
        shardwright.torch.save({"w": torch.ones(2)}, folder / "p", process_group=group)
        shardwright.torch.save_async({"w": torch.ones(2)}, folder / "q", process_group=group).result(60)
    finally:
        _c10d._has_gloo = has_gloo


@ranks(2)
def a_failed_call_ends_the_group_and_the_next_one_makes_another(folder):
    end = shardwright.torch.collective()
    meet("enough")  # a rank that comes later than the abort would rightly begin anew
    if dist.get_rank() == 0:
        end.abort("rank 0 has had enough")
        raised(end.barrier)
    else:
        error = raised(lambda: [end.barrier() for _ in range(2)])
        assert isinstance(error, shardwright.AbortedError) and "had enough" in str(error), repr(error)
    error = raised(end.barrier)
    assert isinstance(error, shardwright.UnavailableError) and "anew" in str(error) and error.retryable, repr(error)
    shardwright.torch.save({"w": torch.ones(3)}, folder / "p")
    shardwright.torch.save_async({"w": torch.ones(3)}, folder / "q").result(60)
    number = torch.full((16,), dist.get_rank() + 1)
    dist.all_reduce(number)
    assert number.tolist() == [3] * 16, "the group of the caller is as it was"


@ranks(2)
def a_background_save_that_fails_is_followed_by_others(folder):
    for round_ in range(2):
        meet(f"failing/{round_}")
        options = {"deadline": 30}
        state = {"w": torch.full((4,), float(dist.get_rank()))}  # replicas that differ
        error = raised(lambda state=state, options=options: shardwright.torch.save_async(
            state, folder / "p", verify_replicas="always", **options).result(60))
        assert error is not None
        shardwright.torch.save_async({"w": torch.ones(3)}, folder / "p").result(60)


@ranks(2)
def background_saves_go_on_while_python_holds_its_lock(folder):
    """Both ranks hold the lock from the moment at which the job begins until the checkpoint is there: in C, which waits for
    the manifest. With the collective in Python it cannot come."""
    shardwright.torch.save_async({"w": torch.ones(3)}, folder / "warm").result(60)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # a thread that wants the lock waits until it is given back
    command = b"for i in $(seq %d); do test -e '%s' && exit 0; sleep 0.05; done; exit 1"
    patience = 1200 if transport_name() == "c10d" else 20
    try:
        meet("lock")
        job = shardwright.torch.save_async({"w": torch.ones(16 << 20)}, folder / "p")
        absent = GIL.system(command % (patience, str(folder / "p" / "manifest.shw").encode()))
    finally:
        sys.setswitchinterval(interval)
    assert (absent == 0) == (transport_name() == "c10d"), absent
    job.result(60)


@ranks(4)
def sub_groups_save_at_the_same_time(folder):
    rank = dist.get_rank()
    groups = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    own = groups[rank % 2]
    for _ in range(3):
        job = shardwright.torch.save_async({"w": torch.full((4,), float(rank % 2))}, folder / f"a{rank % 2}", process_group=own)
        shardwright.torch.save({"w": torch.full((4,), float(rank % 2))}, folder / f"b{rank % 2}", process_group=own)
        job.result(60)
    target = {"w": torch.zeros(4)}
    report = shardwright.torch.load(folder / f"b{rank % 2}", into=target, process_group=own)
    assert target["w"].tolist() == [rank % 2] * 4 and report.collective in ("c10d", "torch.distributed")


# ---- the stand-in in Python, whatever carries the calls of this launch ----


def transport():
    from shardwright.torch._groups import GroupTransport
    return GroupTransport(dist.group.WORLD)


def given_up(operation, late, place):
    """Rank 0 gives an operation up; only then rank 1 enters it. Gives rank 0 its error."""
    if dist.get_rank() == 0:
        error = raised(operation)
        store().set(place, "")
        store().wait([f"{place}/done"])
        return error
    store().wait([place])
    raised(late)  # Gloo may deliver it or not
    store().set(f"{place}/done", "")
    return None


@ranks(2)
def memory_is_left_alone_after_a_call_that_failed(folder):
    mine, out, rank = memoryview(bytearray(b"A" * 16)), memoryview(bytearray(b"-" * 32)), dist.get_rank()
    end = transport()
    error = given_up(lambda: end.all_gather(mine, out, 0.2), lambda: end.all_gather(mine, out, 5), "late/gather")
    assert rank or isinstance(error, shardwright.DeadlineExceededError) and bytes(out) == b"-" * 32, (error, bytes(out))
    end = transport()
    both = [mine, [8, 8], out[:16], [8, 8]]
    error = given_up(lambda: end.all_to_all_v(*both, 0.2), lambda: end.all_to_all_v(*both, 5), "late/pairs")
    assert rank or isinstance(error, shardwright.DeadlineExceededError) and bytes(out) == b"-" * 32, (error, bytes(out))
    end = transport()
    error = given_up(lambda: end.broadcast(mine, 1, 0.2), lambda: end.broadcast(memoryview(bytearray(16)), 1, 5), "late/root")
    assert rank or isinstance(error, shardwright.DeadlineExceededError) and bytes(mine) == b"A" * 16, (error, bytes(mine))
    number = torch.full((16,), rank + 1)
    dist.all_reduce(number)
    assert number.tolist() == [3] * 16, "the group of the caller is as it was"


@ranks(2)
def a_root_that_nobody_sends_to_gives_up_and_its_memory_is_left_alone(folder):
    mine, out, rank = memoryview(bytearray(b"A" * 16)), memoryview(bytearray(b"-" * 32)), dist.get_rank()
    end = transport()
    end._check_sizes = lambda *_: None  # both are past it
    error = given_up(lambda: end.gather_v(mine, out, [16, 16], 0, 0.2), lambda: end.gather_v(mine, out[:0], None, 0, 5),
                     "late/rooted")
    assert rank or isinstance(error, shardwright.DeadlineExceededError) and bytes(out[16:]) == b"-" * 16, (error, bytes(out))
    end = transport()
    end.barrier(None)


@ranks(2)
def a_group_that_was_given_up_is_replaced_by_the_next_call(folder):
    end = transport()
    if dist.get_rank() == 0:
        error = raised(lambda: end.barrier(0.2))
        store().set("given up", "")
    else:
        store().wait(["given up"])
        error = raised(lambda: [end.barrier(60) for _ in range(2)])  # the first one may meet what rank 0 left behind
    assert isinstance(error, shardwright.DeadlineExceededError) and "rank 0" in str(error), repr(error)
    error = raised(lambda: end.barrier(60))
    assert isinstance(error, shardwright.UnavailableError) and "anew" in str(error) and error.retryable, repr(error)
    shardwright.torch.save({"w": torch.ones(3)}, folder / "p")
    shardwright.torch.save_async({"w": torch.ones(3)}, folder / "q").result(60)


@ranks(2)
def an_abort_reaches_the_ranks_that_wait(folder):
    for text in ("first", "second"):
        end = shardwright.torch.collective()
        dist.barrier()  # a rank that comes later than the abort would rightly begin anew
        if dist.get_rank() == 0:
            end.abort(text)
        else:
            error = raised(end.barrier)
            assert isinstance(error, shardwright.AbortedError) and text in str(error), repr(error)
    shardwright.torch.save({"w": torch.ones(3)}, folder / "p")


@ranks(2)
def a_rank_that_missed_the_end_of_a_call_meets_the_others_in_the_next(folder):
    from shardwright.torch import _side
    end, ended = transport(), _side._ended
    store().set(f"missed/{dist.get_rank()}", "")
    store().wait(["missed/0", "missed/1"])
    if dist.get_rank() == 1:
        end.abort(10, "gave up")
    else:
        def asked_too_early(side):
            _side._ended = ended
            return False
        _side._ended = asked_too_early
    shardwright.torch.save({"w": torch.ones(3)}, folder / "p", deadline=60)
    shardwright.torch.save({"w": torch.ones(3)}, folder / "p", deadline=60)
