# SPDX-License-Identifier: Apache-2.0
"""Vectors of the standard preset (tests/bindings/hyperparallel.json): geometry, placements, redundancy, read items,
resharding."""
import json
import os
from pathlib import Path

import numpy as np
import pytest
from shardwright.errors import InvalidArgumentError
from shardwright.hyperparallel import (ChunkStorageMetadata, LoadItemType, Metadata, MetadataIndex, ReadItem,
                                          ReshardHandler, StandardLoadPlanner, StandardSavePlanner, TensorProperties,
                                          TensorStorageMetadata, create_read_items_for_chunk_list, infer_intersection,
                                          infer_slice_area_by_rank, placements_to_tensor_map, remove_redundant_plans,
                                          tensor_map_to_placements)
from hyperparallel_words import Described, LayoutObject, labels, plan_of

SOURCE = Path(os.environ.get("SHW_SOURCE_DIR", Path(__file__).parents[3]))
VECTORS = json.loads((SOURCE / "tests" / "bindings" / "hyperparallel.json").read_text(encoding="ascii"))
BUILTIN = {"ValueError": ValueError, "TypeError": TypeError}


def frozen(value):
    """Lists as tuples, at all depths."""
    return tuple(frozen(part) for part in value) if isinstance(value, list) else value


def named(case):
    return case.get("name") or case.get("why") or json.dumps({k: case[k] for k in list(case)[:3]})


@pytest.mark.parametrize("case", VECTORS["areas"], ids=named)
def test_areas(case):
    for rank, area in case["areas"].items():
        found = infer_slice_area_by_rank(tuple(case["mesh"]), frozen(case["tensor_map"]), int(rank),
                                         tuple(case["shape"]))
        assert found == frozen(area), rank


@pytest.mark.parametrize("case", VECTORS["bad_areas"], ids=named)
def test_areas_that_have_no_meaning_are_refused(case):
    with pytest.raises(ValueError) as caught:
        infer_slice_area_by_rank(tuple(case["mesh"]), frozen(case["tensor_map"]), case["rank"], tuple(case["shape"]))
    assert isinstance(caught.value, InvalidArgumentError)


@pytest.mark.parametrize("case", VECTORS["intersections"], ids=named)
def test_intersections(case):
    if "error" in case:
        with pytest.raises(BUILTIN[case["python"]]) as caught:
            infer_intersection(frozen(case["a"]), frozen(case["b"]))
        assert caught.value.status == case["error"]
    else:
        assert infer_intersection(frozen(case["a"]), frozen(case["b"])) == frozen(case["result"])


@pytest.mark.parametrize("case", VECTORS["placements"], ids=named)
def test_placements_and_maps(case):
    placements = [tuple(row) for row in case["placements"]]
    if "error" in case:
        with pytest.raises(ValueError):
            placements_to_tensor_map(placements, case["ndim"])
        return
    partial = tuple(case.get("partial", [None] * len(placements)))
    assert placements_to_tensor_map(placements, case["ndim"]) == (frozen(case["tensor_map"]), partial)
    if "single_axis_error" in case:
        with pytest.raises(ValueError):
            placements_to_tensor_map(placements, case["ndim"], single_axis=True)
    normal = tuple(("shard", row[1] % case["ndim"]) if row[0] == "shard" else row for row in placements)
    assert tensor_map_to_placements(len(placements), frozen(case["tensor_map"]), partial) == normal


def planner_of(case):
    planner = StandardSavePlanner()
    planner.configure_planner({}, remove_redundancy=case["owner"] != "all",
                              save_to_minimum_rank=case["owner"] == "lowest_rank")
    return planner


