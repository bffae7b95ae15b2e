# SPDX-License-Identifier: Apache-2.0
"""Jobs and waiting calls: states, pinned memory, the GIL, Ctrl-C, the end of the process, forks."""
import threading
import weakref

import host_storage
import numpy as np
import pytest
import shardwright

STATES = {"queued", "running", "staged", "succeeded", "failed", "cancelled"}


@pytest.fixture
def held():
    """A storage whose writes wait at a gate."""
    storage = host_storage.DictStorage()
    storage.gate.clear()
    yield storage
    storage.gate.set()


def test_a_job_that_holds_the_tensors_is_staged_when_they_are_written(held):
    array = np.arange(1000.0)
    shardwright.prepare({"w": array, "step": 1})
    job = shardwright.save_async({"w": array, "step": 1}, "p", storage=held, hold=True, priority="background")
    assert held.entered.wait(30)
    assert job.wait_staged(0) is False  # its bytes are those of the caller
    held.gate.set()
    assert job.wait_staged(30)
    array[:] = -1
    job.result(30)
    assert shardwright.load("p", storage=held)["w"].numpy().tolist() == list(range(1000))


def test_preparing_refuses_what_saving_refuses():
    with pytest.raises(shardwright.InvalidArgumentError):
        shardwright.prepare({"bad": {1, 2}})


def test_a_job_goes_through_its_states_and_ends_durable(held):
    array = np.arange(1000.0)
    with shardwright.save_async({"w": array, "step": 1}, "p", storage=held) as job:
        assert job.wait_staged(30)
        array[:] = -1  # staged: the copy is what is written
        held.entered.wait(30)
        assert not job.done() and job.poll() in STATES and job.wait(0) is False
        before = job.progress()
        with pytest.raises(TimeoutError):
            job.result(0.01)
        with pytest.raises(shardwright.FailedPreconditionError):
            job.report()
        held.gate.set()
        report = job.result(30)
    assert job.done() and job.poll() == "succeeded" and job.wait() and report.tensors == 1
    after = job.progress()
    assert after.bytes_done >= before.bytes_done and after.seconds >= before.seconds and after.state == "succeeded"
    assert shardwright.load("p", storage=held)["w"].numpy().tolist() == list(range(1000))


def test_a_cancelled_job_ends_cancelled_and_leaves_nothing(held):
    job = shardwright.save_async({"w": np.ones(1000)}, "p", storage=held)
    assert held.entered.wait(30)
    job.cancel()
    job.cancel()
    held.gate.set()
    with pytest.raises(shardwright.CancelledError):
        job.wait(30)
    assert job.poll() == "cancelled" and "p/manifest.shw" not in held.objects


def test_a_job_that_fails_raises_its_cause(tmp_path):
    job = shardwright.load_async(tmp_path / "nothing", {"w": np.zeros(1)})
    with pytest.raises(FileNotFoundError):
        job.result(30)
    assert job.poll() == "failed"
    with pytest.raises(shardwright.NotFoundError):
        job.wait()


def test_progress_reaches_a_callback(held):
    job = shardwright.save_async({"w": np.ones(1000)}, "p", storage=held)
    seen = []

    def look(progress):
        seen.append(progress)
        held.gate.set()

    assert job.watch(look).operation == "save"
    assert len(seen) >= 2 and seen[-1].state == "succeeded" and seen[0].bytes_done <= seen[-1].bytes_done


def test_a_dropped_job_goes_on_with_its_memory(held):
    array = np.arange(64.0)
    shardwright.save_async({"w": array}, "p", storage=held)
    del array
    held.gate.set()
    shardwright.save_async({"w": np.ones(1)}, "q", storage=held).result(30)  # jobs run in order
    assert shardwright.load("p", storage=held)["w"].numpy().tolist() == list(range(64))


def released(thing):
    """An event that is set when nobody holds the thing any more."""
    event = threading.Event()
    weakref.finalize(thing, event.set)
    return event


@pytest.mark.parametrize("end", ["succeeds", "fails", "is cancelled"])
def test_a_dropped_save_gives_its_memory_back_when_it_ends(held, end):
    array = np.arange(64.0)
    storage = host_storage.DictStorage()
    storage.gate, storage.entered = held.gate, held.entered  # of this job alone
    events = [released(array)]
    if end == "fails":
        storage.failure = OSError("no")  # kept, with the frames that it went through, for whoever asks for it
    else:
        events.append(released(storage))
    job = shardwright.save_async({"w": array}, "p", storage=storage, memory_budget=1)  # from the array itself
    assert held.entered.wait(30)
    if end == "is cancelled":
        job.cancel()
    del array, storage, job
    assert not any(event.is_set() for event in events)
    held.gate.set()
    assert all(event.wait(30) for event in events)  # and no call of the library comes in between


