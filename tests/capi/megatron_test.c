/* SPDX-License-Identifier: Apache-2.0
 *
 * The extension "megatron": how it is found, shards of grids, flat ranges, who writes. */
#include <string.h>

#include "support/check.h"
#include "support/states.h"

static void is_found_by_name_and_version(void) {
  const shw_api* api = NULL;
  const void* functions = NULL;
  shw_error* error = NULL;
  CHECK_OK(shw_get_extension("megatron", SHW_MEGATRON_VERSION, &functions, &error));
  CHECK(functions == (const void*)megatron());
  CHECK_INT(megatron()->struct_size, sizeof(shw_megatron_api));
  CHECK_INT(megatron()->version, SHW_MEGATRON_VERSION);
  CHECK_OK(shw_get_api(SHW_ABI_MAJOR, SHW_ABI_MINOR, &api, &error));
  CHECK_TEXT(api->extensions->name, SHW_MEGATRON_NAME);
  CHECK(api->extensions->functions == functions);
  CHECK(api->extensions->next == NULL);
}

static void is_refused_under_another_name_or_version(void) {
  const void* functions = NULL;
  shw_error* error = NULL;
  CHECK_FAILS(shw_get_extension("Megatron", 1, &functions, &error), SHW_NOT_FOUND,
              "there is no extension 'Megatron', only: megatron");
  CHECK_FAILS_WITH(shw_get_extension("megatron", 2, &functions, &error), SHW_UNIMPLEMENTED,
                   "built for version 2 of the extension", "needed_version", "2");
  CHECK_FAILS_WITH(shw_get_extension("megatron", 2, &functions, &error), SHW_UNIMPLEMENTED, "has 1",
                   "library_version", "1");
  CHECK_FAILS(shw_get_extension(NULL, 1, &functions, &error), SHW_INVALID_ARGUMENT, "name");
  CHECK_FAILS(shw_get_extension("megatron", 1, NULL, &error), SHW_INVALID_ARGUMENT, "out");
  CHECK(functions == NULL);
}

static shw_grid_shard shard_3x4(void) {
  static const int64_t local[] = {3, 4};
  shw_grid_shard shard = SHW_GRID_SHARD_INIT;
  shard.local_ndim = 2;
  shard.prepended = 1;
  shard.local_shape = local;
  return shard;
}

static void places_shards_of_grids(void) {
  static const int64_t places[] = {0, 2, 5, 2, 1, 3};
  shw_error* error = NULL;
  shw_grid_shard shard = shard_3x4();
  int64_t global[3], offsets[3], fragments[3], boxes[6], local[1] = {-1};
  uint64_t size = 0;
  CHECK_OK(megatron()->grid_place(&shard, places, 2, global, offsets, fragments, &error));
  CHECK(global[0] == 5 && global[1] == 3 && global[2] == 12);
  CHECK(offsets[0] == 2 && offsets[1] == 0 && offsets[2] == 4);
  CHECK(fragments[0] == 5 && fragments[1] == 1 && fragments[2] == 3);
  CHECK_OK(megatron()->grid_place(&shard, places, 2, NULL, NULL, NULL, &error));
  shard.global_shape = global;
  shard.offsets = offsets;
  shard.fragments = fragments;
  CHECK_OK(megatron()->grid_boxes(&shard, boxes, 6, &size, local, &error));
  CHECK_INT(size, 6);
  CHECK(boxes[0] == 2 && boxes[1] == 0 && boxes[2] == 4);
  CHECK(boxes[3] == 1 && boxes[4] == 3 && boxes[5] == 4 && local[0] == 0);
  CHECK_INT(megatron()->grid_boxes(&shard, boxes, 5, &size, NULL, &error), SHW_BUFFER_TOO_SMALL);
  CHECK_INT(size, 6);
  fragments[2] = 4;
  CHECK_FAILS(megatron()->grid_boxes(&shard, boxes, 6, &size, NULL, &error), SHW_INVALID_ARGUMENT,
              "axis 2");
  global[2] = 11;
  shard.flags = SHW_GRID_SHAPE_MAY_DIFFER;
  CHECK_OK(megatron()->grid_boxes(&shard, boxes, 6, &size, NULL, &error));
  offsets[0] = 5;
  CHECK_FAILS(megatron()->grid_boxes(&shard, boxes, 6, &size, NULL, &error), SHW_OUT_OF_RANGE,
              "leaves the shape in dimension 0");
}

