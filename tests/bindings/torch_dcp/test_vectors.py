# SPDX-License-Identifier: Apache-2.0
"""Cases with known answers: who writes what, how chunks are numbered and checked, what is read, in which order."""
import pytest
import torch
from items import chunk, names, plans, reads, shard, stored, tensor, value
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import SavePlan

import shardwright
import shardwright.torch.dcp.planner as ours
from shardwright.torch.dcp.planner import _global

ROW = [tensor("a", 8), tensor("b", 4), tensor("c", 16), tensor("d", 2), tensor("e"), value("o")]
X, Y = tensor("x", 10), tensor("y", 10)


def part(rank):
    return shard("s", [25 * rank], [25], [100])


OWNERS = [
    ([ROW] * 4, False, ["a", "b", "c", "d e o"]),
    ([ROW] * 4, True, ["a b c d e o", "", "", ""]),
    ([[part(r), X, Y] for r in range(4)], False, ["s", "s x", "s y", "s"]),
    ([[X, Y, part(0)], *([part(r), X, Y] for r in range(1, 4))], False, ["x s", "s y", "s", "s"]),
    ([[tensor("r", 4)] if r in (1, 8) else [] for r in range(9)], False, ["", "", "", "", "", "", "", "", "r"]),
]


@pytest.mark.parametrize(("ranks", "lowest", "kept"), OWNERS)
def test_items_stay_where_torch_leaves_them(ranks, lowest, kept):
    assert names(ours.dedup_save_plans(plans(*ranks), lowest)) == kept
    final, _ = _global.merged_by_engine(plans(*ranks), "lowest_rank" if lowest else "exact")
    assert names(final) == kept


TIES = [({0, 8}, 0), ({1, 8}, 8), ({7, 8}, 8), ({6, 7, 8}, 8), ({1, 9}, 1), ({1, 9, 17}, 1), ({31, 32}, 32),
        ({2, 10, 18}, 18), ({3, 7, 11, 15}, 11), ({4, 12, 20, 28}, 20), ({0, 8, 16, 24, 32}, 0), ({5, 1029}, 1029)]


@pytest.mark.parametrize(("holders", "chosen"), TIES)
def test_ties_fall_as_in_a_set_of_cpython(holders, chosen):
    ranks = [[tensor("r", 4)] if r in holders else [] for r in range(max(holders) + 1)]
    final, _ = _global.merged_by_engine(plans(*ranks), "exact")
    assert [rank for rank, plan in enumerate(final) if len(plan.items)] == [chosen]
    assert [rank for rank, plan in enumerate(ours.dedup_save_plans(plans(*ranks))) if plan.items] == [chosen]


def test_equal_items_of_one_rank_are_both_kept():
    x = tensor("x", 4)
    found = plans([x, x], [x])
    assert names(ours.dedup_save_plans(found)) == ["x x", ""]
    assert names(ours.dedup_tensors(found)) == ["x x", ""]


def test_dedup_tensors_keeps_what_the_first_rank_lists():
    found = ours.dedup_tensors(plans([tensor("a", 1)], [tensor("a", 1), tensor("b", 1)], [tensor("b", 1), value("o")]))
    assert names(found) == ["a", "b", "o"]


def test_chunks_are_numbered_in_rank_order_then_item_order():
    ranks = [[shard("s", [4], [2], [8]), value("o")], [shard("s", [0], [4], [8]), shard("s", [6], [2], [8])]]
    for final, metadata in (ours.create_default_global_save_plan(plans(*ranks)),
                            _global.merged_by_engine(plans(*ranks), "exact")):
        assert [[item.index.index for item in plan.items] for plan in final] == [[0, None], [1, 2]]
        found = metadata.state_dict_metadata
        assert list(found) == ["s", "o"] and found["s"].chunks == [chunk([4], [2]), chunk([0], [4]), chunk([6], [2])]
    final, _ = ours.create_default_global_save_plan(plans(*ranks), rewrite_index_hints=False)
    assert [item.index.index for item in final[1].items] == [None, None]


CONFLICTS = [([shard("n", [0], [2], [4])], [tensor("n", 4)]), ([tensor("n", 4)], [value("n")]),
             ([tensor("n", 4)], [tensor("n", 4)]), ([value("n")], [shard("n", [0], [2], [4])])]


@pytest.mark.parametrize("ranks", CONFLICTS)
def test_a_name_of_two_kinds_is_an_error_that_names_both_ranks(ranks):
    with pytest.raises(AssertionError, match=r"'n' of rank 1.* of rank 0") as caught:
        ours.create_default_global_save_plan(plans(*ranks))
    assert isinstance(caught.value, (shardwright.InvalidArgumentError, AttributeError))