def test_a_dropped_load_gives_its_memory_back_when_it_ends(held):
    held.gate.set()
    shardwright.save({"w": np.arange(4.0), "o": {"a": 1}}, "p", storage=held)
    target = np.zeros(4)
    event = released(target)
    shardwright.load_async("p", {"w": target, "o": None}, storage=held)
    del target
    assert event.wait(30)


def test_a_job_that_is_kept_lets_go_of_what_it_saved(held):
    array = np.arange(64.0)
    event = released(array)
    job = shardwright.save_async({"w": array}, "p", storage=held, memory_budget=1)
    del array
    held.gate.set()
    assert event.wait(30)
    assert job.result(30).tensors == 1


def test_jobs_one_after_another_each_give_their_memory_back(held):
    events = []
    for i in range(20):
        array = np.full(10, float(i))
        events.append(released(array))
        shardwright.save_async({"w": array}, f"p{i}", storage=held)
        if i % 2:
            held.gate.set()
    del array
    assert all(event.wait(30) for event in events)


def test_memory_of_a_load_is_pinned_until_the_job_has_ended(tmp_path):
    shardwright.save({"w": np.arange(4, dtype="u1")}, tmp_path / "p")
    target = bytearray(4)
    job = shardwright.load_async(tmp_path / "p", {"w": target})
    with pytest.raises(BufferError):
        target.extend(b"x")
    job.result(30)
    del job
    target.extend(b"x")
    assert target == bytes([0, 1, 2, 3]) + b"x"


def test_memory_of_a_waiting_save_is_pinned(held):
    data = bytearray(b"abcd")
    outcome = []
    thread = threading.Thread(target=lambda: outcome.append(shardwright.save({"w": data}, "p", storage=held)))
    thread.start()
    assert held.entered.wait(30)
    with pytest.raises(BufferError):
        data.extend(b"x")
    held.gate.set()
    thread.join(30)
    data.extend(b"x")
    assert outcome[0].tensors == 1


def test_other_threads_run_while_a_call_waits(held):
    counted = []

    def count():
        held.entered.wait(30)
        for i in range(1000):
            counted.append(i)
        held.gate.set()  # the save can only end because this thread ran meanwhile

    thread = threading.Thread(target=count)
    thread.start()
    shardwright.save({"w": np.ones(10)}, "p", storage=held)
    thread.join(30)
    assert len(counted) == 1000


@pytest.mark.parametrize("call", ["save", "load", "result"])
def test_ctrl_c_cancels_and_comes_out(call, tmp_path, run_python):
    done = run_python("""
        import os, signal, sys, threading
        import numpy as np, shardwright, host_storage
        call = sys.argv[1]
        class Held(host_storage.DictStorage):
            def open(self, key, mode):
                if call == "load" and mode == "read" and key in self.objects:
                    self.entered.set(); self.gate.wait()
                return super().open(key, mode)
        storage = Held()
        state = {"w": np.ones(1000)}
        shardwright.save(state, "old", storage=storage)
        storage.entered.clear(); storage.gate.clear()
        def interrupt():
            storage.entered.wait()
            os.kill(os.getpid(), signal.SIGINT)
            threading.Timer(0.3, storage.gate.set).start()   # the library can only end between two writes
        threading.Thread(target=interrupt).start()
        try:
            if call == "save": shardwright.save(state, "new", storage=storage)
            elif call == "load": shardwright.load("old", into=state, storage=storage)
            else: shardwright.save_async(state, "new", storage=storage).result()
        except KeyboardInterrupt:
            assert "new/manifest.shw" not in storage.objects
            assert shardwright.load("old", storage=storage)["w"].numpy().sum() == 1000
            print("interrupted")
    """, call, PYTHONFAULTHANDLER="1")
    assert (done.stdout.strip(), done.returncode) == ("interrupted", 0), done.stderr[-2000:]


@pytest.mark.parametrize("kind", ["disk", "host"])
def test_a_process_ends_while_a_job_runs(kind, tmp_path, run_python):
    done = run_python("""
        import sys
        import numpy as np, shardwright, host_storage
        if sys.argv[1] == "disk":
            shardwright.save_async({"w": np.ones(4_000_000)}, sys.argv[2])
        else:
            storage = host_storage.DictStorage()
            shardwright.save_async({"w": np.ones(4_000_000)}, "p", storage=storage)
            storage.entered.wait()
        print("end")
    """, kind, tmp_path / "p")
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("end", 0, "")
    if kind == "disk":
        assert shardwright.open(tmp_path / "p").verify(deep=True).damage == []


