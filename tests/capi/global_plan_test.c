/* SPDX-License-Identifier: Apache-2.0
 *
 * Global plans through the C surface: four ranks of a mesh describe, exchange digests, one
 * description and their parts, and make the same plan, which expands to the explicit one. */
#include "support/states.h"

enum { RANKS = 4 };
static const char generation[] = "0123456789abcdef0123456789abcdef";

/* Two replicas of two shards each. */
static shw_layout* hybrid_layout(void) {
  static const int64_t mesh[] = {2, 2};
  static const int32_t kinds[] = {SHW_PLACEMENT_REPLICATE, SHW_PLACEMENT_SHARD}, dims[] = {0, 0};
  shw_layout_spec spec = SHW_LAYOUT_SPEC_INIT;
  shw_layout* layout = NULL;
  shw_error* error = NULL;
  spec.mesh_ndim = 2;
  spec.mesh_shape = mesh;
  spec.placement_kinds = kinds;
  spec.placement_dims = dims;
  CHECK_OK(shw_layout_create(&spec, &layout, &error));
  return layout;
}

static shw_status try_describe(int32_t rank, int64_t rows, shw_buffer** out, shw_error** error) {
  static const uint64_t name_offsets[] = {0, 1, 2, 6, 9};
  static const int32_t dtypes[] = {SHW_FLOAT32, SHW_FLOAT32, 0, 0};
  static const int32_t entry_kinds[] = {SHW_KIND_AUTO, SHW_KIND_AUTO, SHW_KIND_AUTO,
                                        SHW_KIND_RANK_LOCAL};
  static const uint64_t shape_offsets[] = {0, 2, 3, 3, 3};
  const int64_t shapes[] = {rows, 4, 3};
  const uint64_t object_sizes[] = {0, 0, 5, 7 + (uint64_t)rank};
  shw_layout* layout = hybrid_layout();
  const shw_layout* layouts[] = {layout, NULL, NULL, NULL};
  shw_describe_options options = SHW_DESCRIBE_OPTIONS_INIT;
  shw_entry_batch batch = SHW_ENTRY_BATCH_INIT;
  options.rank = rank;
  options.world_size = RANKS;
  batch.count = 4;
  batch.names = "wbsteprng";
  batch.name_offsets = name_offsets;
  batch.dtypes = dtypes;
  batch.kinds = entry_kinds;
  batch.shapes = shapes;
  batch.shape_offsets = shape_offsets;
  batch.object_sizes = object_sizes;
  const shw_status status = shw_global_plan_describe(&options, &batch, layouts, out, error);
  shw_layout_release(layout);
  return status;
}

/* What the ranks have exchanged. */
struct exchange {
  uint8_t digests[RANKS][16];
  shw_buffer* description; /* of rank 0 */
  shw_buffer* parts;
};

static struct exchange exchange_all(void) {
  struct exchange all;
  char* blob = NULL;
  uint64_t offsets[RANKS + 1] = {0};
  shw_error* error = NULL;
  all.description = NULL;
  all.parts = NULL;
  for (int32_t rank = 0; rank < RANKS; ++rank) {
    shw_buffer* local = NULL;
    CHECK_OK(try_describe(rank, 8, &local, &error));
    CHECK_INT(shw_buffer_part_count(local), 3);
    const uint64_t* ends = shw_buffer_part_offsets(local);
    const char* data = shw_buffer_data(local);
    CHECK_INT(ends[2] - ends[1], 16);
    memcpy(all.digests[rank], data + ends[1], 16);
    const uint64_t part_size = ends[3] - ends[2];
    CHECK(part_size > 0);
    blob = realloc(blob, offsets[rank] + part_size);
    CHECK(blob != NULL);
    memcpy(blob + offsets[rank], data + ends[2], part_size);
    offsets[rank + 1] = offsets[rank] + part_size;
    if (rank == 0) CHECK_OK(shw_buffer_create(data, ends[1], &all.description, &error));
    shw_buffer_release(local);
  }
  CHECK_OK(shw_buffer_create_parts(blob, offsets, RANKS, &all.parts, &error));
  free(blob);
  return all;
}

static void release_exchange(struct exchange* all) {
  shw_buffer_release(all->description);
  shw_buffer_release(all->parts);
}

static shw_status try_plan(const struct exchange* all, int32_t owner, uint64_t part_count,
                           shw_global_plan** out, shw_error** error) {
  const uint64_t offsets[] = {0, shw_buffer_size(all->description)};
  shw_merge_options options = SHW_MERGE_OPTIONS_INIT;
  options.owner = owner;
  return shw_global_plan_create(&options, all->digests, RANKS, shw_buffer_data(all->description),
                                offsets, 1, shw_buffer_data(all->parts),
                                shw_buffer_part_offsets(all->parts), part_count, out, error);
}

static void ranks_of_a_mesh_describe_alike(void) {
  struct exchange all = exchange_all();
  shw_buffer* ranks = NULL;
  shw_error* error = NULL;
  for (int32_t rank = 1; rank < RANKS; ++rank)
    CHECK(memcmp(all.digests[rank], all.digests[0], 16) == 0);
  CHECK_OK(shw_global_plan_representatives(all.digests, RANKS, &ranks, &error));
  CHECK_INT(shw_buffer_size(ranks), sizeof(int32_t));
  CHECK_INT(*(const int32_t*)shw_buffer_data(ranks), 0);
  CHECK_OK(shw_plan_validate(shw_buffer_data(all.description), shw_buffer_size(all.description),
                             &error));
  shw_buffer_release(ranks);
  release_exchange(&all);
}

