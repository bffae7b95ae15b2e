# SPDX-License-Identifier: Apache-2.0
"""Interleaved rounds: floor, every contender once in rotated order, floor again.

A contender that runs with several counts of threads takes its turn once with each, and gives a line for each. The share of
the floor of a round is the mean of its two floor probes over the contender's time, so 1 is the floor itself. A round whose two
probes differ by more than 20 % is dropped and repeated, at most twice as many rounds in all.
"""
import os
import shutil
import statistics

FLOOR_SPREAD_LIMIT = 0.20
COUNTERS = ("rss_peak_bytes", "bytes_read", "bytes_given_by_reads", "bytes_written", "syscalls")


class Turn:
    """A contender with one count of threads, and what its rounds gave."""

    def __init__(self, worker, threads):
        self.worker, self.threads, self.rounds = worker, threads, []

    def run(self):
        return self.worker.ask(f"run {self.threads}")


def run_round(turns, floor):
    before = floor() if floor else None
    answers = [(turn, turn.run()) for turn in turns]
    after = floor() if floor else None
    kept = floor is None or abs(before - after) <= FLOOR_SPREAD_LIMIT * min(before, after)
    if kept:
        for turn, answer in answers:
            if answer is not None:
                turn.rounds.append(answer | {"floor_s": (before + after) / 2 if floor else None})
    return kept


def set_up(workers):
    """All at once: imports wait for the disk while data are made, and nothing of it is timed."""
    for w in workers:
        w.send("setup")
    for w in workers:
        answer = w.receive()
        w.versions = answer["versions"] if answer else {}


def run_rounds(workers, floor, reps):
    """The turns of all workers with their rounds, and how many rounds were dropped."""
    set_up(workers)
    turns = [Turn(worker, threads) for worker in workers for threads in worker.threads]
    for turn in turns:
        if turn.run() is not None:  # warm-up, and the first check
            turn.worker.check()
    if floor:
        floor()  # chooses the variant
    kept = dropped = 0
    while kept < reps and kept + dropped < 2 * reps:
        shift = (kept + dropped) % len(turns)
        if run_round(turns[shift:] + turns[:shift], floor):
            kept += 1
        else:
            dropped += 1
    for turn in turns:
        if len(turn.worker.threads) == 1 or turn.run() is not None:  # what is there may be the result of another turn
            turn.worker.check()
    for w in workers:
        w.close()
    return turns, dropped


def spread(values):
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def summarise(turn, base, dropped):
    """The JSON line of one contender with one count of threads."""
    worker = turn.worker
    line = base | {"contender": worker.name, "threads": turn.threads, "versions": worker.versions}
    if worker.problem:
        if not worker.checked:
            line["checked"] = False
        return line | worker.problem
    if not turn.rounds:
        return line | {"error": f"no round was quiet enough ({dropped} dropped)"}
    line |= {"reps": len(turn.rounds), "dropped": dropped, "checked": worker.checked}
    for key in ("s", "cpu_s"):
        line |= {f"{key}_{k}": v for k, v in spread([r[key] for r in turn.rounds]).items()}
    for key in COUNTERS:
        line[key] = max(r[key] for r in turn.rounds)
    extra = {k: statistics.median(r[k] for r in turn.rounds) for k in turn.rounds[0]
             if k not in line and k not in ("s", "cpu_s", "floor_s")}
    if "bytes_needed" in extra:
        line["given_per_needed"] = line["bytes_given_by_reads"] / extra["bytes_needed"]
    if "world" in base and "warm" in base:
        line["read_per_unique"] = line["bytes_read"] / base["bytes"]
    if "bytes" in base:
        line["gbps_median"] = base["bytes"] / line["s_median"] / 1e9
    if turn.rounds[0]["floor_s"] is not None:
        line["floor_s_median"] = statistics.median(r["floor_s"] for r in turn.rounds)
        line |= {f"share_of_floor_{k}": v for k, v in spread([r["floor_s"] / r["s"] for r in turn.rounds]).items()}
    line |= extra
    if "first_floor_s" in line:
        line["first_ratio"] = line["first_floor_s"] / line["first_s"]
    return line


def clean(directory):
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
