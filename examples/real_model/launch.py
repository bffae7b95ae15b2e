# SPDX-License-Identifier: Apache-2.0
"""Starts the ranks of one training job on this machine, follows rank 0's events, and can kill the whole job."""
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Job:
    """N processes of train.py. events() yields what rank 0 prints; every rank's stderr goes to a file of its own."""

    def __init__(self, ranks, arguments, logs, package):
        os.makedirs(logs, exist_ok=True)
        port, here = free_port(), os.path.dirname(os.path.abspath(__file__))
        self.logs, self.processes = logs, []
        for rank in range(ranks):
            path = os.pathsep.join([package] + os.environ.get("PYTHONPATH", "").split(os.pathsep)).strip(os.pathsep)
            env = os.environ | {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
                                "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
            with open(os.path.join(logs, f"rank-{rank}.log"), "wb") as log:
                self.processes.append(subprocess.Popen(
                    [sys.executable, os.path.join(here, "train.py")] + arguments, env=env, stderr=log,
                    stdin=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
                    stdout=subprocess.PIPE if rank == 0 else log))

    def events(self):
        for line in self.processes[0].stdout:
            yield json.loads(line)

    def bytes_written(self):
        """What the processes have written so far: to devices; by calls, to sockets, too. Writes round the page cache count
        in the first, and need not count in the second; on file systems in memory it is the other way round."""
        return [sum(each) for each in zip(*(_written(p.pid) for p in self.processes), strict=True)]

    def go_on(self):
        """The ranks wait for this before they overwrite."""
        self.processes[0].stdin.write(b"\n")
        self.processes[0].stdin.flush()

    def stop(self):
        """No rank runs until run_for."""
        self._signal(signal.SIGSTOP)

    def run_for(self, seconds):
        """Lets stopped ranks run for so long."""
        self._signal(signal.SIGCONT)
        time.sleep(seconds)
        self.stop()

    def kill(self):
        """SIGKILL to every rank at once."""
        self._signal(signal.SIGKILL)

    def _signal(self, number):
        for p in self.processes:
            p.send_signal(number)

    def wait(self):
        """Exit codes; a rank that failed takes the others down, so that nobody waits for it."""
        watchers = [threading.Thread(target=self._watch, args=(p,)) for p in self.processes]
        for w in watchers:
            w.start()
        for w in watchers:
            w.join()
        return [p.returncode for p in self.processes]

    def _watch(self, process):
        if process.wait() != 0:
            self.kill()

    def tail(self, lines=15):
        """The end of the first log that says something."""
        for rank in range(len(self.processes)):
            with open(os.path.join(self.logs, f"rank-{rank}.log"), encoding="utf-8", errors="replace") as f:
                text = f.read().strip()
            if text:
                return f"rank {rank}:\n" + "\n".join(text.splitlines()[-lines:])
        return "(no rank wrote an error)"


def _written(pid):
    try:
        with open(f"/proc/{pid}/io", encoding="ascii") as f:
            fields = dict(line.split(": ") for line in f)
    except OSError:  # ended
        return 0, 0
    return int(fields["write_bytes"]), int(fields["wchar"])
