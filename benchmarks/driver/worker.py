# SPDX-License-Identifier: Apache-2.0
"""A contender in processes of its own: one, or one per rank. Commands go to all of them, their answers become one.

Every wait has a limit. A rank that fails, ends or says nothing makes the answer a problem, and all ranks are ended.
"""
import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time

ANSWER_SECONDS = 900
CLOSE_SECONDS = 30
# Of several ranks: a call lasts as long as its last rank; what they read, write and compute adds up.
ADDED = ("cpu_s", "syscalls")


def merged(answers):
    """One answer from those of all ranks."""
    if len(answers) == 1:
        return answers[0]
    result = {}
    for key, first in answers[0].items():
        values = [answer[key] for answer in answers]
        if key == "checked":
            result[key] = all(values)
        elif key in ADDED or key.startswith("bytes_"):
            result[key] = sum(values)
        elif isinstance(first, (int, float)):
            result[key] = max(values)
        else:
            result[key] = first
    return result


class Worker:
    """A contender under measurement. `name` is that of its file, `threads` are the counts that it runs with, `problem` is
    why it has no times."""

    def __init__(self, name, threads, path, directory, params, package_dir):
        self.name, self.threads = name, threads
        self.problem, self.checked, self.versions = None, True, {}
        here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        # Threads that spin behind a parallel region would take the cores of other ranks.
        env = dict(os.environ, OMP_NUM_THREADS=str(max(threads)), OMP_WAIT_POLICY="passive")
        env["PYTHONPATH"] = os.pathsep.join([here, package_dir] + env.get("PYTHONPATH", "").split(os.pathsep)).strip(":")
        os.makedirs(directory, exist_ok=True)
        command = [sys.executable, "-m", "driver.contender", path, directory]
        self.processes = [subprocess.Popen([*command, json.dumps(params | {"rank": rank})], stdin=subprocess.PIPE,
                                           stdout=subprocess.PIPE, text=True, env=env, process_group=0)
                          for rank in range(params.get("world", 1))]

    def send(self, command):
        for process in self.processes:
            try:
                process.stdin.write(command + "\n")
                process.stdin.flush()
            except BrokenPipeError:
                pass  # its last words are still in the other pipe

    def receive(self):
        """Answer of all ranks to the oldest command, or None once the contender has a problem."""
        answers, problem = self._answers()
        if problem is not None:
            self.problem = problem
            self.kill()
            return None
        return merged([answers[rank] for rank in range(len(self.processes))])

    def _answers(self):
        """Answers by rank, and the first problem of any rank: the other ranks may wait for it for ever."""
        answers, until = {}, time.monotonic() + ANSWER_SECONDS
        with selectors.DefaultSelector() as selector:
            for rank, process in enumerate(self.processes):
                selector.register(process.stdout, selectors.EVENT_READ, rank)
            while len(answers) < len(self.processes):
                ready = selector.select(until - time.monotonic())
                if not ready:
                    silent = sorted(set(range(len(self.processes))) - set(answers))
                    return answers, {"error": f"no answer within {ANSWER_SECONDS} s from rank {silent}"}
                for key, _ in ready:
                    line = key.fileobj.readline()
                    answer = json.loads(line) if line else {"error": f"rank {key.data} ended without an answer"}
                    if "skipped" in answer or "error" in answer:
                        return answers, answer
                    answers[key.data] = answer
                    selector.unregister(key.fileobj)
        return answers, None

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
        """Ends all ranks; those that do not end by themselves are killed."""
        for process in self.processes:
            try:
                process.stdin.close()
            except BrokenPipeError:
                pass
        until = time.monotonic() + CLOSE_SECONDS
        for process in self.processes:
            try:
                process.wait(max(0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
        self.kill()

    def kill(self):
        """Ends what still runs, and what ranks have started: servers of megatron-core would keep memory from those measured next."""
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in self.processes:
            process.wait()
