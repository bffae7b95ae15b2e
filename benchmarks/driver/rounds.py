# SPDX-License-Identifier: Apache-2.0
"""Interleaved rounds: floor, every contender once in rotated order, floor again.

The ratio of a round is the mean of its two floor probes over the contender's time, so 1 is the floor itself. A round
whose two probes differ by more than 20 % is dropped and repeated, at most twice as many rounds in all.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys

FLOOR_SPREAD_LIMIT = 0.20


class Worker:
    """A contender in its own process."""

    def __init__(self, name, path, directory, params, package_dir):
        self.name, self.path = name, path
        here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        env = dict(os.environ, OMP_NUM_THREADS="1")
        env["PYTHONPATH"] = os.pathsep.join([here, package_dir] + env.get("PYTHONPATH", "").split(os.pathsep)).strip(":")
        os.makedirs(directory, exist_ok=True)
        self.process = subprocess.Popen([sys.executable, "-m", "driver.contender", path, directory, json.dumps(params)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.rounds, self.problem, self.checked, self.versions = [], None, True, {}

    def send(self, command):
        try:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # its last words are still in the other pipe

    def receive(self):
        """Answer to the oldest command, or None once the contender has a problem."""
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": "the worker ended without an answer"}
        if "skipped" in answer or "error" in answer:
            self.problem = answer
            return None
        return answer

    def ask(self, command):
        if self.problem:
            return None
        self.send(command)
        return self.receive()

    def check(self):
        answer = self.ask("check")
        if answer is not None and not answer["checked"]:
            self.checked = False
            self.problem = {"error": "the result is wrong"}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def run_round(workers, floor, order):
    before = floor() if floor else None
    answers = {w.name: w.ask("run") for w in order}
    after = floor() if floor else None
    kept = floor is None or abs(before - after) <= FLOOR_SPREAD_LIMIT * min(before, after)
    if kept:
        for w in workers:
            if answers[w.name] is not None:
                mean = (before + after) / 2 if floor else None
                w.rounds.append(answers[w.name] | {"floor_s": mean})
    return kept


def set_up(workers):
    """All at once: imports wait for the disk while data are made, and nothing of it is timed."""
    for w in workers:
        w.send("setup")
    for w in workers:
        answer = w.receive()
        w.versions = answer["versions"] if answer else {}


def run_rounds(workers, floor, reps):
    """Fills worker.rounds; returns how many rounds were dropped."""
    set_up(workers)
    for w in workers:
        if w.ask("run") is not None:  # warm-up, and the first check
            w.check()
    if floor:
        floor()  # chooses the variant
    kept = dropped = 0
    while kept < reps and kept + dropped < 2 * reps:
        shift = (kept + dropped) % len(workers)
        if run_round(workers, floor, workers[shift:] + workers[:shift]):
            kept += 1
        else:
            dropped += 1
    for w in workers:
        w.check()
        w.close()
    return dropped


def spread(values):
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def summarise(worker, base, dropped):
    """The JSON line of one contender."""
    line = base | {"contender": worker.name, "versions": worker.versions}
    if worker.problem:
        if not worker.checked:
            line["checked"] = False
        return line | worker.problem
    if not worker.rounds:
        return line | {"error": f"no round was quiet enough ({dropped} dropped)"}
    line |= {"reps": len(worker.rounds), "dropped": dropped, "checked": worker.checked}
    for key, name in (("s", "s"), ("cpu_s", "cpu_s")):
        line |= {f"{name}_{k}": v for k, v in spread([r[key] for r in worker.rounds]).items()}
    for key in ("rss_peak_bytes", "bytes_read", "bytes_written", "syscalls"):
        line[key] = max(r[key] for r in worker.rounds)
    extra = {k: statistics.median(r[k] for r in worker.rounds) for k in worker.rounds[0]
             if k not in line and k not in ("s", "cpu_s", "floor_s")}
    if "bytes" in base:
        line["gbps_median"] = base["bytes"] / line["s_median"] / 1e9
    if worker.rounds[0]["floor_s"] is not None:
        line["floor_s_median"] = statistics.median(r["floor_s"] for r in worker.rounds)
        line |= {f"ratio_{k}": v for k, v in spread([r["floor_s"] / r["s"] for r in worker.rounds]).items()}
    return line | extra


def clean(directory):
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
