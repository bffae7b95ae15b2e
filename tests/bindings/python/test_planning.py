# SPDX-License-Identifier: Apache-2.0
"""Planning by descriptions: there and back, the originals' choices, matches, and what is refused."""
from array import array

import pytest

import shardwright
import shardwright.errors as E
from shardwright import planning
from shardwright.planning import EntryBatch

F32 = shardwright.dtype_number("float32")


def batch(*listed, **extra):
    """Entries from (name, shape, boxes or None for an object), a box being (offsets, sizes)."""
    names, cuts, dtypes, shapes, shape_cuts = b"", array("Q", [0]), array("i"), array("q"), array("Q", [0])
    ranges, offsets, sizes = array("Q", [0]), array("q"), array("q")
    for name, shape, boxes in listed:
        names += name.encode()
        cuts.append(len(names))
        dtypes.append(0 if boxes is None else F32)
        shapes.extend(shape)
        shape_cuts.append(len(shapes))
        for begin, size in boxes or []:
            offsets.extend(begin)
            sizes.extend(size)
        ranges.append(ranges[-1] + (1 if boxes is None else len(boxes)))
    return EntryBatch(len(listed), names, cuts, dtypes, shapes=shapes, shape_offsets=shape_cuts, box_ranges=ranges,
                      box_offsets=offsets, box_sizes=sizes, **extra)


def whole(name, *shape):
    return (name, shape, [((0,) * len(shape), shape)])


def rows(name, shape, begin, count):
    return (name, shape, [((begin, *(0 for _ in shape[1:])), (count, *shape[1:]))])


def plans(*ranks):
    return [planning.describe(each, rank=r, world_size=len(ranks)) for r, each in enumerate(ranks)]


def kept_numbers(given, merged):
    """For each rank the entries that it keeps and the numbers of their chunks, in the order of its plan."""
    found = []
    for plan, numbers in zip(given, merged.kept, strict=True):
        entries = planning.entries(plan)
        owner = [entry for entry in range(entries.count) for _ in range(*entries.box_ranges[entry:entry + 2])]
        assert len(numbers) == len(owner) and numbers.format == "I"
        found.append([(entries.name_list()[entry], number) for entry, number in zip(owner, numbers, strict=True)
                      if number != planning.NOT_KEPT])
    return found


def kept_names(given, merged):
    return [[name for name, _ in rank] for rank in kept_numbers(given, merged)]


def test_entries_come_back_as_they_were_described():
    given = batch(rows("w", (4, 2), 1, 2), ("step", (), None), whole("scale"), order=array("Q", [2, 0, 1]),
                  attributes=b"abc", attribute_offsets=array("Q", [0, 1, 1, 3]))
    plan = planning.describe(given, rank=1, world_size=2, agreement="mode=test\n")
    back = planning.entries(plan)
    assert back.count == 3 and back.name_list() == ["w", "step", "scale"]
    assert list(back.dtypes) == [F32, 0, F32] and list(back.kinds) == [2, 1, 1]
    assert list(back.box_offsets) == [1, 0] and list(back.box_sizes) == [2, 2]
    assert list(back.order) == [2, 0, 1] and list(back.numbers) == [0, 0, 0]
    assert bytes(back.attributes) == b"abc" and list(back.attribute_offsets) == [0, 1, 1, 3]
    assert planning.describe(back, rank=1, world_size=2, agreement="mode=test\n") == plan
    assert shardwright.Plan.from_bytes(plan).kind == "local_save"


def test_columns_without_values_are_taken_wherever_they_lie():
    only_objects = batch(("step", (), None), ("rng", (), None))
    assert planning.entries(planning.describe(only_objects)).name_list() == ["step", "rng"]
    unaligned = memoryview(bytes(17))[1:1].cast("q")
    assert planning.entries(planning.describe(batch(whole("scale"), ("o", (), None), secondary=bytes(2)))).count == 2
    only_objects.shapes = only_objects.box_offsets = only_objects.box_sizes = unaligned
    assert planning.entries(planning.describe(only_objects)).count == 2


def test_presets_choose_as_their_originals():
    ranks = [batch(whole("a", 8), whole("b", 4), whole("c", 16), whole("d", 2), whole("e"), ("o", (), None))
             for _ in range(4)]
    given = plans(*ranks)
    exact = planning.merge(given, owner="exact", preset="torch")
    assert kept_names(given, exact) == [["a"], ["b"], ["c"], ["d", "e", "o"]]
    views = planning.merge_views(given, owner="exact", preset="torch")
    assert (bytes(views.plan), views.kept) == exact and views.plan.readonly and views.kept[0].readonly
    last = views.kept[-1]
    del views
    assert last == exact.kept[-1], "one view keeps the memory"
    lowest = planning.merge(given, owner="lowest_rank", preset="torch")
    assert kept_names(given, lowest) == [["a", "b", "c", "d", "e", "o"], [], [], []]
    balanced = planning.merge(given, owner="balanced")
    assert kept_names(given, balanced)[0] == ["c"]
    every = planning.merge(given, owner="all", preset="hyperparallel")
    assert list(every.kept[3]) == [3, 3, 3, 3, 3, 0]


def test_numbers_of_chunks_follow_what_was_kept():
    merged = planning.merge(plans(batch(rows("w", (4,), 2, 2)), batch(rows("w", (4,), 0, 2))), owner="exact", preset="hyperparallel")
    assert [list(numbers) for numbers in merged.kept] == [[0], [1]]
    stored = planning.entries(merged.plan)
    assert list(stored.box_offsets) == [2, 0] and list(stored.numbers) == [0, 1]
    assert shardwright.Plan.from_bytes(merged.plan).kind == "merged_save"


