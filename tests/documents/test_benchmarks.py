# SPDX-License-Identifier: Apache-2.0
"""The benchmark driver keeps its rules for every contender, whoever it is; pages and scenarios name the same things."""

import importlib.util
import json
import os
import re
import sys
from pathlib import Path

import pytest

SOURCE = Path(os.environ.get("SHW_SOURCE_DIR", Path(__file__).resolve().parents[2]))
BENCHMARKS = SOURCE / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
from driver import machine, rounds, worker  # noqa: E402

OPENING = "import gc, os, sys\nfrom driver.contender import Base, Skip\n\n\nclass Contender(Base):\n"


def module_of(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines_of(tmp_path, body, threads=(1,), world=1, reps=2):
    """The lines of one contender whose class has this body."""
    path = tmp_path / "contender.py"
    path.write_text(OPENING + "".join(f"    {line}\n" for line in body.splitlines()))
    made = worker.Worker("contender", list(threads), str(path), str(tmp_path / "data"), {"world": world}, str(tmp_path))
    try:
        turns, dropped = rounds.run_rounds([made], None, reps)
        return [rounds.summarise(turn, {"bench": "b"}, dropped) for turn in turns], made
    finally:
        made.kill()


def test_each_count_of_threads_has_its_line(tmp_path):
    lines, _ = lines_of(tmp_path, "def run(self):\n    return {'seen': self.threads}\ndef check(self):\n    return True",
                        threads=(1, 2))
    assert [(line["threads"], line["seen"], line["reps"]) for line in lines] == [(1, 1, 2), (2, 2, 2)]


def test_the_collector_is_the_same_for_all(tmp_path):
    lines, _ = lines_of(tmp_path, "def setup(self):\n    self.off, self.made = not gc.isenabled(), [[] for _ in range(1000)]\n"
                        "def prepare(self):\n    self.before = gc.get_freeze_count()\n"
                        "def run(self):\n    return {'off': self.off, 'on': gc.isenabled(), 'frozen': gc.get_freeze_count()}\n"
                        "def check(self):\n    return True")
    assert lines[0]["off"] and lines[0]["on"] and lines[0]["frozen"] >= 1000


def test_a_wrong_result_has_no_times(tmp_path):
    lines, _ = lines_of(tmp_path, "def run(self):\n    pass\ndef check(self):\n    return False")
    assert lines[0]["checked"] is False and "s_median" not in lines[0]


def test_a_result_that_goes_wrong_later_has_no_times(tmp_path):
    lines, _ = lines_of(tmp_path, "count = 0\ndef run(self):\n    self.count += 1\ndef check(self):\n    return self.count < 2")
    assert lines[0]["checked"] is False and "s_median" not in lines[0]


def test_a_peer_that_is_not_there_says_so(tmp_path):
    lines, _ = lines_of(tmp_path, "def setup(self):\n    raise Skip('peer not importable')")
    assert lines[0]["skipped"] == "peer not importable"


RANKS = "def setup(self):\n    self.rank = self.params['rank']\n"


def test_a_call_of_ranks_lasts_as_long_as_the_last_one_and_adds_what_they_read(tmp_path):
    lines, _ = lines_of(tmp_path, RANKS + "def run(self):\n    return {'s': 1.0 + self.rank, 'bytes_needed': 10, 'bytes_read': 15}\n"
                        "def check(self):\n    return True", world=3)
    assert lines[0]["s_median"] == 3.0 and lines[0]["bytes_needed"] == 30 and lines[0]["bytes_read"] == 45


def test_a_wrong_result_of_one_rank_is_wrong(tmp_path):
    lines, _ = lines_of(tmp_path, RANKS + "def run(self):\n    pass\ndef check(self):\n    return self.rank != 1", world=2)
    assert lines[0]["checked"] is False


@pytest.mark.parametrize(("fault", "said"), [("raise ValueError('broken')", "ValueError: broken"),
                                             ("os._exit(3)", "rank 1 ended without an answer")])
def test_a_rank_that_fails_ends_the_ranks_that_wait_for_it(tmp_path, fault, said):
    lines, made = lines_of(tmp_path, RANKS + "def run(self):\n    if self.rank == 1:\n        " + fault +
                           "\n    sys.stdin.read()\ndef check(self):\n    return True", world=2)
    assert lines[0]["error"] == said
    assert all(process.poll() is not None for process in made.processes)


def test_a_contender_that_never_answers_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "ANSWER_SECONDS", 0)
    lines, made = lines_of(tmp_path, "def setup(self):\n    sys.stdin.read()")
    assert "no answer within 0 s from rank [0]" in lines[0]["error"]
    assert all(process.poll() is not None for process in made.processes)


def test_a_line_says_how_to_repeat_it():
    assert machine.command(True, "load_disk", "cold") == "QUICK=1 python3 benchmarks/run.py --scenario load_disk --variant cold"
    assert {"commit", "cpu", "cores", "kernel"} <= set(machine.facts(str(SOURCE), str(SOURCE)))


def test_tables_show_the_faster_count_of_threads(tmp_path, capsys, monkeypatch):
    line = {"bench": "save_disk", "op": "save", "variant": "durable", "contender": "peer", "reps": 7, "dropped": 0,
            "gbps_median": 1.0, "share_of_floor_min": 0.5, "share_of_floor_median": 0.5,
            "share_of_floor_max": 0.5}
    times = [line | {"threads": threads, "s_min": s, "s_median": s, "s_max": s} for threads, s in ((1, 2.0), (2, 1.0))]
    quick = times[0] | {"quick": True, "s_median": 0.1}
    path = tmp_path / "lines.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in (*times, quick)))
    monkeypatch.setattr(sys, "argv", ["table.py", str(path)])
    module_of(BENCHMARKS / "table.py").main()
    rows = [row for row in capsys.readouterr().out.splitlines() if row.startswith("| peer")]
    assert rows == ["| peer | 2 | 1,000 ms (1,000 ms - 1,000 ms) | 1.00 | 0.50 (0.50 - 0.50) |"]


SCENARIOS = module_of(BENCHMARKS / "run.py").ORDER


def test_every_scenario_is_run_and_explained():
    folders = {path.parent.name for path in BENCHMARKS.glob("*/scenario.py")}
    assert set(SCENARIOS) == folders
    rows = re.findall(r"^\| `(\w+)` \|", (SOURCE / "docs" / "performance.md").read_text(), re.M)
    assert folders <= set(rows)


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_variants_name_files_that_are_there(scenario, quick):
    variants = module_of(BENCHMARKS / scenario / "scenario.py").variants(quick)
    assert len({variant["name"] + variant["op"] for variant in variants}) == len(variants) > 0
    for variant in variants:
        for entry in variant["contenders"]:
            name = entry if isinstance(entry, str) else entry[0]
            assert (BENCHMARKS / scenario / f"{name}.py").exists()


def test_peers_that_move_bytes_run_with_one_and_with_two_threads():
    for scenario in ("save_disk", "load_disk", "save_ranks", "load_ranks", "async_block", "interference", "small_tensors"):
        for variant in module_of(BENCHMARKS / scenario / "scenario.py").variants(False):
            threads = {entry if isinstance(entry, str) else entry[0]: [1] if isinstance(entry, str) else entry[1]
                       for entry in variant["contenders"]}
            one = {"torch_save_fsync", "safetensors_fsync"}  # have no threads to set
            assert all(counts == [1, 2] for name, counts in threads.items() if name not in one), variant["name"]
