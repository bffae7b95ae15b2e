# SPDX-License-Identifier: Apache-2.0
"""Storages and collectives of the host: Python objects behind the tables of functions, and the ranks of one process."""
import gc
import pickle
import sys
import threading
import weakref

import host_storage
import numpy as np
import pytest
import shardwright


class Boom(Exception):
    pass


def on_ranks(count, work):
    """Runs work(rank, collective) on threads; results, or the exception of each rank."""
    results, ends = [None] * count, shardwright.thread_collectives(count)

    def run(rank):
        try:
            results[rank] = work(rank, ends[rank])
        except BaseException as e:
            results[rank] = e

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    return results


# ---- storage ----

def test_a_python_storage_holds_checkpoints():
    host = host_storage.DictStorage()
    state = {"w": np.arange(300_000.0), "n": 1}
    shardwright.save(state, "run/a", storage=host)
    shardwright.save({"w": state["w"] + 1, "n": 2}, "run/a", storage=host)
    with shardwright.open("run/a", storage=host) as c:
        assert c["w"][5:8].tolist() == [6, 7, 8] and c.verify(deep=True).damage == []
    assert shardwright.load("run/a", storage=host)["n"] == 2
    with pytest.raises(shardwright.NotFoundError):
        shardwright.open("run/b", storage=host)


def test_a_storage_wraps_a_host_with_its_name_and_closes_it_once():
    host = host_storage.DictStorage()
    with shardwright.CustomStorage(host) as storage:
        assert storage.name == "dict" and storage.capabilities == 7
        storage.put("a/b", b"xyz")
        assert storage.read("a/b") == b"xyz" and storage.read("a/b", 1, 1) == b"y" and storage.stat("a/b")[0] == 3
        assert storage.list("a") == ["a/b"] and storage.version("a/b") == "1"
        with pytest.raises(shardwright.OutOfRangeError):
            storage.read("a/b", 2, 5)
        storage.remove("a/b")
        with pytest.raises(shardwright.NotFoundError):
            storage.read("a/b")
    storage.close()
    assert host.closed == 1


@pytest.mark.parametrize("make", [shardwright.MemoryStorage, None])
def test_built_in_storages_do_the_same(make, tmp_path):
    storage = shardwright.PosixStorage(tmp_path / "root") if make is None else make()
    storage.put("a/b", b"xyz", condition="if_absent")
    with pytest.raises(shardwright.AbortedError):
        storage.put("a/b", b"", condition="if_absent")
    assert storage.read("a/b") == b"xyz" and storage.list() == ["a/b"] and storage.name in ("posix", "memory")
    first = storage.version("a/b")
    storage.put("a/b", b"next", condition="if_version", expected_version=first)
    with pytest.raises(shardwright.AbortedError):
        storage.put("a/b", b"", condition="if_version", expected_version=first)
    assert storage.version("a/b") != first and storage.stat("a/b")[0] == 4
    assert storage.list(delimiter="/") == ["a/"] and storage.list("a/", delimiter="/") == ["a/b"]
    for key in ("../x", "/x", "a//b", "a/./b"):
        with pytest.raises(shardwright.InvalidArgumentError):
            storage.put(key, b"")
    shardwright.save({"w": np.ones(3)}, "deep/run", storage=storage)
    assert shardwright.load("deep/run", storage=storage)["w"].numpy().tolist() == [1, 1, 1]


@pytest.mark.parametrize("call", ["save", "async", "thread"])
def test_an_exception_of_a_storage_comes_out_as_itself(call):
    host = host_storage.DictStorage()
    host.failure = Boom("the disk of the host")
    state = {"w": np.ones(10)}
    outcome = []

    def run():
        try:
            if call == "async":
                shardwright.save_async(state, "p", storage=host).result(30)
            else:
                shardwright.save(state, "p", storage=host)
        except BaseException as e:
            outcome.append(e)

    if call == "thread":
        thread = threading.Thread(target=run)
        thread.start()
        thread.join(30)
    else:
        run()
    assert outcome[0] is host.failure and outcome[0].__traceback__ is not None
    assert "p/manifest.shw" not in host.objects


@pytest.mark.parametrize("method,given,said", [
    ("list", [("p/a", 1)], r"list of the storage 'dict' gave \('p/a', 1\) where a tuple \(key, size"),
    ("list", [("p/a", "long", 0, 1)], "list of the storage 'dict' gave .*'long'"), ("list", ["p/a"], "list .*gave 'p/a'"),
    ("list", None, "list of the storage 'dict' gave None where tuples"), ("stat", 7, "stat of the storage 'dict' gave 7"),
    ("stat", (1, 2), r"stat of the storage 'dict' gave \(1, 2\) where"), ("space", "much", "space .*'dict' gave 'much'"),
    ("read_at", None, "read_at of the storage 'dict' gave None where the number of bytes")])