def test_items_without_data_or_box_are_an_error():
    broken = tensor("n", 4)
    object.__setattr__(broken.tensor_data, "chunk", None)
    with pytest.raises(AssertionError, match=r"Cannot create MD for tensor without bounds.*n"):
        ours.create_default_global_save_plan(plans([broken]))
    object.__setattr__(broken, "tensor_data", None)
    with pytest.raises(AssertionError, match="item.tensor_data is not None"):
        ours.create_default_global_save_plan(plans([broken]))


FINDINGS = [([([0], [4]), ([4], [0])], 2, []),
            ([([0], [3]), ([3], [2])], 2, ["out of bounds chunk", "invalid fill tensor-volume: 4 chunks-volume: 5"]),
            ([([0], [3]), ([2], [1])], 2, ["overlapping chunks"]),
            ([], 1, []), ([], 2, ["invalid fill tensor-volume: 4 chunks-volume: 0"])]


@pytest.mark.parametrize(("boxes", "ranks", "said"), FINDINGS)
def test_findings_about_chunks(boxes, ranks, said):
    found = ours._validate_global_plan([SavePlan([])] * ranks, Metadata({"w": stored([4], *boxes), "z": stored([])}))
    assert len(found) == len(said) and all(f"key:w has {text}" in line or f"key:w {text}" in line
                                           for line, text in zip(found, said, strict=True)), found


OVERLAPS = [(([0], [2]), ([2], [2]), False), (([0], [3]), ([2], [2]), True), (([0, 0], [2, 2]), ([1, 2], [2, 2]), False),
            (([0, 0], [2, 2]), ([1, 1], [2, 2]), True), (([0], [4]), ([2], [0]), True), (([], []), ([], []), True)]


@pytest.mark.parametrize(("one", "other", "expected"), OVERLAPS)
def test_boxes_overlap(one, other, expected):
    assert ours._check_box_overlap(chunk(*one), chunk(*other)) is expected
    assert ours._check_box_overlap(chunk(*other), chunk(*one)) is expected


def test_boxes_are_inside():
    assert ours._check_box_bounds(torch.Size([4]), chunk([2], [2])) and ours._check_box_bounds(torch.Size([]), chunk([], []))
    for box in (chunk([3], [2]), chunk([-1], [2]), chunk([0], [-1])):
        assert not ours._check_box_bounds(torch.Size([4]), box)


EIGHTHS = stored([16], *(([2 * i], [2]) for i in range(8)))
TILES = stored([4, 4], *(([r, c], [2, 2]) for r in (0, 2) for c in (0, 2)))
ROWS = stored([8, 4], *(([r, 0], [2, 4]) for r in (6, 0, 4, 2)))
READS = [
    (EIGHTHS, [([0], [6])], [(0, i, (0,), (2 * i,), (2,)) for i in range(3)]),
    (EIGHTHS, [([6], [6])], [(0, 3 + i, (0,), (2 * i,), (2,)) for i in range(3)]),
    (EIGHTHS, [([12], [4])], [(0, 6, (0,), (0,), (2,)), (0, 7, (0,), (2,), (2,))]),
    (TILES, [([1, 1], [2, 3])], [(0, 0, (1, 1), (0, 0), (1, 1)), (0, 1, (1, 0), (0, 1), (1, 2)),
                                 (0, 2, (0, 1), (1, 0), (1, 1)), (0, 3, (0, 0), (1, 1), (1, 2))]),
    (ROWS, [([5, 0], [3, 4]), ([0, 0], [5, 4])], [
        (1, 1, (0, 0), (0, 0), (2, 4)), (1, 3, (0, 0), (2, 0), (2, 4)), (1, 2, (0, 0), (4, 0), (1, 4)),
        (0, 2, (1, 0), (0, 0), (1, 4)), (0, 0, (0, 0), (1, 0), (2, 4))]),
    (stored([], ([], [])), [([], [])], [(0, 0, (), (), ())]),
    (EIGHTHS, [], []), (stored([16]), [([0], [4])], []),
]


@pytest.mark.parametrize(("source", "wanted", "expected"), READS)
def test_reads_of_wanted_boxes(source, wanted, expected):
    found = reads(ours.create_read_items_for_chunk_list("w", source, [chunk(*box) for box in wanted]))
    if source is TILES:
        found, expected = sorted(found), sorted(expected)
    assert found == expected
