# SPDX-License-Identifier: Apache-2.0
"""A rank is replaced: the one that stays has made calls of which the new one knows nothing."""
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import ranks

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not importable")
SECONDS = 240


def test_an_abort_reaches_a_rank_that_came_after_a_restart(tmp_path):
    script = Path(__file__).with_name("restart_rank.py")
    arguments = [str(tmp_path), str(ranks.free_port()), str(ranks.free_port())]
    env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    started = {role: subprocess.Popen([sys.executable, str(script), role, *arguments], env=env, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
               for role in ("survivor", "gone", "new")}
    try:
        found = {role: process.communicate(timeout=SECONDS) for role, process in started.items()}
    finally:
        for process in started.values():
            process.kill()
            process.wait()
    for role, process in started.items():
        assert process.returncode == 0, f"{role}: {found[role][1][-3000:]}"
    assert "told" in found["new"][0]
