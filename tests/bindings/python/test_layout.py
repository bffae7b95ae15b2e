# SPDX-License-Identifier: Apache-2.0
"""Layouts and shards of grids: vectors, what is refused, and states of several boxes per entry."""
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import shardwright as E
from shardwright.layout import GridShard, flat_entry_pieces, overlapping_parts

MESH = {"mesh": (2, 2, 2), "names": ("dp", "cp", "tp")}


def test_strided_shards_give_every_box():
    layout = E.Layout((2,), [("strided_shard", 0, 2)])
    assert layout.pieces((10, 3), 1) == [((3, 0), (2, 3), 0), ((8, 0), (2, 3), 6)]
    assert layout.boxes((10, 3), 1) == [((3, 0), (2, 3)), ((8, 0), (2, 3))]
    assert layout.local_shape((10, 3), 1) == (4, 3)


def test_fsdp_and_tensor_parallelism_is_one_box_per_rank():
    layout = E.Layout((2, 2), [("strided_shard", 0, 2), 0], names=["dp", "tp"])
    assert [layout.boxes((10,), rank) for rank in range(4)] == [[((0,), (3,))], [((5,), (3,))], [((3,), (2,))],
                                                               [((8,), (2,))]]


def test_empty_shards_begin_at_the_end():
    layout = E.Layout((4,), [0])
    assert [layout.boxes((3,), rank)[0] for rank in range(4)] == [((0,), (1,)), ((1,), (1,)), ((2,), (1,)), ((3,), (0,))]


def test_flat_layouts_cut_elements():
    layout = E.Layout((2, 2), ["flat", 0])
    assert layout.pieces((6, 3), 3) == [((4, 2), (1, 1), 0), ((5, 0), (1, 3), 1)]
    assert layout.local_shape((6, 3), 3) == (4,)
    assert layout.local_shape((6, 3), 4) == (0,)


def test_scalars_and_ranks_outside():
    layout = E.Layout((2,), ["replicate"], ranks=(4, 5))
    assert layout.contains(5) and not layout.contains(0)
    assert layout.pieces((), 5) == [((), (), 0)]
    assert layout.pieces((), 0) == [] and layout.boxes((3,), 1) == []


@pytest.mark.parametrize(("tensor_map", "areas"), [
    ((2, 0), ["0:4,0:4", "0:4,4:8", "0:4,0:4", "4:8,0:4", "4:8,4:8"]),
    (((2, 0), -1), ["0:2,0:8", "2:4,0:8", "0:2,0:8", "4:6,0:8", "6:8,0:8"]),
    (((0, 2), -1), ["0:2,0:8", "4:6,0:8", "0:2,0:8", "2:4,0:8", "6:8,0:8"]),
    ((-1, 1), ["0:8,0:4", "0:8,0:4", "0:8,4:8", "0:8,0:4", "0:8,0:4"]),
    (((2, -1), 0), ["0:4,0:4", "0:4,4:8", "0:4,0:4", "4:8,0:4", "4:8,4:8"])])
def test_tensor_maps_hold_their_areas(tensor_map, areas):
    layout = E.Layout(tensor_map=tensor_map, **MESH)
    found = []
    for rank in (0, 1, 2, 4, 5):
        (offsets, sizes), = layout.boxes((8, 8), rank)
        found.append(",".join(f"{o}:{o + s}" for o, s in zip(offsets, sizes, strict=True)))
    assert found == areas
    assert layout.tensor_map == tensor_map and layout.placements is None


def test_tensor_maps_split_unevenly():
    layout = E.Layout((2,), tensor_map=(-1, 0))
    assert layout.boxes((64, 65), 1) == [((0, 33), (64, 32))]
    assert E.Layout((2,), tensor_map=()).boxes((), 1) == [((), ())]


@pytest.mark.parametrize(("mesh", "tensor_map", "shape"), [
    ((2, 2, 2), (2,), (8, 8)), ((2, 2), (1, 0, -1), (8, 8)), ((2, 2, 2), (3,), (8,)), ((2, 2), (-2,), (8,)),
    ((2, 2), (1, 1), (4, 4)), ((2, 2), ((1, 1), -1), (4, 4))])
def test_bad_tensor_maps_are_refused(mesh, tensor_map, shape):
    with pytest.raises(E.InvalidArgumentError):
        E.Layout(mesh, tensor_map=tensor_map).boxes(shape, 0)


