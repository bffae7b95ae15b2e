# SPDX-License-Identifier: Apache-2.0
"""Progress of calls and jobs, awaiting a job, and the log while a call waits."""
import asyncio
import logging
import threading

import host_storage
import numpy as np
import pytest
import shardwright
from shardwright import context

STATE = {"w": np.arange(1000.0)}
BYTES = 8000


@pytest.fixture
def held():
    """A storage whose writes wait at a gate."""
    storage = host_storage.DictStorage()
    storage.gate.clear()
    yield storage
    storage.gate.set()


class Bar:
    """What tqdm's bars have of which use is made."""

    made = []

    def __init__(self, **options):
        self.options, self.total, self.n, self.stages, self.closed, self.drawn = options, None, 0, [], False, 0
        Bar.made.append(self)

    def update(self, n):
        assert n >= 0 and self.total is not None
        self.n += n

    def set_postfix_str(self, text, refresh):
        self.stages.append(text)

    def refresh(self):
        self.drawn += 1

    def close(self):
        self.closed = True


def on_other_thread(call):
    """Result of a call on a thread where no signals arrive."""
    found = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("run", [lambda call: call(), on_other_thread])
def test_a_function_is_told_how_far_calls_are(run, held):
    seen = []

    def look(progress):
        seen.append(progress)
        held.gate.set()  # the save can only end because it was told before the end

    assert run(lambda: shardwright.save(STATE, "p", storage=held, progress=look)).operation == "save"
    assert len(seen) >= 2 and seen[-1].state == "succeeded" and seen[-1].bytes_done == seen[-1].bytes_total == BYTES
    assert [p.bytes_done for p in seen] == sorted(p.bytes_done for p in seen)
    told = []
    run(lambda: shardwright.load("p", {"w": np.zeros(1000)}, storage=held, progress=told.append))
    run(lambda: shardwright.load("p", storage=held, progress=told.append))
    assert [p.bytes_done for p in told if p.state == "succeeded"] == [BYTES, BYTES]


def test_a_bar_moves_by_the_bytes(held):
    held.gate.set()
    bar = Bar()
    shardwright.save(STATE, "p", storage=held, progress=bar)
    assert (bar.total, bar.n, bar.closed) == (BYTES, BYTES, False) and bar.drawn and bar.stages


def test_a_class_of_bars_makes_one_that_is_closed_whatever_happens(held):
    held.gate.set()
    Bar.made.clear()
    shardwright.save(STATE, "p", storage=held, progress=Bar)
    with pytest.raises(KeyError):
        shardwright.load("p", {"gone": np.zeros(1)}, storage=held, progress=Bar)
    assert [(bar.options, bar.closed) for bar in Bar.made] == [({"unit": "B", "unit_scale": True}, True)] * 2
    assert (Bar.made[0].n, Bar.made[1].n) == (BYTES, 0)


@pytest.mark.parametrize("call", ["save", "load"])
def test_what_a_listener_raises_ends_the_call_and_comes_out(call, held):
    held.gate.set()
    shardwright.save(STATE, "p", storage=held)

    def fail(progress):
        held.gate.set()
        raise KeyError("mine")

    held.gate.clear()
    with pytest.raises(KeyError, match="mine"):
        if call == "save":
            shardwright.save({"w": np.zeros(4)}, "q", storage=held, progress=fail)
        else:
            shardwright.load("p", storage=held, progress=fail)
    held.gate.set()
    assert "q/manifest.shw" not in held.objects and shardwright.load("p", storage=held)["w"].numpy()[3] == 3


@pytest.mark.parametrize("call", [shardwright.save, shardwright.save_async])
def test_a_listener_that_is_none_is_refused_before_anything_is_done(call, held):
    with pytest.raises(shardwright.InvalidArgumentError, match="progress.*tqdm") as caught:
        call(STATE, "p", storage=held, progress=7)
    assert caught.value.details == {"parameter": "progress"} and not held.objects


def test_a_job_tells_from_a_thread_of_its_own(held):
    told, done = [], threading.Event()

    def look(progress):
        told.append((progress.state, threading.current_thread()))
        held.gate.set()
        if progress.state == "succeeded":
            done.set()

    job = shardwright.save_async(STATE, "p", storage=held, progress=look)
    job.result(30)
    assert done.wait(30) and {thread for _, thread in told}.isdisjoint({threading.main_thread()})
    ended = threading.Event()
    shardwright.load_async("p", {"w": np.zeros(1000)}, storage=held,
                           progress=lambda p: ended.set() if p.bytes_done == BYTES else None)
    assert ended.wait(30)


