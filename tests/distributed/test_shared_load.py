# SPDX-License-Identifier: Apache-2.0
"""Processes that share the reads of a load: what all want is read once; when one of them is killed the others say so."""
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import ranks

pytest.importorskip("torch")
import shared_load_rank  # noqa: E402

SECONDS = 240
WORLD = 3
NOBODY = -1


def run(folder, victim, read):
    """(exit code, what it printed) of each rank."""
    script = Path(__file__).with_name("shared_load_rank.py")
    env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    port = ranks.free_port()
    started = [subprocess.Popen([sys.executable, str(script), *map(str, (folder, port, rank, WORLD, victim, read))], env=env,
                                text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank in range(WORLD)]
    try:
        told = [process.communicate(timeout=SECONDS) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    for rank, process in enumerate(started):
        if rank != victim:
            assert process.returncode == 0, f"rank {rank}: {told[rank][1][-3000:]}"
    return [(process.returncode, out) for process, (out, _) in zip(started, told, strict=True)]


def test_what_all_ranks_want_is_read_once(tmp_path):
    found = run(tmp_path, NOBODY, 0)
    assert [out.split()[0] for _, out in found] == ["loaded"] * WORLD
    payload = 4 * shared_load_rank.ROWS * shared_load_rank.COLUMNS
    assert sum(int(out.split()[1]) for _, out in found) <= 1.05 * payload


@pytest.mark.parametrize("read", [1, 3])
@pytest.mark.parametrize("victim", range(WORLD))
def test_a_rank_that_is_killed_is_named_by_the_others(tmp_path, victim, read):
    found = run(tmp_path, victim, read)
    assert found[victim][0] == -signal.SIGKILL
    others = [out.split() for rank, (_, out) in enumerate(found) if rank != victim]
    assert [words[0] for words in others] == ["failed"] * (WORLD - 1), found
    assert str(victim) in [words[2] for words in others], found
