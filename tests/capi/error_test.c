/* SPDX-License-Identifier: Apache-2.0
 *
 * Error objects: made by a host, read by a host, released once. */
#include "support/check.h"

static void carries_code_message_details_and_cause(void) {
  shw_error* cause = NULL;
  shw_error* error = NULL;
  const shw_error_detail details[] = {{"file", "a\0b", 3}, {"errno", "28", 2}};
  CHECK_INT(shw_error_create(SHW_UNAVAILABLE, "disk gone", 9, NULL, 0, NULL, &cause),
            SHW_UNAVAILABLE);
  CHECK_INT(shw_error_create(SHW_RESOURCE_EXHAUSTED, "no space", 8, details, 2, cause, &error),
            SHW_RESOURCE_EXHAUSTED);
  uint64_t size = 0;
  CHECK_TEXT(shw_error_message(error, &size), "no space");
  CHECK_INT(size, 8);
  CHECK_INT(shw_error_code(error), SHW_RESOURCE_EXHAUSTED);
  CHECK_INT(shw_error_detail_count(error), 2);
  shw_error_detail detail = {NULL, NULL, 0};
  CHECK_INT(shw_error_detail_at(error, 0, &detail), SHW_OK);
  CHECK_TEXT(detail.key, "file");
  CHECK_INT(detail.value_size, 3);
  CHECK(memcmp(detail.value, "a\0b", 4) == 0);
  CHECK_INT(shw_error_detail_at(error, 2, &detail), SHW_OUT_OF_RANGE);
  CHECK_TEXT(shw_error_message(shw_error_cause(error), NULL), "disk gone");
  CHECK(shw_error_cause(shw_error_cause(error)) == NULL);
  CHECK_INT(shw_error_is_retryable(error), 0);
  CHECK_INT(shw_error_is_retryable(shw_error_cause(error)), 1);
  CHECK(shw_error_backtrace(error, &size) != NULL);
  shw_error_release(error);
}

static void is_not_made_from_bad_arguments(void) {
  shw_error* error = NULL;
  CHECK_INT(shw_error_create(SHW_OK, "a", 1, NULL, 0, NULL, &error), SHW_INVALID_ARGUMENT);
  CHECK_INT(shw_error_create(SHW_ABORTED, NULL, 1, NULL, 0, NULL, &error), SHW_INVALID_ARGUMENT);
  CHECK_INT(shw_error_create(SHW_ABORTED, "a", 1, NULL, 1, NULL, &error), SHW_INVALID_ARGUMENT);
  CHECK_INT(shw_error_create(SHW_ABORTED, "a", 1, NULL, 0, NULL, NULL), SHW_INVALID_ARGUMENT);
  CHECK(error == NULL);
}

static void getters_of_null_give_nothing(void) {
  CHECK_INT(shw_error_code(NULL), 0);
  CHECK_TEXT(shw_error_message(NULL, NULL), "");
  CHECK_INT(shw_error_detail_count(NULL), 0);
  CHECK(shw_error_cause(NULL) == NULL);
  shw_error_release(NULL);
}

static void names_every_status(void) {
  CHECK_TEXT(shw_status_name(SHW_OK), "OK");
  CHECK_TEXT(shw_status_name(SHW_DATA_LOSS), "DATA_LOSS");
  CHECK_TEXT(shw_status_name(SHW_PENDING), "PENDING");
  CHECK_TEXT(shw_status_name(SHW_HOST_EXCEPTION), "HOST_EXCEPTION");
  CHECK_TEXT(shw_status_name(17), "UNRECOGNISED");
  CHECK_TEXT(shw_status_name(-1), "UNRECOGNISED");
}

static void a_second_release_does_nothing(void) {
  shw_error *cause = NULL, *error = NULL;
  CHECK_INT(shw_error_create(SHW_NOT_FOUND, "inner", 5, NULL, 0, NULL, &cause), SHW_NOT_FOUND);
  CHECK_INT(shw_error_create(SHW_ABORTED, "outer", 5, NULL, 0, cause, &error), SHW_ABORTED);
  shw_error_release(error);
  shw_error_release(error);
  shw_error_release(cause); /* went with the outer one */
  CHECK_TEXT(shw_error_message(error, NULL), "");
  CHECK_INT(shw_error_detail_count(error), 0);
  CHECK(shw_error_cause(error) == NULL);
  /* The memory of released errors goes when many others were released: once, or it would be given
   * out twice. */
  enum { MANY = 5000 };
  static shw_error* others[MANY];
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < MANY; ++i)
      CHECK_INT(shw_error_create(SHW_ABORTED, "x", 1, NULL, 0, NULL, &others[i]), SHW_ABORTED);
    for (int i = 0; i < MANY; ++i) {
      shw_error_release(others[i]);
      others[i] = NULL;
    }
  }
}

static void says_which_version_it_is(void) {
  uint32_t major = 99, minor = 99;
  shw_abi_version(&major, &minor);
  CHECK_INT(major, SHW_ABI_MAJOR);
  CHECK_INT(minor, SHW_ABI_MINOR);
  shw_abi_version(NULL, NULL);
  CHECK(strlen(shw_version_string()) >= 5);
  CHECK(strstr(shw_build_info(), "\"compiler\"") != NULL);
  CHECK(strstr(shw_build_info(), "\"io_engines\":[\"threads\"") != NULL);
}

static void gives_a_table_of_this_version_only(void) {
  shw_error* error = NULL;
  const shw_api* api = NULL;
  CHECK_OK(shw_get_api(SHW_ABI_MAJOR, SHW_ABI_MINOR, &api, &error));
  CHECK_INT(api->struct_size, sizeof(shw_api));
  CHECK_TEXT(api->status_name(SHW_ABORTED), "ABORTED");
  CHECK(api->error_release == shw_error_release);
  CHECK_FAILS(shw_get_api(SHW_ABI_MAJOR + 1, 0, &api, &error), SHW_UNIMPLEMENTED,
              "interface version");
  CHECK_FAILS(shw_get_api(SHW_ABI_MAJOR, SHW_ABI_MINOR + 1, &api, &error), SHW_UNIMPLEMENTED,
              "interface version");
  CHECK_FAILS(shw_get_api(SHW_ABI_MAJOR, SHW_ABI_MINOR - 1, &api, &error), SHW_UNIMPLEMENTED,
              "interface version");
}

TEST_MAIN(TEST_ENTRY(carries_code_message_details_and_cause),
          TEST_ENTRY(is_not_made_from_bad_arguments), TEST_ENTRY(getters_of_null_give_nothing),
          TEST_ENTRY(names_every_status), TEST_ENTRY(a_second_release_does_nothing),
          TEST_ENTRY(says_which_version_it_is), TEST_ENTRY(gives_a_table_of_this_version_only))