def test_a_result_that_is_none_is_told_with_storage_and_method(method, given, said):
    host = host_storage.DictStorage()
    shardwright.save({"w": np.ones(10)}, "p", storage=host)
    if method == "read_at":
        opened = type("Opened", (), {"read_at": lambda *_: given, "close": lambda _: None, "abort": lambda _: None})
        host.open = lambda key, mode: opened()
    else:
        setattr(host, method, lambda *_: given)
    with pytest.raises(TypeError, match=said):
        if method == "list":
            shardwright.CustomStorage(host).list()
        elif method == "space":
            shardwright.save({"w": np.ones(10)}, "p", storage=host)
        else:
            shardwright.load("p", storage=host)


def test_errors_of_a_storage_keep_their_status():
    host = host_storage.DictStorage()
    host.failure = shardwright.ResourceExhaustedError("quota", {"resource": "quota"})
    with pytest.raises(shardwright.ResourceExhaustedError, match="quota"):
        shardwright.save({"w": np.ones(10)}, "p", storage=host)


class Offering(host_storage.DictStorage):
    """A storage with free space and a lock."""

    def __init__(self):
        super().__init__()
        self.free, self.held, self.calls = 1 << 40, False, []

    def space(self, key):
        return self.free

    def lock(self, key, mode):
        self.calls.append(("lock", mode))
        if self.held:
            return None
        self.held = True
        return self

    def release(self):
        self.calls.append("release")
        self.held = False


def test_a_save_that_does_not_fit_fails_before_it_writes():
    host = Offering()
    host.free = 100
    with pytest.raises(shardwright.ResourceExhaustedError) as caught:
        shardwright.save({"w": np.ones(10)}, "p", storage=host)
    assert caught.value.details["found"] == "100" and host.objects == {}


def test_a_lock_keeps_garbage_collection_away():
    host = Offering()
    shardwright.save({"w": np.ones(10)}, "p", storage=host)
    assert host.calls == [("lock", "shared"), "release"] and not host.held
    host.held = True
    assert any("a save is running" in note for note in shardwright.collect_garbage("p", storage=host, apply=True).notes)
    host.held = False
    assert not any("a save is running" in note for note in shardwright.collect_garbage("p", storage=host, apply=True).notes)
    alone = ("lock", "exclusive")
    assert host.calls == [("lock", "shared"), "release", alone, alone, "release"]


def test_a_save_needs_atomic_commits():
    host = host_storage.DictStorage()
    host.capabilities = 1
    with pytest.raises(shardwright.FailedPreconditionError, match="ATOMIC_COMMIT"):
        shardwright.save({"w": np.ones(10)}, "p", storage=host)
    assert host.objects == {}


@pytest.mark.parametrize("count", [-1, 1 << 40])
def test_a_number_of_bytes_that_cannot_be_is_a_fault_of_read_at(count):
    host = host_storage.DictStorage()
    shardwright.save({"w": np.ones(10)}, "p", storage=host)
    opened = host.open

    def open_liar(key, mode):
        found = opened(key, mode)
        found.read_at = lambda offset, data: count
        return found

    host.open = open_liar
    with pytest.raises(ValueError, match=f"read_at gave {count}"):
        shardwright.load("p", storage=host)


def test_a_mutex_called_lock_is_no_lock_of_the_storage():
    host = host_storage.DictStorage()
    host.lock = threading.Lock()
    shardwright.save({"w": np.ones(10)}, "p", storage=host)
    assert any("no locks" in note for note in shardwright.collect_garbage("p", storage=host, apply=True).notes)


@pytest.mark.parametrize(("method", "answer", "calls"), [
    ("open", None, "save load"), ("stat", 5, "save load"), ("list", 5, "save"), ("list", [("k",)], "save"),
    ("stat", ("many", 0), "save load")])
def test_methods_that_answer_nonsense_fail_the_call(method, answer, calls):
    host = host_storage.DictStorage()
    shardwright.save({"w": np.ones(1)}, "p", storage=host)
    sound = getattr(host, method)
    setattr(host, method, lambda *a: answer)
    for call in calls.split():
        with pytest.raises((TypeError, AttributeError, ValueError)):
            shardwright.save({"w": np.zeros(1)}, "p", storage=host) if call == "save" else shardwright.load("p", storage=host)
    setattr(host, method, sound)
    assert shardwright.load("p", storage=host)["w"].numpy().tolist() == [1]


