# SPDX-License-Identifier: Apache-2.0
"""The loop that all languages train (tests/bindings/hsdp.json), in Python: the parameters after each step, on each rank."""
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shardwright.hsdp import Mesh, over, thread_communicators
from shardwright import thread_collectives

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import hsdp_oracle  # noqa: E402

WORLDS = json.loads(hsdp_oracle.FILE.read_text(encoding="utf-8"))["worlds"]


def test_the_file_is_what_one_process_computes():
    assert json.loads(hsdp_oracle.FILE.read_text(encoding="utf-8")) == hsdp_oracle.document()


def meshes(shards, replicas, ends):
    made = [Mesh((replicas, shards) if replicas > 1 else (shards,), rank=rank) for rank in range(shards * replicas)]
    for replica in range(replicas):
        for shard, end in enumerate(ends(shards)):
            made[replica * shards + shard].set_communicator(1 if replicas > 1 else 0, end)
    for shard in range(shards if replicas > 1 else 0):
        for replica, end in enumerate(ends(replicas)):
            made[replica * shards + shard].set_communicator(0, end)
    return made


def over_collectives(size):
    return [over(each) for each in thread_collectives(size)]


@pytest.mark.parametrize("ends", [thread_communicators, over_collectives])
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: f"{world['replicas']}x{world['shards']}")
def test_every_rank_has_the_digests_after_each_step(world, ends):
    shards, replicas = world["shards"], world["replicas"]
    places = meshes(shards, replicas, ends)
    axes = {"shard_axis": 1, "replicate_axis": 0} if replicas > 1 else {}

    def train(number):
        rank, found = hsdp_oracle.loop.Rank(places[number], number, **axes), []
        for step in range(hsdp_oracle.STEPS):
            rank.step(step)
            found.append(hsdp_oracle.loop.digest(rank.whole()))
        return found

    with ThreadPoolExecutor(shards * replicas) as threads:
        for found in threads.map(train, range(shards * replicas)):
            assert found == world["digests"]
