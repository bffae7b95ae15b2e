# SPDX-License-Identifier: Apache-2.0
"""Collectives of the host with and without gather_v, scatter_v and all_to_all_v, and these as calls of any collective."""
import itertools
import threading

import numpy as np
import pytest
import shardwright

RANKS = 3


class GroupRank:
    """Where the ranks of this process exchange what they brought."""

    def __init__(self):
        self._barrier = threading.Barrier(RANKS)
        self._brought = [None] * RANKS
        self.aborted = None

    def exchange(self, rank, value):
        try:
            self._brought[rank] = value
            self._barrier.wait(60)
            found = list(self._brought)
            self._barrier.wait(60)
        except threading.BrokenBarrierError:
            raise self.aborted or shardwright.AbortedError("a rank is gone") from None
        return found

    def abort(self, code, message):
        self.aborted = self.aborted or shardwright.AbortedError(message)
        self._barrier.abort()


class PlainEnd:
    """What a host must have."""

    size, name = RANKS, "meeting"

    def __init__(self, meeting, rank):
        self._meeting, self.rank, self.calls = meeting, rank, []

    def _meet(self, name, value):
        self.calls.append(name)
        return self._meeting.exchange(self.rank, value)

    def barrier(self, timeout):
        self._meet("barrier", None)

    def broadcast(self, data, root, timeout):
        data[:] = self._meet("broadcast", bytes(data))[root]

    def all_gather(self, data, out, timeout):
        out[:] = b"".join(self._meet("all_gather", bytes(data)))

    def all_gather_v(self, data, out, sizes, timeout):
        assert sizes[self.rank] == len(data) and sum(sizes) == len(out)
        out[:] = b"".join(self._meet("all_gather_v", bytes(data)))

    def all_reduce_i64(self, values, operation, timeout):
        reduce = {"min": min, "max": max, "sum": sum}[operation]
        for i, column in enumerate(zip(*self._meet("all_reduce_i64", list(values)), strict=True)):
            values[i] = reduce(column)

    def abort(self, code, message):
        self._meeting.abort(code, message)


class RootedEnd(PlainEnd):
    """With what a host may have."""

    def gather_v(self, data, out, sizes, root, timeout):
        assert (sizes is None) == (self.rank != root) and len(out) == sum(sizes or ())
        found = self._meet("gather_v", bytes(data))
        if self.rank == root:
            out[:] = b"".join(found)

    def scatter_v(self, parts, sizes, data, root, timeout):
        assert (sizes is None) == (self.rank != root) and len(parts) == sum(sizes or ())
        all_parts, all_sizes = self._meet("scatter_v", (bytes(parts), sizes))[root]
        begin = sum(all_sizes[:self.rank])
        data[:] = all_parts[begin:begin + all_sizes[self.rank]]


class BetweenAllEnd(PlainEnd):
    """With all_to_all_v."""

    def all_to_all_v(self, data, data_sizes, out, out_sizes, timeout):
        assert data.readonly and len(data) == sum(data_sizes) and len(out) == sum(out_sizes)
        ends = [sum(data_sizes[:rank]) for rank in range(RANKS + 1)]
        parts = [bytes(data[begin:end]) for begin, end in itertools.pairwise(ends)]
        found = self._meet("all_to_all_v", (parts, out_sizes))
        for rank, (_, expected) in enumerate(found):
            if [len(parts[rank]) for parts, _ in found] != expected:
                raise shardwright.InvalidArgumentError(f"rank {rank} expects other bytes")
        out[:] = b"".join(parts[self.rank] for parts, _ in found)


def on_ranks(ends, work):
    """Runs work(rank, end) on a thread per rank; results, or the exception of each."""
    results = [None] * len(ends)

    def run(rank):
        try:
            results[rank] = work(rank, ends[rank])
        except BaseException as e:
            results[rank] = e

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(len(ends))]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    return results


def hosts(kind):
    meeting = GroupRank()
    return [kind(meeting, rank) for rank in range(RANKS)]


def ends_of(kind):
    if kind == "threads":
        return shardwright.thread_collectives(RANKS)
    if kind == "node":
        return on_ranks(ends_of(PlainEnd), lambda rank, end: shardwright.NodeCollective(end, timeout=60))
    return [shardwright.CustomCollective(host) for host in hosts(kind)]


@pytest.mark.parametrize("kind", [PlainEnd, RootedEnd])
def test_a_save_and_load_use_what_the_host_has(kind, tmp_path):
    whole = np.arange(6.0)
    ranks = hosts(kind)

    def work(rank, host):
        mine = shardwright.Shard(whole[2 * rank:2 * rank + 2].copy(), (6,), boxes=(((2 * rank,), (2,)),))
        saved = shardwright.save({"w": mine}, tmp_path / "p", collective=host)
        target = {"w": shardwright.Shard(np.zeros(2), (6,), boxes=(((2 * rank,), (2,)),))}
        loaded = shardwright.load(tmp_path / "p", target, collective=host)
        return saved.bytes_received, loaded, target["w"]

    results = on_ranks(ranks, work)
    assert not [r for r in results if isinstance(r, BaseException)], results
    assert shardwright.load(tmp_path / "p")["w"].numpy().tolist() == whole.tolist()
    rooted = {"gather_v", "scatter_v"}
    received = [r[0] for r in results]
    for host in ranks:
        assert rooted & set(host.calls) == (rooted if kind is RootedEnd else set()), host.calls
        assert ("all_gather_v" in host.calls) == (kind is PlainEnd), host.calls
    assert all(0 < each <= 65536 for each in received), received