def test_conflicts_and_covers_are_refused_by_name():
    with pytest.raises(E.InvalidArgumentError, match="rank 0.*rank 1"):
        planning.merge(plans(batch(whole("w", 4)), batch(whole("w", 5))))
    hole = plans(batch(rows("w", (4,), 0, 1)), batch(rows("w", (4,), 2, 2)))
    with pytest.raises(E.InvalidArgumentError) as caught:
        planning.merge(hole)
    assert dict(caught.value.details)["cover"] == "full"
    planning.merge(hole, cover="disjoint")
    with pytest.raises(E.DataLossError):
        planning.merge([planning.describe(batch(whole("w", 4)))[:-8]])


def test_matches_say_where_common_parts_lie():
    stored = planning.describe(batch(("w", (16,), [((2 * i,), (2,)) for i in range(8)]), ("o", (), None)),
                               kind="merged_save")
    found = planning.match(stored, batch(("w", (16,), [((1,), (4,)), ((15,), (1,))]), ("o", (), None)))
    assert list(found.wanted) == [0, 0, 0, 1, 2] and list(found.chunks) == [0, 1, 2, 7, 0]
    assert list(found.wanted_offsets) == [0, 1, 3, 0] and list(found.stored_offsets) == [1, 0, 0, 1]
    assert list(found.sizes) == [1, 2, 1, 1] and list(found.entry_begins) == [0, 4, 5]
    with pytest.raises(E.NotFoundError, match="'v'.*nearest.*w"):
        planning.match(stored, batch(whole("v", 16)))
    assert list(planning.match(stored, batch(whole("v", 16)), missing="report").entry_begins) == [0, 0]
    with pytest.raises(E.InvalidArgumentError, match="shape"):
        planning.match(stored, batch(whole("w", 8)))


def test_unfilled_wants_are_refused_unless_asked():
    stored = planning.describe(batch(("w", (8,), [((0,), (4,)), ((0,), (4,))])), kind="merged_save")
    with pytest.raises(E.InvalidArgumentError, match="overlaps"):
        planning.match(stored, batch(rows("w", (8,), 1, 2)))
    assert len(planning.match(stored, batch(rows("w", (8,), 1, 2)), first_replica=True).chunks) == 1
    with pytest.raises(E.InvalidArgumentError, match=r"fill box \[2:6\]"):
        planning.match(stored, batch(rows("w", (8,), 2, 4)), first_replica=True)
    assert len(planning.match(stored, batch(rows("w", (8,), 2, 4)), cover="off").chunks) == 2


def test_arrays_of_wrong_lengths_are_refused_before_they_are_read():
    for name, wrong in (("name_offsets", array("Q", [0])), ("dtypes", array("i")), ("box_sizes", array("q")),
                        ("order", array("Q", [0, 1, 2])), ("digests", b"x"), ("shapes", array("q", [1, 2, 3]))):
        given = batch(rows("w", (4,), 0, 2))
        setattr(given, name, wrong)
        with pytest.raises(E.InvalidArgumentError, match=name):
            planning.describe(given)
    with pytest.raises(TypeError):
        planning.describe(batch(whole("w", 1), numbers=0))


def test_lists_say_what_arrays_say():
    given = batch(rows("w", (4,), 0, 2), order=array("Q", [0]))
    listed = batch(rows("w", (4,), 0, 2), order=[0])
    for name in ("dtypes", "shapes", "box_sizes", "name_offsets"):
        setattr(listed, name, list(getattr(given, name)))
    assert planning.describe(listed) == planning.describe(given)
    listed.names = [b"w"]
    assert planning.describe(listed) == planning.describe(given)


def test_digests_name_what_is_described():
    first = batch(whole("w", 4), digests=planning.content_digest(b"values"))
    later = batch(whole("w", 4), digests=planning.content_digest(b"other values"))
    assert planning.digest(planning.describe(first)) == planning.digest(planning.describe(later))
    assert planning.digest(planning.describe(first)) != planning.digest(planning.describe(batch(whole("w", 5))))
    assert len(planning.content_digest(b"")) == 16
    with pytest.raises(E.InvalidArgumentError, match="content differs"):
        planning.merge(plans(first, later))
    planning.merge(plans(first, later), verify_replicas="off")


def test_owners_of_plain_arrays():
    chosen = planning.owners(array("Q", [10, 5, 1, 10]), array("I", [0, 1, 2, 0]), array("Q", [0, 3, 5, 6]),
                             array("i", [0, 1, 2, 1, 2, 2]), 3)
    assert list(chosen) == [0, 1, 2, 2]
    with pytest.raises(E.InvalidArgumentError):
        planning.owners(array("Q", [1]), array("I", [0]), array("Q", [0, 2]), array("i", [0]), 1)


def test_entries_without_attributes_are_described_again():
    plan = planning.describe(batch(rows("w", (8,), 1, 2)), rank=0, world_size=1)
    again = planning.describe(planning.entries(plan), rank=0, world_size=1)
    assert bytes(again) == bytes(plan)


def test_merged_plans_with_files_name_ranks():
    """Ranks 1 and 3 write; files 0 and 1 are theirs."""
    job = {"schema": 1, "ranks": 4, "tensors": [{"name": "w", "dtype": "float32", "shape": [4], "boxes": [
        {"ranks": [1], "offsets": [0], "sizes": [2]}, {"ranks": [3], "offsets": [2], "sizes": [2]}]}]}
    found = planning.entries(shardwright.JobDescription(job).save_plan().to_bytes())
    assert list(found.numbers) == [1, 3]
