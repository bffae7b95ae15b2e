/* SPDX-License-Identifier: Apache-2.0
 *
 * Buffers: bytes in parts, and what refuses to be one. */
#include "support/check.h"

static void holds_bytes_and_a_nul_behind_them(void) {
  shw_error* error = NULL;
  shw_buffer* buffer = NULL;
  CHECK_OK(shw_buffer_create("abc", 3, &buffer, &error));
  CHECK_INT(shw_buffer_size(buffer), 3);
  CHECK_INT(shw_buffer_part_count(buffer), 1);
  CHECK_TEXT(shw_buffer_data(buffer), "abc");
  CHECK(((uintptr_t)shw_buffer_data(buffer) & 63) == 0);
  shw_buffer_release(buffer);
}

static void cuts_a_blob_into_parts(void) {
  shw_error* error = NULL;
  shw_buffer* buffer = NULL;
  const uint64_t offsets[] = {0, 2, 2, 5};
  CHECK_OK(shw_buffer_create_parts("abcde", offsets, 3, &buffer, &error));
  CHECK_INT(shw_buffer_part_count(buffer), 3);
  CHECK_INT(shw_buffer_part_size(buffer, 0), 2);
  CHECK_INT(shw_buffer_part_size(buffer, 1), 0);
  CHECK_INT(shw_buffer_part_size(buffer, 2), 3);
  CHECK(memcmp(shw_buffer_part_data(buffer, 2), "cde", 3) == 0);
  CHECK(memcmp(shw_buffer_part_offsets(buffer), offsets, sizeof(offsets)) == 0);
  CHECK(shw_buffer_part_data(buffer, 3) == NULL);
  CHECK_INT(shw_buffer_part_size(buffer, 3), 0);
  shw_buffer_release(buffer);
}

static void may_be_empty(void) {
  shw_error* error = NULL;
  shw_buffer* buffer = NULL;
  const uint64_t offsets[] = {0};
  CHECK_OK(shw_buffer_create(NULL, 0, &buffer, &error));
  CHECK_INT(shw_buffer_size(buffer), 0);
  shw_buffer_release(buffer);
  CHECK_OK(shw_buffer_create_parts(NULL, offsets, 0, &buffer, &error));
  CHECK_INT(shw_buffer_part_count(buffer), 0);
  shw_buffer_release(buffer);
}

static void refuses_bad_offsets_and_sizes(void) {
  shw_error* error = NULL;
  shw_buffer* buffer = NULL;
  const uint64_t descending[] = {0, 3, 2};
  const uint64_t not_zero[] = {1, 2};
  CHECK_FAILS(shw_buffer_create_parts("abc", descending, 2, &buffer, &error), SHW_INVALID_ARGUMENT,
              "offset 2");
  CHECK_FAILS(shw_buffer_create_parts("abc", not_zero, 1, &buffer, &error), SHW_INVALID_ARGUMENT,
              "not 0");
  CHECK_FAILS(shw_buffer_create(NULL, 1, &buffer, &error), SHW_INVALID_ARGUMENT, "'data'");
  CHECK_FAILS(shw_buffer_create("a", UINT64_MAX, &buffer, &error), SHW_INVALID_ARGUMENT, "size");
  CHECK(buffer == NULL);
}

TEST_MAIN(TEST_ENTRY(holds_bytes_and_a_nul_behind_them), TEST_ENTRY(cuts_a_blob_into_parts),
          TEST_ENTRY(may_be_empty), TEST_ENTRY(refuses_bad_offsets_and_sizes))
