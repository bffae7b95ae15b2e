# SPDX-License-Identifier: Apache-2.0
"""Processes that are played on two machines: with an exchange the job reads what both want once, without it each does."""
import os
import subprocess
import sys
from pathlib import Path

import pytest
import ranks

pytest.importorskip("torch")
import exchange_rank  # noqa: E402

SECONDS = 240
WORLD = 2


def run(folder, exchange):
    """Bytes read and received by all ranks together."""
    script, port = Path(__file__).with_name("exchange_rank.py"), ranks.free_port()
    env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    started = [subprocess.Popen([sys.executable, str(script), *map(str, (folder, port, rank, WORLD, exchange))], env=env,
                                text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank in range(WORLD)]
    try:
        told = [process.communicate(timeout=SECONDS) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    for process, (_, errors) in zip(started, told, strict=True):
        assert process.returncode == 0, errors[-3000:]
    found = [[int(word) for word in out.split()[-2:]] for out, _ in told]
    return [sum(column) for column in zip(*found, strict=True)]


def test_what_two_machines_want_is_read_once_and_sent(tmp_path):
    read, received = run(tmp_path, "always")
    assert exchange_rank.PAYLOAD <= read <= 1.05 * exchange_rank.PAYLOAD
    assert exchange_rank.PAYLOAD <= received <= 1.05 * exchange_rank.PAYLOAD


def test_without_an_exchange_each_machine_reads_for_itself(tmp_path):
    read, received = run(tmp_path, "off")
    assert read >= 1.95 * exchange_rank.PAYLOAD
    assert received < 1 << 20
