# SPDX-License-Identifier: Apache-2.0
"""Planner data: paths that travel as bytes, merge as a ChainMap does, and are a dict to whoever looks."""
import copy
import logging
import os
import pickle
import random
from collections import ChainMap

import pytest
import torch
import torch.distributed.checkpoint.default_planner as original

import shardwright.torch.dcp.planner as ours
from shardwright.torch.dcp.planner import _paths

SEED = int(os.environ.get("SHW_SEED", random.SystemRandom().randrange(2**40)))
PATHS = {"a.b": ("a", "b"), "l.0": ("l", 0), "\u00e9": ("\u00e9",)}


def sent(paths):
    return pickle.loads(pickle.dumps(_paths.Paths(paths)))


def test_paths_travel_as_bytes_and_are_a_dict_when_looked_at():
    for look in (dict, lambda p: {**p}, lambda p: p | {}, copy.deepcopy, lambda p: dict(p.items()), lambda p: dict(ChainMap(p)),
                 lambda p: {key: p[key] for key in p}, lambda p: p.copy()):
        found = sent(PATHS)
        assert found.data is not None and pickle.loads(pickle.dumps(found)).data == found.data
        assert look(found) == PATHS == found and list(found) == list(PATHS)
    found["more"] = ("more",)
    assert sent(found) == PATHS | {"more": ("more",)}


def test_paths_of_foreign_types_travel_as_a_plain_dict():
    class Name(str):
        __slots__ = ()

    found = pickle.loads(pickle.dumps(_paths.Paths({"a": (frozenset({complex(1, 2)}),), "b": object})))
    assert type(found) is dict and found["b"] is object
    assert _paths.packed({Name("a"): ("a",)}) is None and _paths.packed("own") is None


@pytest.mark.parametrize("kind", ["dicts", "as sent", "mixed"])
def test_paths_of_ranks_merge_as_in_torch(kind):
    for number in range(300):
        rng = random.Random(SEED + number)
        kinds = [{f"k{rng.randrange(6)}": (rng.randrange(3),) for _ in range(rng.randrange(5))} for _ in range(3)]
        parts = [rng.choice(kinds) for _ in range(rng.randint(1, 9))]
        given = [sent(part) if kind == "as sent" or (kind == "mixed" and rng.random() < 0.5) else part for part in parts]
        merged, expected = _paths.merged(given), dict(ChainMap(*parts))
        assert merged == expected and list(merged) == list(expected) and type(merged) is dict, f"{SEED + number}"
        assert all(part.data is not None for part in given if isinstance(part, _paths.PackedPaths)), "nobody looked"
    assert _paths.merged([*parts, "own"]) is None


def test_a_plan_has_torchs_planner_data():
    state = {"a": {"b": torch.ones(2)}, "l": [torch.ones(1), 3], "step": 1}
    found = []
    for cls in (original.DefaultSavePlanner, ours.DefaultSavePlanner):
        planner = cls()
        planner.set_up_planner(state, None, True)
        plan = planner.create_local_plan()
        final, metadata = planner.create_global_plan([pickle.loads(pickle.dumps(plan))] * 2)
        assert type(metadata.planner_data) is dict and isinstance(plan.planner_data, dict)
        found.append((plan.planner_data, [p.planner_data for p in final], list(metadata.planner_data.items())))
        plan.planner_data["new"] = ("new",)
        assert "new" not in ours.DefaultSavePlanner().mappings
    assert found[0] == found[1]


def test_paths_that_flattening_does_not_keep_are_named(caplog):
    state = {"a": {0: torch.ones(1), "e": {}}, 5: 1, "l": [{}, torch.ones(1)], "t": ({},)}
    flat, paths = original.flatten_state_dict(state)
    assert list(flat) == ["a.0", "5", "l.1", "t"] and paths["a.0"] == ("a", "0"), "torch says nothing"
    planner = ours.DefaultSavePlanner()
    with caplog.at_level(logging.WARNING):
        planner.set_up_planner(state, None, True)
    assert list(planner.state_dict) == list(flat)
    assert set(planner.altered_paths) == {("a", 0), ("a", "e"), ("l", 0), (5,)} and len(planner.altered_paths) == 4
    assert "4 paths do not come back as they are" in caplog.text
    planner.set_up_planner({"a": {"b": torch.ones(1)}, "c": [1]}, None, True)
    assert planner.altered_paths == []