def test_what_is_refused_says_why():
    with pytest.raises(E.UnimplementedError, match="axis 1 'interleaved_parallel'"):
        E.Layout((2, 2), tensor_map=(1,), names=("dp", "interleaved_parallel"))
    with pytest.raises(E.FailedPreconditionError, match="Partial"):
        E.Layout((2,), ["partial"])
    with pytest.raises(E.InvalidArgumentError, match="factor 0"):
        E.Layout((2,), [("strided_shard", 0)])
    with pytest.raises(E.InvalidArgumentError, match="either placements or a tensor map"):
        E.Layout((2,))
    with pytest.raises(E.InvalidArgumentError, match="either placements or a tensor map"):
        E.Layout((2,), [0], tensor_map=(0,))


def test_grid_shards_are_placed_by_rank_offsets():
    shard = GridShard.at((3, 4), (0, 2, 5), (2, 1, 3), prepended=1)
    assert (shard.global_shape, shard.offsets, shard.fragments) == ((5, 3, 12), (2, 0, 4), (5, 1, 3))
    assert shard.pieces() == [((2, 0, 4), (1, 3, 4), 0)]
    assert GridShard.at((3, 4), (0, 0, 2), (0, 1, 3)).global_shape == (9, 4)
    assert GridShard((3, 4), (9, 9), (5, 2)).pieces() == [((5, 2), (3, 4), 0)]
    assert GridShard((), (), ()).pieces() == [((), (), 0)]
    assert GridShard((), (), (), flat_range=(0, 0)).pieces() == []


@pytest.mark.parametrize("spoilt", [
    {"fragments": (5, 1, 4)}, {"fragments": (5, 1)}, {"offsets": (2, 0, 3)}, {"offsets": (-1, 0, 4)}, {"prepended": 0},
    {"flat_range": (5, 3)}, {"local_shape": (3, -4)}])
def test_grid_shards_are_checked(spoilt):
    good = {"local_shape": (3, 4), "global_shape": (5, 3, 12), "offsets": (2, 0, 4), "fragments": (5, 1, 3), "prepended": 1}
    assert GridShard(**good).pieces()
    with pytest.raises(E.InvalidArgumentError):
        GridShard(**{**good, **spoilt}).pieces()
    with pytest.raises(E.OutOfRangeError):
        GridShard(**{**good, "offsets": (5, 0, 4)}).pieces()
    with pytest.raises(E.InvalidArgumentError):
        GridShard.at((3, 4), (0, 5, 5))


@pytest.mark.parametrize(("shard", "shape", "chunk"), [
    (GridShard.at((4, 3), (1, 1, 2), flat_range=(0, 12)), (1, 2, 12), ((0, 1, 0), (1, 1, 12))),
    (GridShard.at((4, 6), flat_range=(10, 24)), (1, 1, 24), ((0, 0, 10), (1, 1, 14))),
    (GridShard.at((6,), flat_range=(3, 6)), (1, 6), ((0, 3), (1, 3))),
    (GridShard.at((2, 3), (0, 1, 2), prepended=1, flat_range=(0, 6)), (2, 1, 1, 6), ((1, 0, 0, 0), (1, 1, 1, 6)))])
def test_flat_ranges_have_flattened_entries(shard, shape, chunk):
    assert shard.flat_entry() == (shape, chunk)
    assert flat_entry_pieces(shard.global_shape, shape, chunk) == shard.pieces()


def test_flat_ranges_are_few_boxes():
    shard = GridShard.at((4, 6), flat_range=(10, 23))
    assert shard.pieces() == [((1, 4), (1, 2), 0), ((2, 0), (1, 6), 2), ((3, 0), (1, 5), 8)]
    with pytest.raises(E.InvalidArgumentError):
        flat_entry_pieces((4, 6), (1, 1, 23), ((0, 0, 0), (1, 1, 1)))


def test_overlapping_parts_are_exact():
    assert overlapping_parts(7, 25, 24) == range(6, 7)
    assert overlapping_parts(3, 2, 0) == range(0, 2)
    with pytest.raises(E.InvalidArgumentError):
        overlapping_parts(3, 2, 2)


# --- states -----------------------------------------------------------------------------------------------------------

WHOLE = np.arange(60, dtype=np.int32).reshape(10, 6)


def local_of(pieces, shape):
    """The local tensor that holds these pieces of WHOLE."""
    local = np.full(shape, -1, dtype=np.int32)
    for offsets, sizes, start in pieces:
        box = WHOLE[tuple(slice(o, o + s) for o, s in zip(offsets, sizes, strict=True))]
        if len(shape) == len(sizes):
            at = np.unravel_index(start, shape) if local.size else (0,) * len(shape)
            local[tuple(slice(o, o + s) for o, s in zip(at, sizes, strict=True))] = box
        else:
            local[start:start + box.size] = box.reshape(-1)
    return local


