# SPDX-License-Identifier: Apache-2.0
"""Jobs of examples/megatron_gpt/train.py whose ranks are forks of one process, which has imported megatron-core once.

A line of stdin is a job, [ranks, [arguments]]; a line of stdout is what became of it, [exit codes, all that the ranks printed].
No thread has been started when ranks are forked. All of them are waited for, and those that do not end are killed. The store of
a job is served by a process of its own, which binds a port that is free and tells it: ranks are given no port that another
process could have taken by then.
"""
import contextlib
import json
import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path

SECONDS = 200
EXAMPLE = Path(os.environ.get("SHW_SOURCE_DIR", Path(__file__).resolve().parents[2])) / "examples/megatron_gpt"


@contextlib.contextmanager
def served_store():
    """The port of a store, which goes with the block, or with this process."""
    told, tells = os.pipe()
    lives, life = os.pipe()  # nothing is written: it ends with the last that holds it open
    server = os.fork()
    if server == 0:
        os.close(life)
        serve_store(tells, lives)
    os.close(tells)
    os.close(lives)
    try:
        with os.fdopen(told) as text:
            port = text.read()
        assert port, "there is no store"
        yield port
    finally:
        os.close(life)
        os.kill(server, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # who waited for ranks may have heard of its end
            os.waitpid(server, 0)


def serve_store(tells, lives):
    """In the fork, which ends here."""
    try:
        from torch import distributed as dist
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        os.write(tells, str(store.port).encode())
        os.close(tells)
        os.read(lives, 1)
    except BaseException:  # no port is told then
        traceback.print_exc()
    finally:
        os._exit(1)


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
        if rank not in ranks:  # the store, without which ranks fail
            continue
        codes[rank] = os.waitstatus_to_exitcode(status)
        if codes[rank]:  # it leaves the others waiting for it
            kill_the_others()
    signal.alarm(0)
    for rank in ranks:  # servers that Megatron starts outlive a rank that does not end by itself
        with contextlib.suppress(ProcessLookupError):
            os.killpg(rank, signal.SIGKILL)
    return [codes[rank] for rank in ranks]


def job(train, size, words):
    ranks = []
    with tempfile.TemporaryFile("w+") as output, served_store() as port:
        for rank in range(size):
            # That the store is there already is what launchers of torch say by the last one.
            environment = {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
                           "MASTER_PORT": port, "TORCHELASTIC_USE_AGENT_STORE": "True"}
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