def test_a_process_ends_while_a_storage_of_its_own_is_called(run_python):
    """The thread of the call wakes up while the interpreter, which is held up by an object of the script, goes down."""
    done = run_python("""
        import threading
        import numpy as np, shardwright, host_storage
        never = threading.Event()
        class Endless(host_storage.DictStorage):
            def open(self, key, mode):
                self.entered.set()
                while True: never.wait(0.01)
        class Slow:
            def __del__(self, never=never): never.wait(0.5)
        storage = Endless()
        shardwright.context._EXIT_SECONDS = 0
        shardwright.save_async({"w": np.ones(4)}, "p", storage=storage)
        storage.entered.wait()
        slow = Slow()
        print("end")
    """)
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("end", 0, "")


def test_nothing_holds_a_job_that_ended_before_its_process(tmp_path, run_python):
    done = run_python("""
        import atexit, sys
        atexit.register(lambda: print(len(context._live)))  # runs last
        import numpy as np, shardwright
        from shardwright import context
        shardwright.save_async({"w": np.ones(4_000_000)}, sys.argv[1])
    """, tmp_path / "p")
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("0", 0, "")


def test_a_process_ends_while_a_host_storage_never_answers(run_python):
    done = run_python("""
        import numpy as np, shardwright, host_storage, threading
        from shardwright import context
        context._EXIT_SECONDS = 0.5
        storage = host_storage.DictStorage()
        storage.gate = threading.Event()
        job = shardwright.save_async({"w": np.ones(4_000_000)}, "p", storage=storage)
        storage.entered.wait()
        print("end", flush=True)
    """)
    assert done.stdout.strip() == "end" and done.returncode == 0, done.stderr


def test_a_forked_child_is_told_and_ends_cleanly(tmp_path, run_python):
    done = run_python("""
        import os, sys
        import numpy as np, shardwright
        shardwright.save({"w": np.ones(4)}, sys.argv[1])
        job = shardwright.save_async({"w": np.ones(4)}, sys.argv[1] + "-async")
        kept = shardwright.open(sys.argv[1])
        pid = os.fork()
        if pid == 0:
            try:
                shardwright.open(sys.argv[1])
            except shardwright.FailedPreconditionError as e:
                kept.close()
                print("child:", "forked from one that had used" in str(e) and "spawn" in str(e), flush=True)
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        job.result(30)
        print(kept["w"][:].tolist())
    """, tmp_path / "p")
    assert done.stdout.split("\n")[:2] == ["child: True", "[1.0, 1.0, 1.0, 1.0]"], (done.stdout, done.stderr)
    assert done.returncode == 0 and done.stderr == ""


def test_a_child_that_is_forked_while_threads_enter_python_is_whole(run_python):
    done = run_python("""
        import os, threading, time
        import host_storage, numpy, shardwright
        over = threading.Event()
        storage = host_storage.DictStorage()

        def save():
            while not over.is_set():
                shardwright.save_async({"w": numpy.ones(10)}, f"p{threading.get_ident()}", storage=storage).result(60)

        threads = [threading.Thread(target=save) for _ in range(2)]
        for thread in threads:
            thread.start()
        hung = 0
        for _ in range(300):
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            until = time.monotonic() + 30
            while os.waitpid(pid, os.WNOHANG)[0] == 0:
                if time.monotonic() > until:
                    os.kill(pid, 9)
                    os.waitpid(pid, 0)
                    hung += 1
                    break
        over.set()
        for thread in threads:
            thread.join()
        print("hung:", hung, flush=True)
    """)
    assert done.stdout == "hung: 0\n", (done.stdout, done.stderr)


def test_workers_that_are_forked_later_work_on(tmp_path, run_python):
    done = run_python("""
        import multiprocessing, sys
        import numpy as np, shardwright
        shardwright.save({"w": np.ones(4)}, sys.argv[1])
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(sum(pool.map(abs, range(-5, 5))))
        shardwright.save({"w": np.zeros(4)}, sys.argv[1])
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(pool.apply(len, ([1, 2],)))
    """, tmp_path / "p")
    assert (done.stdout.split(), done.returncode, done.stderr) == (["25", "2"], 0, "")
