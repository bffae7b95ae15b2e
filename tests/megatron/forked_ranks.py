# SPDX-License-Identifier: Apache-2.0
"""Jobs of examples/megatron_gpt/train.py whose ranks are forks of one process, which has imported megatron-core once.

A line of stdin is a job, [ranks, [arguments]]; a line of stdout is what became of it, [exit codes, all that the ranks printed].
No thread has been started when ranks are forked. All of them are waited for, and those that do not end are killed.
"""
import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
import traceback
from pathlib import Path

SECONDS = 200
EXAMPLE = Path(os.environ.get("SHW_SOURCE_DIR", Path(__file__).resolve().parents[2])) / "examples/megatron_gpt"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def run_rank(train, environment, words, output):
    """In the fork, which ends here."""
    code = 1
    try:
        os.setpgid(0, 0)
        os.environ.update(environment)
        for stream in (1, 2):
            os.dup2(output, stream)
        train.main(words)
        code = 0
    except BaseException:  # a rank that ends in any other way is told by its code
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def waited_for(ranks):
    """Exit codes; -9 of those that were killed."""
    codes = {}

    def kill_the_others(*_):
        for rank in set(ranks) - set(codes):
            os.kill(rank, signal.SIGKILL)

    signal.signal(signal.SIGALRM, kill_the_others)
    signal.alarm(SECONDS)
    while len(codes) < len(ranks):
        rank, status = os.waitpid(-1, 0)
        codes[rank] = os.waitstatus_to_exitcode(status)
        if codes[rank]:  # it leaves the others waiting for it
            kill_the_others()
    signal.alarm(0)
    for rank in ranks:  # servers that Megatron starts outlive a rank that does not end by itself
        with contextlib.suppress(ProcessLookupError):
            os.killpg(rank, signal.SIGKILL)
    return [codes[rank] for rank in ranks]


def job(train, size, words):
    port, ranks = free_port(), []
    with tempfile.TemporaryFile("w+") as output:
        for rank in range(size):
            environment = {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
                           "MASTER_PORT": port}
            ranks.append(os.fork())
            if ranks[-1] == 0:
                run_rank(train, environment, words, output.fileno())
        codes = waited_for(ranks)
        output.seek(0)
        return [codes, output.read()]


def main():
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.path.insert(0, str(EXAMPLE))
    answers = os.dup(1)
    os.dup2(2, 1)  # what imports print is no answer
    import train
    with os.fdopen(answers, "w") as out:
        for line in sys.stdin:
            size, words = json.loads(line)
            print(json.dumps(job(train, size, words)), file=out, flush=True)


if __name__ == "__main__":
    main()
