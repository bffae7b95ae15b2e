# SPDX-License-Identifier: Apache-2.0
"""Structs between Python and C: fields by name, lengths that must fit, and memory that runs out at any place."""
import gc
import sys

import pytest
import shardwright
from shardwright._library import native

GRID = {"local_shape": (2,), "local_ndim": 1, "global_shape": (4,), "offsets": (2,), "fragments": (2,)}
ENTRIES = {"count": 1, "names": [b"w"], "dtypes": [0]}


def refused(kind, said, call, *arguments):
    with pytest.raises(kind, match=said):
        call(*arguments)


def test_fields_are_found_by_name_and_others_are_zero():
    assert native.shw_py_grid_pieces(GRID) == [((2,), (2,), 0)]
    without = {name: value for name, value in GRID.items() if name != "fragments"}
    assert native.shw_py_grid_pieces(without | {"fragments": None}) == native.shw_py_grid_pieces(without)
    refused(TypeError, r"shw_grid_shard has no field 'offset'", native.shw_py_grid_pieces, GRID | {"offset": 1})
    refused(TypeError, r"shw_grid_shard has no field 7", native.shw_py_grid_pieces, GRID | {7: 1})
    refused(TypeError, "expected the fields of shw_grid_shard", native.shw_py_grid_pieces, (1, 2))


def test_numbers_that_do_not_fit_are_refused():
    refused(OverflowError, "signed integer is greater than maximum", native.shw_py_grid_pieces, GRID | {"prepended": 2**31})
    refused(OverflowError, "signed integer is less than minimum", native.shw_py_grid_pieces, GRID | {"flags": -1})
    refused(TypeError, "'str' object cannot be interpreted as an integer", native.shw_py_grid_pieces, GRID | {"prepended": "1"})
    refused(shardwright.InvalidArgumentError, "value 0 of a shape or box does not fit into 63 bits",
            native.shw_py_grid_pieces, GRID | {"offsets": [2**63]})
    refused(shardwright.InvalidArgumentError, "value 1 of ranks does not fit into 31 bits", native.shw_layout_create,
            {"mesh_shape": [2], "mesh_ndim": 1, "ranks": [0, 2**31], "rank_count": 2})


@pytest.mark.parametrize(("changed", "said"), [
    ({"count": 2}, "'name_offsets' has 16 bytes, expected 3 of 8 each"), ({"dtypes": [0, 0]}, "'dtypes' has 8 bytes, expected 1 of 4"),
    ({"count": 2**61 - 1, "names": b"", "name_offsets": b""}, "'name_offsets' has 0 bytes"),
    ({"count": 2**64 - 1, "names": b"", "name_offsets": b""}, "'name_offsets' does not begin with 0"),
    ({"names": b"w", "name_offsets": [1, 1]}, "'name_offsets' does not begin with 0"),
    ({"shapes": [], "shape_offsets": [0, 2**62]}, "'shape_offsets' does not ascend"),
    ({"names": b"wx", "name_offsets": [0, 1]}, "'names' has 2 bytes, expected 1 of 1"),
    ({"dtypes": memoryview(bytes(9))[1:5]}, "'dtypes' is not aligned"), ({"digests": bytes(15)}, "'digests' has 15 bytes, expected 1 of 16")])
def test_lengths_must_fit_one_another(changed, said):
    refused(shardwright.InvalidArgumentError, said, native.shw_plan_describe, {}, ENTRIES | changed)


def test_ranges_that_would_overflow_are_refused():
    changed = {"shapes": [], "shape_offsets": [0, 2**56], "box_ranges": [0, 2**56], "box_offsets": [], "box_sizes": []}
    refused(shardwright.InvalidArgumentError, "expected", native.shw_plan_describe, {}, ENTRIES | changed)


def test_texts_end_at_no_nul():
    options = shardwright._options.save_options({"trace_path": b"a\0b"})
    state = native.shw_state_create()
    refused(shardwright.InvalidArgumentError, "parameter trace_path holds a NUL", native.shw_save,
            shardwright.context.shared()._handle, state, None, b"/nowhere", None, options)


def test_results_are_named_tuples():
    plan = native.shw_plan_create(native.shw_plan_describe({"kind_globs": [], "kind_count": 0}, ENTRIES)[0])
    found = native.shw_plan_entries(plan)
    assert (found.count, found.names, found.secondary, found.digests) == (1, b"w", None, None)
    assert type(found).__name__ == "shw_entry_batch" and found.flags == 0


def memory_runs_out(call):
    """Calls with the n-th allocation of the interpreter failing, for each n; how many of them failed the call."""
    testcapi = pytest.importorskip("_testcapi")
    failed = 0
    for n in range(1, 2000):
        testcapi.set_nomemory(n, n + 1)
        try:
            call()
        except MemoryError:
            failed += 1
        else:
            return failed
        finally:
            testcapi.remove_mem_hooks()
    raise AssertionError("the call never succeeds")


@pytest.mark.parametrize("call", [
    lambda: native.shw_plan_describe({"kind_globs": [b"a", b"b"], "kind_values": [1, 2], "kind_count": 2}, ENTRIES),
    lambda: native.shw_layout_create({"mesh_shape": (2, 2), "mesh_ndim": 2, "axis_names": [b"a", memoryview(b"b")],
                                      "placement_kinds": [0, 1], "placement_dims": [0, 0], "placement_factors": [0, 0]}),
    lambda: native.shw_py_grid_pieces(GRID)])
def test_memory_that_runs_out_anywhere_fails_the_call(call):
    memory_runs_out(call)  # once for what is kept for later calls
    gc.collect()
    before = sys.getallocatedblocks()
    failed = sum(memory_runs_out(call) for _ in range(10))
    gc.collect()
    assert failed > 30 and sys.getallocatedblocks() - before < 10  # less than one for each call that succeeded