@pytest.mark.parametrize("kind", [PlainEnd, RootedEnd, "threads"])
@pytest.mark.parametrize("root", range(RANKS))
def test_bytes_go_to_the_root_and_from_it(kind, root):
    parts = [b"", b"one", b"twotwo"]

    def work(rank, end):
        is_root = rank == root
        found = end.gather(parts[rank], [len(p) for p in parts] if is_root else None, root)
        return found, end.scatter(parts if is_root else [], len(parts[rank]), root)

    results = on_ranks(ends_of(kind), work)
    assert results == [(b"".join(parts) if rank == root else b"", parts[rank]) for rank in range(RANKS)]


@pytest.mark.parametrize("kind", [PlainEnd, "threads"])
def test_sizes_that_are_not_those_of_the_ranks_fail_on_all(kind):
    results = on_ranks(ends_of(kind), lambda rank, end: end.gather(b"ab", [2, 1, 3] if rank == 0 else None))
    assert type(results[0]) is shardwright.InvalidArgumentError, results
    assert all(isinstance(r, shardwright.ShardwrightError) for r in results), results


def test_arguments_of_a_root_that_lie_are_refused():
    with shardwright.SingleCollective() as end:
        with pytest.raises(shardwright.InvalidArgumentError, match="one value per rank"):
            end.gather(b"a", [1, 1])
        with pytest.raises(shardwright.InvalidArgumentError, match="sizes"):
            end.gather(b"a")
        with pytest.raises(shardwright.InvalidArgumentError, match="root"):
            end.scatter([b"a"], 1, root=1)
        assert end.gather(b"ab", [2]) == b"ab" and end.scatter([b"ab"], 2) == b"ab"


def part_between(sender, receiver):
    """What one rank has for another: nothing for some."""
    return bytes([65 + 5 * sender + receiver]) * ((2 * sender + receiver) % 4 * 1000)


@pytest.mark.parametrize("kind", [PlainEnd, RootedEnd, BetweenAllEnd, "threads", "node"])
def test_each_rank_gets_what_every_other_has_for_it(kind):
    def work(rank, end):
        parts = [part_between(rank, to) for to in range(RANKS)]
        expected = [part_between(sender, rank) for sender in range(RANKS)]
        assert end.all_to_all([b""] * RANKS, [0] * RANKS) == [b""] * RANKS
        return end.all_to_all(parts, [len(part) for part in expected]) == expected

    assert on_ranks(ends_of(kind), work) == [True] * RANKS


@pytest.mark.parametrize("kind", [PlainEnd, BetweenAllEnd])
def test_an_all_to_all_uses_what_the_host_has(kind):
    ranks = hosts(kind)
    results = on_ranks([shardwright.CustomCollective(host) for host in ranks],
                       lambda rank, end: b"".join(end.all_to_all([b"%d" % to for to in range(RANKS)], [1] * RANKS)))
    assert results == [b"%d" % rank * RANKS for rank in range(RANKS)], results
    for host in ranks:
        assert host.calls == (["all_to_all_v"] if kind is BetweenAllEnd else ["all_gather", "all_gather_v"]), host.calls


@pytest.mark.parametrize("kind", [PlainEnd, BetweenAllEnd, "threads", "node"])
def test_parts_of_other_sizes_than_expected_fail_on_all(kind):
    results = on_ranks(ends_of(kind), lambda rank, end: end.all_to_all([b"ab"] * RANKS, [2, 2, 3 if rank == 1 else 2]))
    assert type(results[1]) is shardwright.InvalidArgumentError and "rank 1" in str(results[1]), results
    assert all(isinstance(r, shardwright.ShardwrightError) for r in results), results


def test_parts_that_are_not_one_per_rank_are_refused():
    with shardwright.SingleCollective() as end:
        for parts, sizes in (([b"a", b"b"], [1]), ([b"a"], [1, 0]), ([], [])):
            with pytest.raises(shardwright.InvalidArgumentError, match="one value per rank"):
                end.all_to_all(parts, sizes)
        with pytest.raises(shardwright.InvalidArgumentError):
            end.all_to_all([b"ab"], [1])
        assert end.all_to_all([b"ab"], [2]) == [b"ab"]


def test_ranks_of_one_machine_meet_in_its_memory():
    ranks = hosts(PlainEnd)

    def work(rank, end):
        with end, shardwright.NodeCollective(end) as node:
            assert (node.name, node.rank, node.size) == ("node", rank, RANKS)
            node.barrier()
            return node.all_gather(bytes([rank]) * rank, range(RANKS)), node.all_reduce_i64([rank], "sum")

    results = on_ranks([shardwright.CustomCollective(host) for host in ranks], work)
    assert results == [(b"\x01\x02\x02", (3,))] * RANKS, results
    assert [host.calls for host in ranks] == [["all_gather"]] * RANKS


def test_a_host_that_fails_while_ranks_meet_says_why():
    class Failing(PlainEnd):
        def all_gather(self, data, out, timeout):
            raise OSError("no cable")

    results = on_ranks([shardwright.CustomCollective(host) for host in hosts(Failing)],
                       lambda rank, end: shardwright.NodeCollective(end))
    assert [type(result) for result in results] == [OSError] * RANKS, results
    with shardwright.SingleCollective() as end, shardwright.NodeCollective(end) as node:
        assert node.size == 1
    with pytest.raises(shardwright.FailedPreconditionError, match="closed"):
        shardwright.NodeCollective(end)
