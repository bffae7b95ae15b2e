/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts: boxes of ranks by placements and tensor maps, uneven, empty, strided and flat shards;
 * shards of grids; and what is refused. */
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
  CHECK(shw_layout_contains(layout, 3) && !shw_layout_contains(layout, 4));
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
              "shards dimension -1 of a tensor of 0 dimensions");
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

/* Boxes, their places in the local tensor and its shape, all of one dimension. */
static void check_pieces(const shw_layout* layout, int64_t extent, int32_t rank,
                         const int64_t* wanted, uint64_t count, int64_t local) {
  shw_error* error = NULL;
  int64_t boxes[8], offsets[4], shape[1] = {-1};
  uint64_t size = 0;
  CHECK_OK(shw_layout_boxes(layout, SHAPE(extent), 1, rank, boxes, 8, &size, &error));
  CHECK_INT(size, 2 * count);
  CHECK_OK(shw_layout_local_offsets(layout, SHAPE(extent), 1, rank, offsets, 4, &size, &error));
  CHECK_INT(size, count);
  for (uint64_t i = 0; i < count; ++i) {
    CHECK_INT(boxes[2 * i], wanted[3 * i]);
    CHECK_INT(boxes[2 * i + 1], wanted[3 * i + 1]);
    CHECK_INT(offsets[i], wanted[3 * i + 2]);
  }
  CHECK_OK(shw_layout_local_shape(layout, SHAPE(extent), 1, rank, shape, 1, &size, &error));
  CHECK_INT(size, 1);
  CHECK_INT(shape[0], local);
}

static void gives_all_boxes_of_strided_shards(void) {
  static const int32_t kinds[] = {SHW_PLACEMENT_STRIDED_SHARD, SHW_PLACEMENT_REPLICATE};
  static const int32_t fsdp_and_tp[] = {SHW_PLACEMENT_STRIDED_SHARD, SHW_PLACEMENT_SHARD};
  static const int32_t dims[] = {0, 0}, factors[] = {2, 0};
  static const int64_t two[] = {0, 3, 0, 5, 3, 3}, one[] = {5, 3, 0};
  shw_error* error = NULL;
  shw_layout* layout = NULL;
  shw_layout_spec spec = mesh_2x2(kinds, dims);
  spec.placement_factors = factors;
  CHECK_OK(shw_layout_create(&spec, &layout, &error));
  check_pieces(layout, 10, 1, two, 2, 6);
  shw_layout_release(layout);
  spec.placement_kinds = fsdp_and_tp;
  layout = NULL;
  CHECK_OK(shw_layout_create(&spec, &layout, &error));
  check_pieces(layout, 10, 1, one, 1, 3);
  shw_layout_release(layout);
}

static void splits_flattened_elements(void) {
  static const int32_t kinds[] = {SHW_PLACEMENT_FLAT, SHW_PLACEMENT_FLAT};
  shw_error* error = NULL;
  shw_layout* layout = NULL;
  const shw_layout_spec spec = mesh_2x2(kinds, NULL);
  CHECK_OK(shw_layout_create(&spec, &layout, &error));
  int64_t boxes[8];
  uint64_t size = 0;
  CHECK_OK(shw_layout_boxes(layout, SHAPE(2, 3), 2, 1, boxes, 8, &size, &error));
  CHECK_INT(size, 4);
  CHECK(boxes[0] == 0 && boxes[1] == 2 && boxes[2] == 1 && boxes[3] == 1); /* 3 of 6, then 2 + 1 */
  CHECK_OK(shw_layout_local_shape(layout, SHAPE(2, 3), 2, 1, boxes, 8, &size, &error));
  CHECK_INT(size, 1);
  CHECK_INT(boxes[0], 1);
  shw_layout_release(layout);
}

static shw_layout_spec mapped_2x2(const int32_t* map, const uint64_t* offsets, int32_t ndim) {
  shw_layout_spec spec = mesh_2x2(NULL, NULL);
  spec.tensor_map = map;
  spec.tensor_map_offsets = offsets;
  spec.tensor_ndim = ndim;
  return spec;
}

