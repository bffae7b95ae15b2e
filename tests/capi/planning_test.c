/* SPDX-License-Identifier: Apache-2.0
 *
 * Planning on descriptions through the C surface: three ranks describe, one merges and says what
 * each keeps; a fourth matches what it wants. */
#include "support/scratch.h"
#include "support/states.h"

enum { RANKS = 3 };

/* Rank r of three: rows r of "w" [3, 2], all of "v" [4], and an object. */
static shw_buffer* rank_plan(int32_t rank, int64_t shift) {
  static const uint64_t name_offsets[] = {0, 1, 2, 6};
  static const int32_t dtypes[] = {SHW_FLOAT32, SHW_FLOAT32, 0};
  static const int64_t shapes[] = {3, 2, 4};
  static const uint64_t shape_offsets[] = {0, 2, 3, 3};
  static const uint64_t ranges[] = {0, 1, 2, 3};
  const int64_t offsets[] = {rank + shift, 0, 0};
  const int64_t sizes[] = {1, 2, 4};
  shw_describe_options options = SHW_DESCRIBE_OPTIONS_INIT;
  shw_entry_batch batch = SHW_ENTRY_BATCH_INIT;
  shw_buffer* plan = NULL;
  shw_error* error = NULL;
  options.rank = rank;
  options.world_size = RANKS;
  batch.count = 3;
  batch.names = "wvstep";
  batch.name_offsets = name_offsets;
  batch.dtypes = dtypes;
  batch.shapes = shapes;
  batch.shape_offsets = shape_offsets;
  batch.box_ranges = ranges;
  batch.box_offsets = offsets;
  batch.box_sizes = sizes;
  CHECK_OK(shw_plan_describe(&options, &batch, &plan, &error));
  return plan;
}

/* The plans of all ranks as one blob. */
static shw_buffer* all_plans(int64_t shift) {
  char* blob = NULL;
  uint64_t offsets[RANKS + 1] = {0};
  shw_buffer* all = NULL;
  shw_error* error = NULL;
  for (int32_t rank = 0; rank < RANKS; ++rank) {
    shw_buffer* plan = rank_plan(rank, rank == 2 ? shift : 0);
    offsets[rank + 1] = offsets[rank] + shw_buffer_size(plan);
    blob = realloc(blob, offsets[rank + 1]);
    CHECK(blob != NULL);
    memcpy(blob + offsets[rank], shw_buffer_data(plan), shw_buffer_size(plan));
    shw_buffer_release(plan);
  }
  CHECK_OK(shw_buffer_create_parts(blob, offsets, RANKS, &all, &error));
  free(blob);
  return all;
}

static shw_status merge(const shw_buffer* plans, int32_t cover, shw_buffer** out,
                        shw_error** error) {
  shw_merge_options options = SHW_MERGE_OPTIONS_INIT;
  options.owner = SHW_OWNER_EXACT;
  options.preset = SHW_PRESET_TORCH;
  options.cover = cover;
  return shw_plan_merge(&options, shw_buffer_data(plans), shw_buffer_part_offsets(plans),
                        shw_buffer_part_count(plans), out, error);
}

static shw_plan* plan_of_part(const shw_buffer* parts, uint64_t part) {
  shw_plan* plan = NULL;
  shw_error* error = NULL;
  CHECK_OK(shw_plan_create(shw_buffer_part_data(parts, part), shw_buffer_part_size(parts, part),
                           &plan, &error));
  return plan;
}