@pytest.mark.parametrize("case", VECTORS["redundancy"], ids=named)
def test_redundancy(case):
    plans = [plan_of(rows) for rows in case["plans"]]
    if "error" in case:
        with pytest.raises(ValueError, match=r"0.*1|1.*0") as caught:
            planner_of(case).build_global_plan(plans)
        assert caught.value.status == case["error"] and "w" in str(caught.value)
        return
    before = [list(plan.items) for plan in plans]
    final, metadata = planner_of(case).build_global_plan(plans)
    assert [list(plan.items) for plan in plans] == before
    if "kept" in case:
        assert [labels(plan) for plan in final] == case["kept"]
        reduced = remove_redundant_plans(plans, save_to_minimum_rank=case["owner"] == "lowest_rank")
        assert [labels(plan) for plan in reduced] == case["kept"]
        assert all(item.index.index is None for plan in reduced for item in plan.items)
    for name, numbers in case.get("numbers", {}).items():
        found = {",".join(map(str, item.index.offset)): item.index.index
                 for plan in final for item in plan.items if item.index.fqn == name}
        assert found == numbers
    for name, chunks in case.get("chunks", {}).items():
        assert [",".join(map(str, chunk.offsets)) for chunk in metadata.state_dict_metadata[name].chunks] == chunks
    if "metadata" in case:
        assert list(metadata.state_dict_metadata) == case["metadata"]
    assert all(item.index.index is None for plan in final for item in plan.items if not item.tensor_data)


def boxes(rows):
    return [ChunkStorageMetadata(tuple(offsets), tuple(sizes)) for offsets, sizes in rows]


def expected_items(case):
    return [ReadItem(LoadItemType.TENSOR, MetadataIndex("w", tuple(row["wanted_offsets"]), row["wanted"]),
                     tuple(row["begin"]), MetadataIndex("w", tuple(row["chunk_offsets"]), row["chunk"]),
                     tuple(row["chunk_begin"]), tuple(row["sizes"])) for row in case["items"]]


@pytest.mark.parametrize("case", VECTORS["reads"], ids=named)
def test_read_items(case):
    stored = TensorStorageMetadata(TensorProperties("float32"), tuple(case["shape"]), boxes(case["saved"]))
    assert create_read_items_for_chunk_list("w", stored, boxes(case["wanted"])) == expected_items(case)
    assert create_read_items_for_chunk_list("w", stored, []) == []
    empty = TensorStorageMetadata(TensorProperties("float32"), tuple(case["shape"]), [])
    assert create_read_items_for_chunk_list("w", empty, boxes(case["wanted"])) == []


@pytest.mark.parametrize("case", [c for c in VECTORS["reads"] if c["wanted"] == [[[0] * len(c["shape"]), c["shape"]]]],
                         ids=named)
def test_the_planner_reads_each_element_once(case):
    stored = TensorStorageMetadata(TensorProperties("float32"), tuple(case["shape"]), boxes(case["saved"]))
    planner = StandardLoadPlanner()
    planner.configure_planner({"w": Described(case["shape"])}, Metadata({"w": stored}))
    if "planner_error" in case:
        with pytest.raises(RuntimeError, match="w") as caught:
            planner.build_local_plan()
        assert case["planner_error"].strip("[]") in str(caught.value)
        return
    chosen = case.get("planner_chunks", [row["chunk"] for row in case["items"]])
    assert planner.build_local_plan().items == [
        item for item in expected_items(case) if item.storage_index.index in chosen
    ]


def layout(description):
    return None if description is None else LayoutObject(tuple(description["mesh"]), frozen(description["map"]),
                                                         description["ranks"])


@pytest.mark.parametrize("case", VECTORS["reshard"], ids=named)
def test_reshard(case):
    arguments = ("w", tuple(case["shape"]), layout(case["from"]), layout(case["to"]), case["rank"])
    if "error" in case:
        with pytest.raises(ValueError):
            ReshardHandler(*arguments)
        return
    handler = ReshardHandler(*arguments)
    assert handler.infer_all_tensor_offset() == {int(rank): frozen(area) for rank, area in case["relative"].items()}
    if "global" in case:
        assert handler.global_union_area_map == {int(rank): frozen(area) for rank, area in case["global"].items()}


@pytest.mark.parametrize("case", VECTORS["assembly"]["cases"], ids=lambda case: json.dumps(case["parts"]))
def test_assembly(case):
    handler = ReshardHandler("w", tuple(VECTORS["assembly"]["shape"]), layout(VECTORS["assembly"]["from"]), None, 0)
    parts = {int(rank): np.array(values) for rank, values in case["parts"].items()}
    with pytest.raises(RuntimeError):
        handler.get_real_tensor(parts or {0: np.zeros(1)})
    handler.infer_all_tensor_offset()
    if "error" in case:
        with pytest.raises(BUILTIN[case["python"]]) as caught:
            handler.get_real_tensor(parts)
        assert caught.value.status == case["error"]
    else:
        assert handler.get_real_tensor(parts).tolist() == case["result"]