def on_ranks(count, work):
    """Results of work(rank, collective) of all ranks; the first exception comes out."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count), E.thread_collectives(count)))


LAYOUTS = [E.Layout((2, 2), [("strided_shard", 0, 2), ("strided_shard", 1, 3)]), E.Layout((4,), [("strided_shard", 1, 2)]),
           E.Layout((2, 2), ["flat", 1]), E.Layout((4,), ["flat"]), E.Layout((2, 2), tensor_map=((0, 1), -1)),
           E.Layout((4,), [0])]


@pytest.mark.parametrize("saved", LAYOUTS, ids=repr)
@pytest.mark.parametrize("loaded", LAYOUTS, ids=repr)
def test_states_of_any_layout_are_saved_and_loaded(saved, loaded, tmp_path):
    def save(rank, end):
        local = local_of(saved.pieces(WHOLE.shape, rank), saved.local_shape(WHOLE.shape, rank))
        E.save({"w": E.Shard(local, WHOLE.shape, layout=saved)}, tmp_path / "p", collective=end)

    def load(rank, end):
        local = np.zeros(loaded.local_shape(WHOLE.shape, rank), dtype=np.int32)
        E.load(tmp_path / "p", {"w": E.Shard(local, WHOLE.shape, layout=loaded)}, collective=end)
        return (local == local_of(loaded.pieces(WHOLE.shape, rank), local.shape)).all()

    on_ranks(4, save)
    with E.open(tmp_path / "p") as c:
        assert (c["w"][:] == WHOLE).all()
    assert all(on_ranks(4, load))


def test_entries_take_lists_of_boxes_in_any_order(tmp_path):
    """As CheckpointableTensor lists them: windows of a local tensor, empty ones among them, the tensor strided."""
    boxes = (((5, 3), (5, 3)), ((10, 0), (0, 6)), ((0, 0), (10, 3)), ((0, 3), (5, 3)))
    buffer = np.zeros((10, 8), dtype=np.int32)
    starts = (5 * 8 + 5, 0, 0, 5)
    for (offsets, sizes), start in zip(boxes, starts, strict=True):
        row, column = divmod(start, 8)
        buffer[row:row + sizes[0], column:column + sizes[1]] = WHOLE[offsets[0]:offsets[0] + sizes[0],
                                                                      offsets[1]:offsets[1] + sizes[1]]
    for local in (buffer, np.asfortranarray(buffer)):
        E.save({"w": E.Shard(local, WHOLE.shape, boxes=boxes, local_offsets=starts)}, tmp_path / "p")
        with E.open(tmp_path / "p") as c:
            assert (c["w"][:] == WHOLE).all()
        back = np.zeros_like(local, order="K")
        E.load(tmp_path / "p", {"w": E.Shard(back, WHOLE.shape, boxes=boxes, local_offsets=starts)})
        assert (back == buffer).all()


def test_ragged_rows_lie_in_one_buffer(tmp_path):
    boxes = (((7, 0), (3, 6)), ((0, 0), (7, 6)))
    buffer = np.concatenate([WHOLE[7:].reshape(-1), WHOLE[:7].reshape(-1)])
    E.save({"w": E.Shard(buffer, WHOLE.shape, boxes=boxes)}, tmp_path / "p")
    back = np.zeros_like(buffer)
    E.load(tmp_path / "p", {"w": E.Shard(back, WHOLE.shape, boxes=boxes)})
    assert (back == buffer).all()


def test_prepended_axes_need_no_view(tmp_path):
    layers = np.arange(24, dtype=np.int32).reshape(2, 3, 4)

    def save(rank, end):
        shard = GridShard.at((3, 4), (0, rank, 2), prepended=1)
        box, = [piece[:2] for piece in shard.pieces()]
        leaf = E.Shard(np.asfortranarray(layers[rank]), shard.global_shape, boxes=(box,))
        E.save({"layers": leaf}, tmp_path / "p", collective=end)

    on_ranks(2, save)
    with E.open(tmp_path / "p") as c:
        assert (c["layers"][:] == layers).all()


def test_windows_that_share_elements_are_not_loaded(tmp_path):
    E.save({"w": WHOLE}, tmp_path / "p")
    local = np.zeros((10, 6), dtype=np.int32)
    boxes = (((0, 0), (10, 3)), ((0, 3), (10, 3)))
    with pytest.raises(E.InvalidArgumentError, match="window"):
        E.load(tmp_path / "p", {"w": E.Shard(local, WHOLE.shape, boxes=boxes, local_offsets=(0, 2))})
    with pytest.raises(E.InvalidArgumentError, match="no window"):
        E.load(tmp_path / "p", {"w": E.Shard(local, WHOLE.shape, boxes=boxes, local_offsets=(0, 4))})
    assert not local.any()