static void takes_tensor_maps(void) {
  static const int32_t nested[] = {0, 1, -1}; /* rows by both axes, the last one outermost */
  static const uint64_t offsets[] = {0, 2, 3}, none[] = {0};
  shw_error* error = NULL;
  shw_layout* layout = NULL;
  shw_layout_spec spec = mapped_2x2(nested, offsets, 2);
  CHECK_OK(shw_layout_create(&spec, &layout, &error));
  static const int64_t first_rows[] = {0, 4, 2, 6};
  for (int32_t rank = 0; rank < 4; ++rank) {
    int64_t box[4];
    uint64_t size = 0;
    CHECK_OK(shw_layout_boxes(layout, SHAPE(7, 3), 2, rank, box, 4, &size, &error));
    CHECK_INT(box[0], first_rows[rank]);
    CHECK_INT(box[2], rank == 3 ? 1 : 2);
    CHECK_INT(box[3], 3);
  }
  uint64_t count = 0;
  CHECK_FAILS(shw_layout_box_count(layout, SHAPE(7), 1, 0, &count, &error), SHW_INVALID_ARGUMENT,
              "2 dimensions");
  shw_layout_release(layout);
  spec = mapped_2x2(NULL, none, 0);
  layout = NULL;
  CHECK_OK(shw_layout_create(&spec, &layout, &error));
  CHECK_OK(shw_layout_box_count(layout, NULL, 0, 3, &count, &error));
  CHECK_INT(count, 1);
  shw_layout_release(layout);
}

static void refuses_tensor_maps_that_cannot_be(void) {
  static const int32_t beyond[] = {2}, below[] = {-2}, twice[] = {1, 1}, good[] = {1};
  static const int32_t kinds[] = {0, 0};
  static const uint64_t one[] = {0, 1}, both[] = {0, 2}, falling[] = {1, 0}, names[] = {0, 2, 22};
  shw_error* error = NULL;
  shw_layout* layout = NULL;
  shw_layout_spec spec = mapped_2x2(beyond, one, 1);
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_INVALID_ARGUMENT, "axis 2");
  spec.tensor_map = below;
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_INVALID_ARGUMENT, "axis -2");
  spec = mapped_2x2(twice, both, 1);
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_INVALID_ARGUMENT, "twice");
  spec = mapped_2x2(good, falling, 1);
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_INVALID_ARGUMENT,
              "tensor_map_offsets");
  spec = mapped_2x2(NULL, one, 1);
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_INVALID_ARGUMENT, "tensor_map");
  spec = mapped_2x2(good, one, 65);
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_INVALID_ARGUMENT, "tensor_ndim");
  spec = mapped_2x2(good, one, 1);
  spec.placement_kinds = kinds;
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_INVALID_ARGUMENT, "not both");
  spec.placement_kinds = NULL;
  spec.axis_names = "dpinterleaved_parallel";
  spec.axis_name_offsets = names;
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_UNIMPLEMENTED,
              "axis 1 'interleaved_parallel'");
  CHECK(layout == NULL);
}

static void refuses_what_it_cannot_do(void) {
  static const int32_t strided[] = {SHW_PLACEMENT_STRIDED_SHARD, 0}, dims[] = {0, 0};
  static const int32_t partial[] = {SHW_PLACEMENT_PARTIAL, 0}, unknown[] = {5, 0}, shard[] = {1, 0};
  static const int32_t doubled[] = {1, 1, 2, 3};
  shw_error* error = NULL;
  shw_layout* layout = NULL;
  shw_layout_spec spec = mesh_2x2(strided, dims);
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_INVALID_ARGUMENT, "placement_factors");
  spec.placement_factors = dims;
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_INVALID_ARGUMENT, "factor 0");
  spec.placement_kinds = partial;
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_FAILED_PRECONDITION, "Partial");
  spec.placement_kinds = unknown;
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_INVALID_ARGUMENT, "unknown value 5");
  spec.placement_kinds = shard;
  spec.placement_dims = NULL;
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_INVALID_ARGUMENT, "placement_dims");
  spec.placement_dims = dims;
  spec.ranks = doubled;
  spec.rank_count = 4;
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_INVALID_ARGUMENT, "rank 1 twice");
  spec.rank_count = 3;
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_INVALID_ARGUMENT,
              "lists 3 ranks, its shape has 4");
  spec = mesh_2x2(shard, dims);
  spec.mesh_ndim = 0;
  CHECK_FAILS(shw_layout_create(&spec, &layout, &error), SHW_INVALID_ARGUMENT, "mesh_ndim");
  CHECK(layout == NULL);
}

TEST_MAIN(TEST_ENTRY(gives_each_rank_its_box), TEST_ENTRY(says_how_much_room_it_needs),
          TEST_ENTRY(takes_explicit_ranks_and_names), TEST_ENTRY(gives_all_boxes_of_strided_shards),
          TEST_ENTRY(splits_flattened_elements), TEST_ENTRY(takes_tensor_maps),
          TEST_ENTRY(refuses_tensor_maps_that_cannot_be), TEST_ENTRY(refuses_what_it_cannot_do))
