# SPDX-License-Identifier: Apache-2.0
"""Byte objects that are cells of grids: their names, saves, loads, and what does not fit."""
import pytest

import shardwright
from shardwright import ObjectCell, ObjectKey


def test_the_name_of_a_cell_comes_apart_again():
    key = ObjectKey("a/shard_b", (0, 3), (1, 8))
    assert key.name() == "a/shard_b/shard_0.3_1.8"
    assert ObjectKey.parse(key.name()) == key
    assert ObjectKey.parse("x/shard_0.3_1") == ObjectKey("x", (0, 3), (1, -1))


@pytest.mark.parametrize("key", [ObjectKey("a", (2,), (2,)), ObjectKey("a", (), ()), ObjectKey("a", (0,), (1, 1))])
def test_a_cell_outside_its_grid_has_no_name(key):
    with pytest.raises(shardwright.InvalidArgumentError):
        key.name()


def test_other_names_are_no_cells():
    with pytest.raises(shardwright.InvalidArgumentError, match="shard_0.3_1.8"):
        ObjectKey.parse("a")


def test_cells_are_saved_under_their_own_names_and_loaded_in_their_places(tmp_path):
    value = {"seed": [1, 2]}
    state = {"model": {"rng": ObjectCell(value, (0, 1), (2, 4)), "raw": ObjectCell(b"x", (0,), (1,))}, "step": 7}
    made = shardwright.State(state)
    assert made.object_names() == ["model.rng/shard_0.1_2.4", "model.raw/shard_0_1", "step"]
    shardwright.save(made, tmp_path / "p")
    target = {"model": {"rng": ObjectCell(None, (0, 1), (2, 4)), "raw": ObjectCell(b"", (0,), (1,), replica=True)}, "step": 0}
    shardwright.load(tmp_path / "p", into=target)
    assert target == {"model": {"rng": value, "raw": b"x"}, "step": 7}


def test_what_another_rank_saves_is_not_saved(tmp_path):
    state = {"a": ObjectCell(1, replica=True), "b": ObjectCell(2), "c": ObjectCell(b"", (0,), (2,), replica=True)}
    shardwright.save(state, tmp_path / "p")
    assert shardwright.load(tmp_path / "p") == {"b": 2}


def test_a_cell_that_does_not_fit_names_the_object():
    with pytest.raises(shardwright.InvalidArgumentError, match="rng has 1 indices in a grid of 2 axes"):
        shardwright.State({"rng": ObjectCell(1, (0,), (1, 1))})
    with pytest.raises(shardwright.InvalidArgumentError, match="outside the grid") as caught:
        shardwright.State({"rng": ObjectCell(1, (1,), (1,))})
    assert caught.value.details["tensor"] == "rng"


def test_values_that_are_no_json_are_pickled_where_asked_for(tmp_path):
    cell = ObjectCell((1, {2}), (0,), (1,))
    with pytest.raises(shardwright.InvalidArgumentError, match="a is a builtins.tuple"):
        shardwright.save({"a": cell}, tmp_path / "p")
    shardwright.save({"a": cell}, tmp_path / "p", objects="pickle")
    target = {"a": ObjectCell(None, (0,), (1,))}
    shardwright.load(tmp_path / "p", into=target, trust_pickle=True)
    assert target["a"] == (1, {2})
