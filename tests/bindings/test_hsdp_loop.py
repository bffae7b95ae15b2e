# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/hsdp_loop go on from each other's checkpoints, and end where one process would (hsdp.json)."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(os.environ["SHW_SOURCE_DIR"])
BUILD = Path(os.environ["SHW_BUILD_DIR"])
SECONDS = 120
DIGESTS = json.loads((SOURCE / "tests" / "bindings" / "hsdp.json").read_text(encoding="utf-8"))["worlds"][0]["digests"]
_ALL = {
    "c": [str(BUILD / "bin" / "hsdp_loop")],
    "java": ["java", "-cp", os.pathsep.join(str(BUILD / "java" / name) for name in ("shardwright.jar", "hsdp_loop.jar")), "HsdpLoop"],
    "rust": [str(BUILD / "bin" / "rust_hsdp_loop")],
    "python": [sys.executable, str(SOURCE / "examples" / "hsdp_loop" / "python" / "hsdp_loop.py")],
}
PROGRAMS = {language: _ALL[language] for language in os.environ["SHW_LOOP_LANGUAGES"].split()}  # what this build has


def run(language, folder, steps):
    done = subprocess.run([*PROGRAMS[language], str(folder), str(steps)], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, f"{language}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


@pytest.mark.parametrize("first", PROGRAMS)
def test_what_one_language_saves_the_next_one_continues(first, tmp_path):
    order = list(PROGRAMS)
    start = order.index(first)
    order = order[start:] + order[:start]
    rounds = [order[turn % len(order)] for turn in range(4)]
    for turn, language in enumerate(rounds):
        assert run(language, tmp_path, 5) == DIGESTS[5 * turn + 4], f"{language}, after {rounds[:turn]}"


@pytest.mark.parametrize("language", PROGRAMS)
def test_a_checkpoint_of_something_else_is_refused(language, tmp_path):
    (tmp_path / "checkpoint").write_text("no checkpoint")
    done = subprocess.run([*PROGRAMS[language], str(tmp_path), "1"], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode != 0
    assert str(tmp_path / "checkpoint") in done.stderr
