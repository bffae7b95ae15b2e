/* SPDX-License-Identifier: Apache-2.0
 *
 * Plan buffers through the C surface: every truncation, a trailing byte and every flipped bit is
 * refused or gives a plan that passes all checks; nothing crashes. */
#include "support/scratch.h"
#include "support/states.h"

static float values[6];

static shw_buffer* local_plan(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_state* state = make_state();
  shw_save_planner* planner = NULL;
  shw_buffer* plan = NULL;
  add_floats(state, "w", values, SHAPE(2, 3), 2);
  add_object(state, "o", "application/json", "{}");
  CHECK_OK(shw_save_planner_create(context, state, 0, 1, NULL, &planner, &error));
  CHECK_OK(shw_save_planner_local_plan(planner, &plan, &error));
  shw_save_planner_release(planner);
  shw_state_release(state);
  shw_context_release(context);
  return plan;
}

static void a_good_plan_passes(void) {
  shw_error* error = NULL;
  shw_buffer* bytes = local_plan();
  shw_buffer* findings = NULL;
  shw_buffer* json = NULL;
  shw_plan* plan = NULL;
  CHECK_OK(shw_plan_validate(shw_buffer_data(bytes), shw_buffer_size(bytes), &error));
  CHECK_OK(shw_plan_findings(shw_buffer_data(bytes), shw_buffer_size(bytes), &findings, &error));
  CHECK_INT(shw_buffer_part_count(findings), 0);
  CHECK_OK(shw_plan_create(shw_buffer_data(bytes), shw_buffer_size(bytes), &plan, &error));
  CHECK_INT(shw_plan_kind(plan), SHW_PLAN_LOCAL_SAVE);
  CHECK_INT(shw_plan_size(plan), shw_buffer_size(bytes));
  CHECK(memcmp(shw_plan_data(plan), shw_buffer_data(bytes), shw_plan_size(plan)) == 0);
  CHECK_INT(shw_plan_item_count(plan), 0);
  CHECK_OK(shw_plan_json(plan, 10, &json, &error));
  CHECK(strstr(shw_buffer_data(json), "\"schema\":1") != NULL);
  shw_plan_item item = SHW_PLAN_ITEM_INIT;
  CHECK_FAILS(shw_plan_item_at(plan, 0, &item, &error), SHW_OUT_OF_RANGE, "has 0 items");
  shw_buffer_release(json);
  shw_buffer_release(findings);
  shw_plan_release(plan);
  shw_buffer_release(bytes);
}

static void truncations_and_trailing_bytes_are_refused(void) {
  shw_buffer* bytes = local_plan();
  const uint64_t size = shw_buffer_size(bytes);
  uint8_t* copy = malloc(size + 1);
  memcpy(copy, shw_buffer_data(bytes), size);
  copy[size] = 0;
  for (uint64_t cut = 0; cut < size; ++cut) CHECK(shw_plan_validate(copy, cut, NULL) != SHW_OK);
  CHECK(shw_plan_validate(copy, size + 1, NULL) != SHW_OK);
  for (uint64_t shift = 1; shift < 8; ++shift) { /* any address will do */
    uint8_t* moved = malloc(size + 8);
    memcpy(moved + shift, copy, size);
    CHECK_INT(shw_plan_validate(moved + shift, size, NULL), SHW_OK);
    free(moved);
  }
  free(copy);
  shw_buffer_release(bytes);
}

static void flipped_bits_never_crash(void) {
  shw_buffer* bytes = local_plan();
  const uint64_t size = shw_buffer_size(bytes);
  uint8_t* copy = malloc(size);
  int refused = 0;
  for (uint64_t bit = 0; bit < size * 8; ++bit) {
    shw_plan* plan = NULL;
    shw_error* error = NULL;
    memcpy(copy, shw_buffer_data(bytes), size);
    copy[bit / 8] ^= (uint8_t)(1U << (bit % 8));
    const shw_status status = shw_plan_create(copy, size, &plan, &error);
    CHECK(status == SHW_OK || status == SHW_INVALID_ARGUMENT || status == SHW_DATA_LOSS ||
          status == SHW_UNIMPLEMENTED);
    CHECK((plan != NULL) == (status == SHW_OK) && (error == NULL) == (status == SHW_OK));
    refused += status != SHW_OK;
    shw_plan_release(plan);
    shw_error_release(error);
  }
  CHECK(refused > 0);
  free(copy);
  shw_buffer_release(bytes);
}

static void other_bytes_are_no_plan(void) {
  shw_error* error = NULL;
  shw_plan* plan = NULL;
  static const char text[64] = "this is no plan buffer, it is just some text of enough bytes";
  CHECK(shw_plan_create(text, sizeof(text), &plan, &error) != SHW_OK);
  shw_error_release(error);
  error = NULL;
  shw_buffer* findings = NULL;
  CHECK_OK(shw_plan_findings(text, sizeof(text), &findings, &error));
  CHECK(shw_buffer_part_count(findings) >= 1);
  shw_buffer_release(findings);
}

static void a_load_plan_lists_its_reads(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_state* state = make_state();
  const char* path = path_in(scratch_directory(), "c");
  add_floats(state, "w", values, SHAPE(2, 3), 2);
  add_object(state, "o", "application/json", "{}");
  save_at(context, state, path);
  shw_checkpoint* checkpoint = open_at(context, path);
  shw_load_planner* planner = NULL;
  shw_plan* plan = NULL;
  shw_plan_item item = SHW_PLAN_ITEM_INIT;
  CHECK_OK(shw_load_planner_create(checkpoint, state, 0, NULL, &planner, &error));
  CHECK_OK(shw_load_planner_local_plan(planner, &plan, &error));
  CHECK_INT(shw_plan_item_count(plan), 2);
  CHECK_OK(shw_plan_item_at(plan, 1, &item, &error));
  CHECK_INT(item.flags, SHW_PLAN_ITEM_OBJECT);
  CHECK_OK(shw_plan_validate(shw_plan_data(plan), shw_plan_size(plan), &error));
  shw_plan_release(plan);
  shw_load_planner_release(planner);
  shw_checkpoint_release(checkpoint);
  shw_state_release(state);
  shw_context_release(context);
}

TEST_MAIN(TEST_ENTRY(a_good_plan_passes), TEST_ENTRY(truncations_and_trailing_bytes_are_refused),
          TEST_ENTRY(flipped_bits_never_crash), TEST_ENTRY(other_bytes_are_no_plan),
          TEST_ENTRY(a_load_plan_lists_its_reads))