@pytest.mark.parametrize("keep", [pickle.PickleBuffer, lambda data: data[1:], memoryview, lambda data: data.cast("c"),
                                  np.frombuffer])
def test_a_view_that_is_kept_fails_the_call_that_lent_it(keep):
    host = host_storage.DictStorage()
    kept = []

    class Keeper(host_storage.DictObject):
        def write_at(self, offset, data):
            kept.append(keep(data))
            super().write_at(offset, data)

    opened = host.open
    host.open = lambda key, mode: opened(key, mode) if mode == "read" else Keeper(host, key, bytearray())
    with pytest.raises(BufferError, match="view"):
        shardwright.save({"w": np.ones(10)}, "p", storage=host)


def test_a_callback_may_release_its_view_and_use_others_of_it():
    host = host_storage.DictStorage()

    class Releaser(host_storage.DictObject):
        def write_at(self, offset, data):
            with data[:1] as first, memoryview(data) as all_of_it:
                assert first[0] == all_of_it[0]
            super().write_at(offset, data)
            data.release()

    opened = host.open

    def open_releaser(key, mode):
        made = opened(key, mode)
        made.__class__ = Releaser
        return made

    host.open = open_releaser
    shardwright.save({"w": np.ones(10)}, "p", storage=host)
    assert shardwright.load("p", storage=host)["w"].numpy().sum() == 10


COLLECT_KEPT_VIEWS = """
import gc, pickle
import host_storage, numpy, shardwright

class Keeper(host_storage.DictObject):
    def write_at(self, offset, data):
        ring = [pickle.PickleBuffer(data)]
        ring.append(ring)

host = host_storage.DictStorage()
opened = host.open
host.open = lambda key, mode: opened(key, mode) if mode == "read" else Keeper(host, key, bytearray())
gc.disable()
try:
    shardwright.save({"w": numpy.ones(10)}, "p", storage=host)
except BufferError:
    gc.collect()
    print("whole")
"""


def test_the_collector_may_meet_a_view_that_is_kept(run_python):
    done = run_python(COLLECT_KEPT_VIEWS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "whole\n", "")


def test_storages_are_freed_with_their_last_user():
    host = host_storage.DictStorage()
    gone = weakref.ref(host)
    shardwright.save({"w": np.ones(10)}, "p", storage=host)
    c = shardwright.open("p", storage=host)
    assert c["w"][:].sum() == 10
    c.close()
    del host, c
    gc.collect()
    assert gone() is None


# ---- collectives ----

def test_ranks_of_one_process_exchange_bytes():
    def work(rank, end):
        end.barrier()
        return (end.rank, end.size, end.broadcast(bytes([rank] * 2), 2), end.all_gather(bytes([rank])),
                end.all_gather(b"x" * rank, [0, 1, 2]), end.all_reduce_i64([rank, -rank], "sum"),
                end.all_reduce_i64([rank], "max"))

    assert on_ranks(3, work) == [(r, 3, b"\2\2", b"\0\1\2", b"xxx", (3, -3), (2,)) for r in range(3)]


def test_ranks_save_parts_and_load_others(tmp_path):
    whole = np.arange(70.0).reshape(10, 7)

    def save(rank, end):
        rows = shardwright.Layout((3,), [0])
        (start, size), = rows.boxes((10, 7), rank)
        local = whole[start[0]:start[0] + size[0]].copy()
        state = {"w": shardwright.Shard(local, (10, 7), layout=rows), "same": np.ones(5), "own": rank, "step": 3}
        return shardwright.save(state, tmp_path / "p", collective=end, kind=[("own", "rank_local")])

    assert all(isinstance(r, shardwright.Report) for r in on_ranks(3, save))
    with shardwright.open(tmp_path / "p") as c:
        assert c.world_size == 3 and (c["w"][:] == whole).all() and c.object("own", rank=2) == 2
        assert sum(chunk.nbytes for chunk in c["same"].chunks()) == 40

    def load(rank, end):
        columns = shardwright.Layout((2,), [1])
        (_, size), = columns.boxes((10, 7), rank)
        local = np.zeros(size)
        shardwright.load(tmp_path / "p", {"w": shardwright.Shard(local, (10, 7), layout=columns)}, collective=end)
        return local

    parts = on_ranks(2, load)
    assert (np.concatenate(parts, axis=1) == whole).all()
    own = on_ranks(3, lambda rank, end: shardwright.load(tmp_path / "p", collective=end)["own"])
    assert own == [0, 1, 2]


