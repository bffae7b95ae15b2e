/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts: boxes of ranks, uneven and empty shards, and what is refused. */
#include "support/states.h"

static shw_layout_spec mesh_2x2(const int32_t* kinds, const int32_t* dims) {
  static const int64_t mesh[] = {2, 2};
  shw_layout_spec spec = SHW_LAYOUT_SPEC_INIT;
  spec.mesh_ndim = 2;
  spec.mesh_shape = mesh;
  spec.placement_kinds = kinds;
  spec.placement_dims = dims;
  return spec;
}

static void gives_each_rank_its_box(void) {
  static const int32_t kinds[] = {SHW_PLACEMENT_SHARD, SHW_PLACEMENT_SHARD}, dims[] = {0, 1};
  static const int64_t wanted[4][4] = {{0, 0, 3, 2}, {0, 2, 3, 2}, {3, 0, 2, 2}, {3, 2, 2, 2}};
  shw_error* error = NULL;
  shw_layout* layout = NULL;
  const shw_layout_spec spec = mesh_2x2(kinds, dims);
  CHECK_OK(shw_layout_create(&spec, &layout, &error));
  CHECK_INT(shw_layout_rank_count(layout), 4);
  for (int32_t rank = 0; rank < 4; ++rank) {
    int64_t box[4];
    uint64_t size = 0, count = 0;
    CHECK_OK(shw_layout_box_count(layout, SHAPE(5, 4), 2, rank, &count, &error));
    CHECK_INT(count, 1);
    CHECK_OK(shw_layout_boxes(layout, SHAPE(5, 4), 2, rank, box, 4, &size, &error));
    CHECK_INT(size, 4);
    CHECK(memcmp(box, wanted[rank], sizeof(box)) == 0);
  }
  shw_layout_release(layout);
}

static void says_how_much_room_it_needs(void) {
  static const int32_t kinds[] = {SHW_PLACEMENT_REPLICATE, SHW_PLACEMENT_SHARD}, dims[] = {0, -1};
  shw_error* error = NULL;
  shw_layout* layout = NULL;
  const shw_layout_spec spec = mesh_2x2(kinds, dims);
  CHECK_OK(shw_layout_create(&spec, &layout, &error));
  uint64_t size = 0, count = 7;
  int64_t box[4] = {9, 9, 9, 9};
  CHECK_INT(shw_layout_boxes(layout, SHAPE(5, 4), 2, 0, box, 3, &size, &error),
            SHW_BUFFER_TOO_SMALL);
  CHECK(error == NULL && size == 4 && box[0] == 9);
  CHECK_OK(shw_layout_box_count(layout, SHAPE(5, 4), 2, 17, &count, &error));
  CHECK_INT(count, 0);
  CHECK_OK(shw_layout_boxes(layout, SHAPE(5, 1), 2, 1, box, 4, &size, &error));
  CHECK_INT(box[3], 0); /* an empty shard */
  CHECK_FAILS(shw_layout_boxes(layout, NULL, 0, 1, box, 4, &size, &error), SHW_INVALID_ARGUMENT,
              "");
  shw_layout_release(layout);
}

static void takes_explicit_ranks_and_names(void) {
  static const int32_t kinds[] = {SHW_PLACEMENT_SHARD, SHW_PLACEMENT_REPLICATE}, dims[] = {0, 0};
  static const int32_t ranks[] = {8, 9, 4, 5};
  static const uint64_t offsets[] = {0, 2, 4};
  shw_error* error = NULL;
  shw_layout* layout = NULL;
  shw_layout_spec spec = mesh_2x2(kinds, dims);
  spec.ranks = ranks;
  spec.rank_count = 4;
  spec.axis_names = "dptp";
  spec.axis_name_offsets = offsets;
  CHECK_OK(shw_layout_create(&spec, &layout, &error));
  int64_t box[2];
  uint64_t size = 0;
  CHECK_OK(shw_layout_boxes(layout, SHAPE(6), 1, 5, box, 2, &size, &error));
  CHECK_INT(box[0], 3);
  shw_layout_release(layout);
}

static void refuses_what_it_cannot_do(void) {
  static const int32_t strided[] = {SHW_PLACEMENT_STRIDED_SHARD, 0}, dims[] = {0, 0};
  static const int32_t partial[] = {SHW_PLACEMENT_PARTIAL, 0}, unknown[] = {4, 0}, shard[] = {1, 0};
  static const int32_t doubled[] = {1, 1, 2, 3};
  shw_error* error = NULL;
  shw_layout* layout = NULL;
  shw_layout_spec spec = mesh_2x2(strided, dims);
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_UNIMPLEMENTED, "");
  spec.placement_kinds = partial;
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_UNIMPLEMENTED, "");
  spec.placement_kinds = unknown;
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_INVALID_ARGUMENT, "unknown value 4");
  spec.placement_kinds = shard;
  spec.placement_dims = NULL;
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_INVALID_ARGUMENT, "placement_dims");
  spec.placement_dims = dims;
  spec.ranks = doubled;
  spec.rank_count = 4;
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_INVALID_ARGUMENT, "");
  spec.rank_count = 3;
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_INVALID_ARGUMENT, "");
  spec = mesh_2x2(shard, dims);
  spec.mesh_ndim = 0;
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_INVALID_ARGUMENT, "mesh_ndim");
  CHECK(layout == NULL);
}

TEST_MAIN(TEST_ENTRY(gives_each_rank_its_box), TEST_ENTRY(says_how_much_room_it_needs),
          TEST_ENTRY(takes_explicit_ranks_and_names), TEST_ENTRY(refuses_what_it_cannot_do))