static void refuses_grids_that_cannot_be(void) {
  static const int64_t no_axis[] = {INT64_MAX, 0, 1}, no_part[] = {0, 5, 5};
  shw_error* error = NULL;
  shw_grid_shard shard = shard_3x4();
  uint64_t size = 0;
  int64_t value = 0;
  CHECK_FAILS(megatron()->grid_place(&shard, no_axis, 1, NULL, NULL, NULL, &error),
              SHW_INVALID_ARGUMENT, "axis");
  CHECK_FAILS(megatron()->grid_place(&shard, no_part, 1, NULL, NULL, NULL, &error),
              SHW_INVALID_ARGUMENT, "part 5 of 5");
  CHECK_FAILS(megatron()->grid_place(&shard, NULL, 1, NULL, NULL, NULL, &error),
              SHW_INVALID_ARGUMENT, "places");
  CHECK_FAILS(megatron()->grid_boxes(&shard, NULL, 0, &size, NULL, &error), SHW_INVALID_ARGUMENT,
              "global_shape");
  shard.prepended = INT32_MAX;
  CHECK_FAILS(megatron()->grid_boxes(&shard, NULL, 0, &size, NULL, &error), SHW_INVALID_ARGUMENT,
              "prepended");
  CHECK_FAILS(megatron()->grid_overlap(4, 0, 0, &value, &value, &error), SHW_INVALID_ARGUMENT,
              "part 0");
  CHECK_FAILS(megatron()->grid_overlap(4, 2, 2, &value, &value, &error), SHW_INVALID_ARGUMENT,
              "part 2");
  CHECK_FAILS(
      megatron()->grid_flat_boxes(NULL, 64, SHAPE(1), SHAPE(1), NULL, 0, &size, NULL, &error),
      SHW_INVALID_ARGUMENT, "ndim");
}

static void gives_the_boxes_of_flat_ranges(void) {
  /* Elements 10 to 23 of [4, 6]: the rest of row 1, then rows 2 and 3. */
  static const int64_t wanted[] = {1, 4, 1, 2, 2, 0, 2, 6};
  static const int64_t chunk[] = {0, 0, 10, 1, 1, 14};
  shw_error* error = NULL;
  int64_t global[2], offsets[2], fragments[2], boxes[8], local[2], entry[3], first[3], sizes[3];
  uint64_t size = 0;
  shw_grid_shard shard = SHW_GRID_SHARD_INIT;
  shard.flags = SHW_GRID_FLAT;
  shard.local_ndim = 2;
  shard.local_shape = SHAPE(4, 6);
  CHECK_OK(megatron()->grid_place(&shard, NULL, 0, global, offsets, fragments, &error));
  shard.global_shape = global;
  shard.offsets = offsets;
  shard.fragments = fragments;
  shard.flat_begin = 10;
  shard.flat_size = 14;
  CHECK_OK(megatron()->grid_boxes(&shard, boxes, 8, &size, local, &error));
  CHECK(size == 8 && memcmp(boxes, wanted, sizeof(boxes)) == 0 && local[0] == 0 && local[1] == 2);
  CHECK_OK(megatron()->grid_flat_entry(&shard, entry, first, sizes, &error));
  CHECK(entry[0] == 1 && entry[1] == 1 && entry[2] == 24);
  CHECK(memcmp(first, chunk, sizeof(first)) == 0 && memcmp(sizes, chunk + 3, sizeof(sizes)) == 0);
  memset(boxes, 0, sizeof(boxes));
  CHECK_OK(megatron()->grid_flat_boxes(global, 2, entry, chunk, boxes, 8, &size, local, &error));
  CHECK(size == 8 && memcmp(boxes, wanted, sizeof(boxes)) == 0 && local[1] == 2);
  CHECK_INT(megatron()->grid_flat_boxes(global, 2, entry, chunk, boxes, 7, &size, local, &error),
            SHW_BUFFER_TOO_SMALL);
  shard.flat_size = 15;
  CHECK_FAILS(megatron()->grid_boxes(&shard, boxes, 8, &size, local, &error), SHW_OUT_OF_RANGE,
              "leaves the shape in dimension 0");
}

static void tells_which_parts_overlap(void) {
  shw_error* error = NULL;
  int64_t begin = 0, count = 0;
  CHECK_OK(megatron()->grid_overlap(7, 25, 24, &begin, &count, &error));
  CHECK(begin == 6 && count == 1);
  CHECK_OK(megatron()->grid_overlap(3, 2, 0, &begin, &count, &error));
  CHECK(begin == 0 && count == 2);
}

/* Two shards of ten bytes and one of four; ranks 0 and 1 hold all. */
static void chooses_who_writes(void) {
  static const uint64_t weights[] = {10, 4, 10}, cuts[] = {0, 2};
  static const uint32_t sets[] = {0, 0, 0}, no_set[] = {0, 1, 0};
  static const int32_t holders[] = {0, 1};
  int32_t owners[3] = {-1, -1, -1};
  shw_error* error = NULL;
  CHECK_OK(megatron()->plan_owners(3, weights, sets, NULL, 1, cuts, holders, 2, owners, &error));
  CHECK(owners[0] == 0 && owners[1] == 0 && owners[2] == 1);
  CHECK_FAILS(
      megatron()->plan_owners(3, weights, no_set, NULL, 1, cuts, holders, 2, owners, &error),
      SHW_INVALID_ARGUMENT, "set");
  CHECK_FAILS(megatron()->plan_owners(3, weights, sets, NULL, 1, cuts, holders, 1, owners, &error),
              SHW_INVALID_ARGUMENT, "rank");
}

TEST_MAIN(TEST_ENTRY(is_found_by_name_and_version),
          TEST_ENTRY(is_refused_under_another_name_or_version), TEST_ENTRY(places_shards_of_grids),
          TEST_ENTRY(refuses_grids_that_cannot_be), TEST_ENTRY(gives_the_boxes_of_flat_ranges),
          TEST_ENTRY(tells_which_parts_overlap), TEST_ENTRY(chooses_who_writes))