static void the_plan_expands_to_every_ranks_list(void) {
  struct exchange all = exchange_all();
  shw_global_plan* plan = NULL;
  shw_buffer *expanded = NULL, *digest = NULL, *bytes = NULL;
  shw_error* error = NULL;
  CHECK_OK(try_plan(&all, SHW_OWNER_BALANCED, RANKS, &plan, &error));
  CHECK_OK(shw_global_plan_expand(plan, generation, &expanded, &error));
  CHECK_INT(shw_buffer_part_count(expanded), 1 + RANKS);
  CHECK_OK(shw_global_plan_digest(plan, &digest, &error));
  CHECK_INT(shw_buffer_size(digest), 16);
  CHECK_OK(shw_global_plan_rank_bytes(plan, &bytes, &error));
  const uint64_t* ends = shw_buffer_part_offsets(expanded);
  for (int32_t rank = 0; rank < RANKS; ++rank) {
    const char* wanted = (const char*)shw_buffer_data(expanded) + ends[rank + 1];
    shw_buffer* alone = NULL;
    shw_plan* list = NULL;
    uint64_t total = 0;
    CHECK_OK(shw_plan_create(wanted, ends[rank + 2] - ends[rank + 1], &list, &error));
    CHECK_INT(shw_plan_kind(list), SHW_PLAN_WRITE_LIST);
    CHECK_INT(shw_plan_rank(list), rank);
    for (uint64_t i = 0; i < shw_plan_item_count(list); ++i) {
      shw_plan_item item = SHW_PLAN_ITEM_INIT;
      CHECK_OK(shw_plan_item_at(list, i, &item, &error));
      total += item.byte_size;
    }
    CHECK_INT(((const uint64_t*)shw_buffer_data(bytes))[rank], total);
    /* The lists differ in the digest that they carry alone. */
    CHECK_OK(shw_global_plan_write_list(plan, rank, generation, NULL, &alone, &error));
    CHECK_INT(shw_buffer_size(alone), ends[rank + 2] - ends[rank + 1]);
    shw_buffer_release(alone);
    shw_plan_release(list);
  }
  shw_buffer_release(bytes);
  shw_buffer_release(digest);
  shw_buffer_release(expanded);
  shw_global_plan_release(plan);
  release_exchange(&all);
}

static void owners_follow_the_rule(void) {
  struct exchange all = exchange_all();
  shw_global_plan* plan = NULL;
  shw_buffer *owners = NULL, *json = NULL;
  shw_error* error = NULL;
  CHECK_OK(try_plan(&all, SHW_OWNER_LOWEST_RANK, RANKS, &plan, &error));
  CHECK_OK(shw_global_plan_owners(plan, "w", 1, &owners, &error));
  CHECK_INT(shw_buffer_size(owners), 2 * sizeof(int32_t));
  CHECK_INT(((const int32_t*)shw_buffer_data(owners))[0], 0);
  CHECK_INT(((const int32_t*)shw_buffer_data(owners))[1], 1);
  CHECK_OK(shw_global_plan_json(plan, &json, &error));
  CHECK_TEXT((const char*)shw_buffer_data(json),
             "{\"schema\":1,\"ranks\":4,\"descriptions\":1,\"tensors\":2,\"items\":16,\"chunks\":3,"
             "\"objects\":5,\"writers\":4,\"bytes\":179,\"most_bytes\":88}");
  CHECK_FAILS(shw_global_plan_owners(plan, "x", 1, &owners, &error), SHW_NOT_FOUND, "'x'");
  CHECK_FAILS(shw_global_plan_write_list(plan, 4, generation, NULL, &owners, &error),
              SHW_INVALID_ARGUMENT, "rank 4 of 4");
  CHECK_FAILS(shw_global_plan_expand(plan, "x", &owners, &error), SHW_INVALID_ARGUMENT,
              "generation");
  shw_buffer_release(json);
  shw_buffer_release(owners);
  shw_global_plan_release(plan);
  release_exchange(&all);
}

static void refuses_what_does_not_fit(void) {
  struct exchange all = exchange_all();
  shw_global_plan* plan = NULL;
  shw_buffer* out = NULL;
  shw_error* error = NULL;
  CHECK_FAILS(try_plan(&all, SHW_OWNER_BALANCED, RANKS - 1, &plan, &error), SHW_INVALID_ARGUMENT,
              "rank 3");
  CHECK_FAILS(try_plan(&all, SHW_OWNER_ALL, RANKS, &plan, &error), SHW_INVALID_ARGUMENT, "owner");
  all.digests[2][5] ^= 1;
  CHECK_FAILS(try_plan(&all, SHW_OWNER_BALANCED, RANKS, &plan, &error), SHW_INVALID_ARGUMENT,
              "1 descriptions for 2");
  CHECK_FAILS(try_describe(4, 8, &out, &error), SHW_INVALID_ARGUMENT, "rank 4 of 4");
  CHECK_FAILS(try_describe(0, -1, &out, &error), SHW_INVALID_ARGUMENT, "'w'");
  CHECK_FAILS(shw_global_plan_representatives(all.digests, 0, &out, &error), SHW_INVALID_ARGUMENT,
              "rank_count");
  CHECK(plan == NULL && out == NULL);
  shw_global_plan_release(NULL);
  release_exchange(&all);
}

TEST_MAIN(TEST_ENTRY(ranks_of_a_mesh_describe_alike),
          TEST_ENTRY(the_plan_expands_to_every_ranks_list), TEST_ENTRY(owners_follow_the_rule),
          TEST_ENTRY(refuses_what_does_not_fit))
