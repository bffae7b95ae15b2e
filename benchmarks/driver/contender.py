# SPDX-License-Identifier: Apache-2.0
"""What a contender file defines, and the worker process that runs one.

A contender file has one class `Contender(Base)`. The worker is a fresh process per contender, so that peak memory,
bytes read and caches of one never flatter another; a contender of several ranks has a process per rank. It reads one
JSON command per line on stdin and answers with one.

The collector is treated alike for all: off while a contender sets up, and what setup and prepare made is frozen, so that
a run pays for collections of the objects that it makes, never for those of its input.
"""
import gc
import importlib.util
import json
import os
import resource
import sys
import time
import traceback


class Skip(Exception):
    """Raised by setup when the peer cannot run here; the text becomes the line's `skipped`."""


class Base:
    """One way of doing the scenario's operation. Only `run` is timed. `threads` is how many each run may use; it is set
    before `prepare`."""

    versions: dict = {}
    threads = 1

    def __init__(self, params, directory):
        self.params, self.directory = params, directory

    def setup(self):
        """Imports, makes and touches everything that the timing must not contain."""

    def prepare(self):
        """Before each round, untimed: removes the last result, drops caches."""

    def meet(self):
        """The last untimed step: where ranks wait for each other."""

    def run(self):
        """The timed operation. May return a dict of extra keys for the line."""
        raise NotImplementedError

    def settle(self):
        """After each run, untimed: waits for what goes on in the background."""

    def check(self):
        """True when the result of the last run is right. Called before the first timing and after the last."""
        raise NotImplementedError


def io_bytes():
    """From and to the device, calls, and what reading calls gave from wherever."""
    with open("/proc/self/io", encoding="ascii") as f:
        fields = {name: int(value) for name, value in (line.split(": ") for line in f.read().splitlines())}
    return {"bytes_read": fields["read_bytes"], "bytes_written": fields["write_bytes"],
            "syscalls": fields["syscr"] + fields["syscw"], "bytes_given_by_reads": fields["rchar"]}


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def set_up(contender):
    gc.disable()
    contender.setup()
    gc.enable()
    return {"versions": contender.versions}


def timed_run(contender, threads):
    contender.threads = threads
    contender.prepare()
    gc.collect()
    gc.freeze()
    os.sync()
    contender.meet()
    io_before, cpu_before, start = io_bytes(), cpu_seconds(), time.perf_counter()
    extra = contender.run() or {}
    seconds = time.perf_counter() - start
    cpu, io_after = cpu_seconds() - cpu_before, io_bytes()
    contender.settle()
    answer = {"s": seconds, "cpu_s": cpu, "rss_peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
    return answer | {key: io_after[key] - io_before[key] for key in io_after} | extra


def load_contender(path):
    spec = importlib.util.spec_from_file_location("contender", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Contender


def answer_command(contender, command, *arguments):
    if command == "setup":
        return set_up(contender)
    if command == "run":
        return timed_run(contender, int(arguments[0]))
    if command == "check":
        return {"checked": bool(contender.check())}
    raise ValueError(command)


def main():
    """worker: contender.py FILE DIRECTORY PARAMS_JSON; data on a private copy of stdout, prints go to stderr."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    path, directory, params = sys.argv[1:4]
    sys.path.append(os.path.dirname(path))  # at the end: a contender may be named like the package that it runs
    try:
        contender = load_contender(path)(json.loads(params), directory)
        for line in sys.stdin:
            print(json.dumps(answer_command(contender, *line.split())), file=out, flush=True)
    except Skip as e:
        print(json.dumps({"skipped": str(e)}), file=out, flush=True)
    except Exception as e:  # the driver turns it into the line's error
        traceback.print_exc()
        print(json.dumps({"error": f"{type(e).__name__}: {e}"}), file=out, flush=True)
    os._exit(0)  # some peers take seconds to take themselves apart


if __name__ == "__main__":
    sys.modules.setdefault("driver.contender", sys.modules["__main__"])
    main()