static void ranks_keep_what_they_write(void) {
  shw_error* error = NULL;
  shw_buffer* plans = all_plans(0);
  shw_buffer* merged = NULL;
  CHECK_OK(merge(plans, SHW_COVER_FULL, &merged, &error));
  CHECK_INT(shw_buffer_part_count(merged), RANKS + 1);
  static const uint32_t numbers[RANKS][3] = {
      {0, SHW_NOT_KEPT, SHW_NOT_KEPT}, {1, 0, SHW_NOT_KEPT}, {2, SHW_NOT_KEPT, 0}};
  for (uint64_t rank = 0; rank < RANKS; ++rank) {
    shw_plan* own = plan_of_part(plans, rank);
    shw_entry_batch entries = SHW_ENTRY_BATCH_INIT;
    const uint32_t* kept = shw_buffer_part_data(merged, 1 + rank);
    CHECK_OK(shw_plan_entries(own, &entries, &error));
    CHECK_INT(shw_buffer_part_size(merged, 1 + rank),
              entries.box_ranges[entries.count] * sizeof(uint32_t));
    CHECK((uintptr_t)kept % sizeof(uint32_t) == 0);
    for (uint64_t box = 0; box < entries.box_ranges[entries.count]; ++box)
      CHECK_INT(kept[box], numbers[rank][box]);
    shw_plan_release(own);
  }
  shw_buffer_release(merged);
  shw_buffer_release(plans);
}

static void wants_are_matched_by_name(void) {
  static const uint64_t name_offsets[] = {0, 1};
  static const int32_t dtypes[] = {SHW_FLOAT32};
  static const int64_t shape[] = {3, 2};
  static const uint64_t shape_offsets[] = {0, 2};
  shw_error* error = NULL;
  shw_buffer* plans = all_plans(0);
  shw_buffer* merged = NULL;
  shw_buffer* matches = NULL;
  shw_entry_batch wanted = SHW_ENTRY_BATCH_INIT;
  wanted.count = 1;
  wanted.names = "w";
  wanted.name_offsets = name_offsets;
  wanted.dtypes = dtypes;
  wanted.shapes = shape;
  wanted.shape_offsets = shape_offsets;
  CHECK_OK(merge(plans, SHW_COVER_FULL, &merged, &error));
  shw_plan* stored = plan_of_part(merged, 0);
  CHECK_OK(shw_plan_match(NULL, stored, &wanted, &matches, &error));
  CHECK_INT(shw_buffer_part_count(matches), 6);
  CHECK_INT(shw_buffer_part_size(matches, 0), 3 * sizeof(uint64_t));
  CHECK_INT(shw_buffer_part_size(matches, 4), 6 * sizeof(int64_t));
  CHECK_INT(((const uint64_t*)shw_buffer_part_data(matches, 1))[2], 2);
  CHECK_INT(((const int64_t*)shw_buffer_part_data(matches, 2))[4], 2);
  wanted.names = "x";
  shw_buffer* none = NULL;
  CHECK_FAILS(shw_plan_match(NULL, stored, &wanted, &none, &error), SHW_NOT_FOUND, "'x'");
  shw_buffer_release(matches);
  shw_plan_release(stored);
  shw_buffer_release(merged);
  shw_buffer_release(plans);
}

static void digests_are_those_of_the_description(void) {
  shw_error* error = NULL;
  shw_buffer* digests[3] = {NULL, NULL, NULL};
  for (int i = 0; i < 3; ++i) {
    shw_buffer* bytes = rank_plan(0, i == 2 ? 1 : 0);
    shw_plan* plan = NULL;
    CHECK_OK(shw_plan_create(shw_buffer_data(bytes), shw_buffer_size(bytes), &plan, &error));
    CHECK_OK(shw_plan_digest(plan, &digests[i], &error));
    CHECK_INT(shw_buffer_size(digests[i]), 16);
    shw_plan_release(plan);
    shw_buffer_release(bytes);
  }
  CHECK(memcmp(shw_buffer_data(digests[0]), shw_buffer_data(digests[1]), 16) == 0);
  CHECK(memcmp(shw_buffer_data(digests[0]), shw_buffer_data(digests[2]), 16) != 0);
  for (int i = 0; i < 3; ++i) shw_buffer_release(digests[i]);
}

