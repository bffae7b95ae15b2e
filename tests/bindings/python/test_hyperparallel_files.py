# SPDX-License-Identifier: Apache-2.0
"""Geometry helpers, layout files, path rules, and what ReshardHandler checks."""
import json
from pathlib import Path

import numpy as np
import pytest
from shardwright.errors import DataLossError, UnimplementedError
from shardwright.hyperparallel import (ChunkStorageMetadata, ReshardHandler, check_layout, check_path, chunk_to_area,
                                          combine_layout, get_current_layout, get_global_layout, has_valid_filename,
                                          load_layout, narrow_tensor_by_index, rank_id_to_dev_id_list, save_layout)
from hyperparallel_words import Distributed, LayoutObject, rows


def test_coordinates_wrap():
    assert [rank_id_to_dev_id_list((2, 3), rank) for rank in (0, 1, 3, 5, 6, -1)] == [
        [0, 0], [0, 1], [1, 0], [1, 2], [0, 0], [1, 2]]
    assert rank_id_to_dev_id_list((), 5) == []


def test_chunks_and_parts():
    assert chunk_to_area(ChunkStorageMetadata((2, 0), (3, 4))) == ((2, 5), (0, 4))
    assert chunk_to_area(ChunkStorageMetadata((), ())) == ()
    array = np.arange(12).reshape(3, 4)
    part = narrow_tensor_by_index(array, (1, 2), (2, 1))
    assert part.base is not None and part.tolist() == [[6], [10]]
    assert narrow_tensor_by_index(array, (), (1,)) is array and narrow_tensor_by_index(array, (0, 0), ()) is array


@pytest.mark.parametrize("name,valid", [("a.b", True), ("a1.b2", True), ("a.1", False), ("1.ckpt", False),
                                        (".hidden", False), (".", False), ("dir/", False), ("dir/x.layout", True),
                                        ("x", False), ("x.", False)])
def test_file_names(name, valid):
    assert has_valid_filename(name) is valid and has_valid_filename(Path(name)) is valid


def test_folders_are_made(tmp_path):
    check_path(tmp_path / "a" / "b")
    check_path(str(tmp_path / "c" / "d.layout"))
    check_path(tmp_path)
    assert (tmp_path / "a" / "b").is_dir() and (tmp_path / "c").is_dir() and not (tmp_path / "c" / "d.layout").exists()


def model(rank):
    del rank
    return {"w": Distributed(np.zeros((2, 3), "f4"), (4, 3), rows([0, 1])), "plain": np.zeros(2)}


def test_layout_files(tmp_path):
    """The keys are names; in the original every parameter of a torch module lands under the key "null"."""
    for rank in range(2):
        save_layout(get_current_layout(model(rank), rank), tmp_path / f"r{rank}.layout")
    (tmp_path / "other.json").write_text("{}")
    expected = {"mesh_shape": [2], "tensor_map": [0, -1], "interleaved_parallel": False, "alias_name": [],
                "rank_list": [0, 1], "type": "float32", "full_shape": [4, 3]}
    assert json.loads((tmp_path / "r0.layout").read_text()) == {"0": {"w": expected}}
    combined = combine_layout(tmp_path)
    assert combined == {"0": {"w": expected}, "1": {"w": expected}}
    save_layout(combined, tmp_path / "all.layout")
    loaded = load_layout(str(tmp_path / "all.layout"))
    assert loaded["0"]["w"]["rank_list"] is loaded["1"]["w"]["rank_list"]  # K18
    with pytest.raises(ValueError, match="rank 0"):
        combine_layout(tmp_path)


def test_layouts_without_to_dict_and_models():
    class Plain:
        mesh_shape, tensor_map, rank_list = (2,), (0, -1), [0, 1]

    class Module:
        def named_parameters(self):
            return iter([("w", Distributed(np.zeros((2, 3), "f4"), (4, 3), Plain()))])

    assert get_current_layout(Module(), 1)["1"]["w"]["tensor_map"] == (0, -1)
    with pytest.raises(ValueError, match="int"):
        get_current_layout(7)

    class Cell:
        def parameters_and_names(self):
            return [("w", Distributed(np.zeros((2, 3)), (4, 3), Plain()))] * 2

    with pytest.raises(ValueError, match="w"):
        get_current_layout(Cell())


def test_global_layouts():
    mine = get_current_layout(model(0), 0)
    gathered = get_global_layout(model(0), 0, lambda part: [part, get_current_layout(model(1), 1)])
    assert list(gathered) == ["0", "1"] and gathered["0"] == mine["0"] and get_global_layout(model(0)) == mine
    with pytest.raises(ValueError, match="rank 0"):
        get_global_layout(model(0), 0, lambda part: [part, part])


@pytest.mark.parametrize("text", ["{", "[1]", '{"0": 1}', "\xff"])
def test_files_that_hold_no_layouts(tmp_path, text):
    (tmp_path / "x.layout").write_bytes(text.encode("latin-1"))
    with pytest.raises(DataLossError, match="x.layout"):
        load_layout(tmp_path / "x.layout")


def test_layouts_are_checked():
    check_layout(None, "from_layout")
    check_layout(rows([0, 1]), "from_layout")
    bad = rows([0, 1])
    del bad._tensor_map
    with pytest.raises(ValueError, match="_tensor_map"):
        check_layout(bad, "x")
    with pytest.raises(TypeError, match="tensor_map"):
        check_layout(LayoutObject((2,), 7, [0, 1]), "x")
    with pytest.raises(ValueError, match="3 ranks"):
        check_layout(LayoutObject((2,), (0,), [0, 1, 2]), "x")
    with pytest.raises(UnimplementedError, match="interleaved_parallel"):
        check_layout(LayoutObject((2,), (0,), [0, 1], alias_name=("interleaved_parallel",)), "x")


def test_reshard_attributes_and_assembly():
    """Uneven slices come together too; the original raises ValueError for them."""
    full = np.arange(21).reshape(7, 3)
    handler = ReshardHandler("w", (7, 3), rows([4, 5, 6, 9]), rows([0, 1]), 1)
    assert (handler.from_mesh_shape, handler.from_rank_list, handler.to_rank_id, handler.inner_to_rank_id) == (
        (4,), [4, 5, 6, 9], 1, 1)
    needed = handler.infer_all_tensor_offset()
    slices = {4: full[0:2], 5: full[2:4], 6: full[4:6], 9: full[6:7]}
    parts = {rank: slices[rank][tuple(slice(*pair) for pair in area)] for rank, area in needed.items()}
    assert handler.get_real_tensor(parts).tolist() == full[4:7].tolist() and set(parts) == {6, 9}
    whole = ReshardHandler("w", (4, 4), None, rows([0, 1]), 0)
    assert whole.from_tensor_map == (0, 0) and whole.infer_all_tensor_offset() == {0: ((0, 2), (0, 4))}


def test_planning_needs_neither_numpy_nor_a_framework(run_python):
    done = run_python("""
        import sys
        from shardwright.hyperparallel import StandardLoadPlanner, StandardSavePlanner

        class Described:
            shape, dtype = (4, 2), "bfloat16"

        planner = StandardSavePlanner()
        planner.configure_planner({"w": Described(), "o": [1]})
        plans, metadata = planner.build_global_plan([planner.build_local_plan()])
        loader = StandardLoadPlanner()
        loader.configure_planner({"w": Described(), "o": None}, metadata)
        print(len(loader.build_local_plan().items), sorted({"numpy", "torch", "mindspore"} & set(sys.modules)))
    """)
    assert done.stdout.strip() == "2 []", done.stderr