def test_a_listener_that_fails_does_not_fail_a_job(held, caplog):
    job = shardwright.save_async(STATE, "p", storage=held, progress=lambda progress: 1 / 0)
    held.entered.wait(30)
    for thread in threading.enumerate():
        if thread.name == "shardwright-progress":
            thread.join(30)
    held.gate.set()
    assert job.result(30).tensors == 1 and "ZeroDivisionError" in caplog.text


def test_a_job_can_be_awaited_while_the_loop_goes_on(held):
    async def main():
        job = shardwright.save_async(STATE, "p", storage=held)
        waiting = asyncio.ensure_future(job)
        assert await asyncio.to_thread(held.entered.wait, 30)
        assert not waiting.done()
        held.gate.set()  # only because the loop went on
        report = await waiting
        assert report.operation == "save" and await job is report  # again, after the end
        target = {"w": np.zeros(1000), "note": None}
        with pytest.raises(shardwright.MissingNameError, match="note"):
            await shardwright.load_async("p", target, storage=held)
        return await asyncio.gather(*(shardwright.save_async(STATE, f"p{i}", storage=held) for i in range(3)))

    assert [report.tensors for report in asyncio.run(main())] == [1, 1, 1]


def test_an_await_that_is_cancelled_leaves_the_job_running(held):
    jobs = []

    async def main():
        jobs.append(shardwright.save_async(STATE, "p", storage=held))
        waiting = asyncio.ensure_future(jobs[0])
        assert await asyncio.to_thread(held.entered.wait, 30)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())
    held.gate.set()  # the loop is closed by now, and the end of the job finds nobody
    assert jobs[0].result(30).tensors == 1


def test_a_wait_that_cannot_be_told_of_the_end_says_so(held, monkeypatch):
    held.gate.set()
    shardwright.save_async(STATE, "first", storage=held).result(30)
    for thread in threading.enumerate():
        if thread.name == "shardwright-jobs":
            thread.join(30)
    held.gate.clear()

    def no_thread(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_thread)
    job = shardwright.save_async(STATE, "p", storage=held)
    with pytest.raises(shardwright.ResourceExhaustedError, match="Job.wait"):
        context.call_when_ended(job, lambda: None)
    monkeypatch.undo()
    held.gate.set()
    assert job.result(30).tensors == 1


def test_the_log_follows_the_level_of_the_logger(tmp_path, caplog):
    shardwright.save(STATE, tmp_path / "p")  # contexts are made while nobody listens
    with caplog.at_level(logging.INFO, "shardwright"):
        shardwright.save(STATE, tmp_path / "p")
        shardwright.load(tmp_path / "p")
    said = [record.getMessage() for record in caplog.records]
    assert any("saving to" in text for text in said) and any("committed generation" in text for text in said)
    assert any("loading" in text for text in said) and {record.levelname for record in caplog.records} == {"INFO"}
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "shardwright"):
        shardwright.save(STATE, tmp_path / "p")
    said = [record.getMessage() for record in caplog.records if record.levelname == "DEBUG"]
    assert any("the plan of generation" in text for text in said) and any("all ranks have met" in text for text in said)
    caplog.clear()
    shardwright.save(STATE, tmp_path / "p")
    with caplog.at_level(logging.DEBUG, "shardwright"):
        shardwright.open(tmp_path / "p").close()
    assert not [r for r in caplog.records if "saving" in r.getMessage()]  # what nobody wanted then is not told later


def test_records_are_handed_on_while_a_call_waits(held, monkeypatch):
    from shardwright import calls
    monkeypatch.setattr(calls, "_SLICE_SECONDS", 0.01)
    told = []

    class Opens(logging.Handler):
        def emit(self, record):
            told.append(record.getMessage())
            held.gate.set()  # the save can only end because this record came before its end

    late = []
    end = threading.Timer(60, lambda: (late.append(True), held.gate.set()))  # a test that fails ends, too
    end.start()
    handler, logger = Opens(), logging.getLogger("shardwright")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        shardwright.save(STATE, "p", storage=held)
    finally:
        end.cancel()
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert "saving to" in told[0] and not late