static void what_is_wrong_is_named(void) {
  shw_error* error = NULL;
  shw_buffer* merged = NULL;
  shw_buffer* twice = all_plans(-1); /* rank 2 holds the row of rank 1 */
  CHECK_FAILS(merge(twice, SHW_COVER_FULL, &merged, &error), SHW_INVALID_ARGUMENT, "[2:3");
  CHECK_OK(merge(twice, SHW_COVER_DISJOINT, &merged, &error));
  shw_buffer_release(merged);
  merged = NULL;
  shw_merge_options options = SHW_MERGE_OPTIONS_INIT;
  options.owner = 4;
  CHECK_FAILS(shw_plan_merge(&options, shw_buffer_data(twice), shw_buffer_part_offsets(twice),
                             RANKS, &merged, &error),
              SHW_INVALID_ARGUMENT, "owner");
  shw_describe_options describe = SHW_DESCRIBE_OPTIONS_INIT;
  shw_entry_batch batch = SHW_ENTRY_BATCH_INIT;
  shw_buffer* plan = NULL;
  batch.count = 1;
  CHECK_FAILS(shw_plan_describe(&describe, &batch, &plan, &error), SHW_INVALID_ARGUMENT,
              "name_offsets");
  batch.count = 0;
  describe.kind = SHW_PLAN_LOAD;
  CHECK_FAILS(shw_plan_describe(&describe, &batch, &plan, &error), SHW_INVALID_ARGUMENT, "kind");
  shw_buffer_release(twice);
}

/* One plan of a blob in memory of its own that begins `shift` bytes behind a multiple of 8. */
static void copy_part(const shw_buffer* plans, int rank, size_t shift, char** memory,
                      const void** plan) {
  const uint64_t size = shw_buffer_part_size(plans, (uint64_t)rank);
  *memory = malloc(size + shift);
  CHECK(*memory != NULL);
  memcpy(*memory + shift, shw_buffer_part_data(plans, (uint64_t)rank), size);
  *plan = *memory + shift;
}

static void plans_may_lie_apart(void) {
  shw_error* error = NULL;
  shw_buffer* plans = all_plans(0);
  shw_buffer *expected = NULL, *merged = NULL;
  char* memory[RANKS];
  const void* parts[RANKS];
  uint64_t sizes[RANKS];
  for (int rank = 0; rank < RANKS; ++rank) {
    copy_part(plans, rank, rank == 1 ? 3 : 0, &memory[rank], &parts[rank]);
    sizes[rank] = shw_buffer_part_size(plans, (uint64_t)rank);
  }
  CHECK_OK(shw_plan_merge(NULL, shw_buffer_data(plans), shw_buffer_part_offsets(plans), RANKS,
                          &expected, &error));
  CHECK_OK(shw_plan_merge_buffers(NULL, parts, sizes, RANKS, &merged, &error));
  CHECK_INT(shw_buffer_size(merged), shw_buffer_size(expected));
  CHECK(memcmp(shw_buffer_data(merged), shw_buffer_data(expected), shw_buffer_size(merged)) == 0);
  shw_buffer_release(merged);
  merged = NULL;
  CHECK_FAILS(shw_plan_merge_buffers(NULL, NULL, sizes, RANKS, &merged, &error),
              SHW_INVALID_ARGUMENT, "plans");
  CHECK_FAILS(shw_plan_merge_buffers(NULL, parts, NULL, RANKS, &merged, &error),
              SHW_INVALID_ARGUMENT, "plan_sizes");
  CHECK_FAILS(shw_plan_merge_buffers(NULL, parts, sizes, UINT64_MAX, &merged, &error),
              SHW_INVALID_ARGUMENT, "plan_count");
  sizes[2] -= 8;
  CHECK_FAILS(shw_plan_merge_buffers(NULL, parts, sizes, RANKS, &merged, &error), SHW_DATA_LOSS,
              "rank 2");
  parts[0] = NULL;
  CHECK_FAILS(shw_plan_merge_buffers(NULL, parts, sizes, RANKS, &merged, &error),
              SHW_INVALID_ARGUMENT, "plans");
  CHECK(merged == NULL);
  for (int rank = 0; rank < RANKS; ++rank) free(memory[rank]);
  shw_buffer_release(expected);
  shw_buffer_release(plans);
}

TEST_MAIN(TEST_ENTRY(ranks_keep_what_they_write), TEST_ENTRY(plans_may_lie_apart),
          TEST_ENTRY(wants_are_matched_by_name), TEST_ENTRY(digests_are_those_of_the_description),
          TEST_ENTRY(what_is_wrong_is_named))