@pytest.mark.parametrize("failing", [(0, 1, 2), (1,), (1, 2)])
def test_each_worker_of_a_team_gets_its_own_exception_and_the_others_an_error(failing):
    hosts = [host_storage.DictStorage() for _ in range(3)]
    for rank in failing:
        hosts[rank].failure = Boom(f"disk of {rank}")
    results = on_ranks(3, lambda rank, end: shardwright.save({"w": np.ones(4)}, "p", storage=hosts[rank], collective=end,
                                                             kind={"*": "rank_local"}))
    for rank, found in enumerate(results):
        if rank in failing:
            assert found is hosts[rank].failure
        else:
            assert type(found) is shardwright.HostExceptionError and "disk of 1" in str(found)


def test_a_rank_that_fails_fails_all_with_its_cause(tmp_path):
    class Broken(host_storage.DictStorage):
        pass

    good, bad = host_storage.DictStorage(), Broken()
    bad.objects, bad.versions = good.objects, good.versions
    bad.failure = shardwright.ResourceExhaustedError("quota of rank 1")
    whole = np.arange(8.0)
    results = on_ranks(2, lambda rank, end: shardwright.save(
        {"w": shardwright.Shard(whole[4 * rank:4 * rank + 4].copy(), (8,), boxes=(((4 * rank,), (4,)),))}, "p",
        storage=(good, bad)[rank], collective=end))
    assert [type(r) for r in results] == [shardwright.ResourceExhaustedError] * 2, results
    assert all("rank 1" in str(r) for r in results) and "p/manifest.shw" not in good.objects


class OneRank:
    """A host's collective of a single rank, which counts calls and can fail."""

    rank, size, name = 0, 1, "one"

    def __init__(self):
        self.calls, self.failure = [], None

    def _called(self, name):
        self.calls.append(name)
        if self.failure is not None:
            raise self.failure

    def barrier(self, timeout):
        self._called("barrier")

    def broadcast(self, data, root, timeout):
        self._called("broadcast")

    def all_gather(self, data, out, timeout):
        self._called("all_gather")
        out[:] = data

    def all_gather_v(self, data, out, sizes, timeout):
        self._called("all_gather_v")
        out[:] = data

    def all_reduce_i64(self, values, operation, timeout):
        assert values.format == "q"
        self._called("all_reduce_i64")

    def abort(self, code, message):
        self.calls.append(("abort", code))


def test_a_collective_of_the_host_carries_a_save(tmp_path):
    host = OneRank()
    shardwright.save({"w": np.ones(3)}, tmp_path / "p", collective=host)
    assert host.calls
    end = shardwright.CustomCollective(host)
    assert (end.name, end.rank, end.size, end.all_gather(b"ab"), end.all_reduce_i64([5], "sum")) == ("one", 0, 1, b"ab", (5,))
    assert end.broadcast(b"q", 0) == b"q"
    end.abort("enough")
    assert host.calls[-1] == ("abort", 10)


class WithoutRank:
    size, closed = 1, 0

    def close(self):
        self.closed += 1
        raise Boom("nobody hears this")


def test_a_collective_without_a_rank_is_refused_with_its_reason():
    with pytest.raises(AttributeError, match="rank"):
        shardwright.CustomCollective(object())
    host = WithoutRank()
    with pytest.raises(AttributeError, match="rank"):
        shardwright.CustomCollective(host)
    assert host.closed == 1
    host.rank = "first"
    with pytest.raises(TypeError):
        shardwright.CustomCollective(host)


@pytest.mark.parametrize("call", ["save", "load"])
def test_an_exception_of_a_collective_comes_out_as_itself(call, tmp_path):
    host = OneRank()
    shardwright.save({"w": np.ones(3)}, tmp_path / "p", collective=host)
    host.failure = Boom("the network of the host")
    with pytest.raises(Boom) as caught:
        if call == "save":
            shardwright.save({"w": np.zeros(3)}, tmp_path / "p", collective=host)
        else:
            shardwright.load(tmp_path / "p", {"w": np.zeros(3)}, collective=host)
    assert caught.value is host.failure
    assert shardwright.load(tmp_path / "p")["w"].numpy().tolist() == [1, 1, 1]


def test_callbacks_leak_nothing(tmp_path):
    host, failing = host_storage.DictStorage(), OneRank()
    failing.failure = Boom("again")

    def work():
        shardwright.save({"w": np.ones(3)}, "p", storage=host, collective=OneRank())
        shardwright.load("p", storage=host)
        try:
            shardwright.save({"w": np.ones(3)}, "q", storage=host, collective=failing)
        except Boom:
            failing.calls.clear()
            failing.failure.__traceback__ = None

    for _ in range(20):
        work()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(100):
        work()
    gc.collect()
    assert sys.getallocatedblocks() - before < 50  # less than one for two rounds: a job thread gives back late
