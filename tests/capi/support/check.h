/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks for C tests: the first that fails prints where and what, and ends the program with 1. A
 * test program is a list of functions that main runs by name. */
#ifndef SHARDWRIGHT_TESTS_CAPI_CHECK_H
#define SHARDWRIGHT_TESTS_CAPI_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shardwright/shardwright.h>

#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)

#define CHECK_INT(found, wanted)                                                        \
  do {                                                                                  \
    const int64_t found_value = (int64_t)(found);                                       \
    const int64_t wanted_value = (int64_t)(wanted);                                     \
    if (found_value != wanted_value) {                                                  \
      fprintf(stderr, "%s:%d: %s is %lld, expected %lld\n", __FILE__, __LINE__, #found, \
              (long long)found_value, (long long)wanted_value);                         \
      exit(1);                                                                          \
    }                                                                                   \
  } while (0)

#define CHECK_TEXT(found, wanted)                                                       \
  do {                                                                                  \
    const char* found_text = (found);                                                   \
    const char* wanted_text = (wanted);                                                 \
    if (strcmp(found_text, wanted_text) != 0) {                                         \
      fprintf(stderr, "%s:%d: %s is '%s', expected '%s'\n", __FILE__, __LINE__, #found, \
              found_text, wanted_text);                                                 \
      exit(1);                                                                          \
    }                                                                                   \
  } while (0)

/* The call succeeds; the variable `error` (shw_error*) must be in scope and NULL. */
#define CHECK_OK(call)                                                        \
  do {                                                                        \
    const shw_status found_status = (call);                                   \
    if (found_status != SHW_OK) {                                             \
      fprintf(stderr, "%s:%d: %s gives %s: %s\n", __FILE__, __LINE__, #call,  \
              shw_status_name(found_status), shw_error_message(error, NULL)); \
      exit(1);                                                                \
    }                                                                         \
    CHECK(error == NULL);                                                     \
  } while (0)

/* The call fails with this status, and its message holds the text; `error` is released. A text of
 * one letter stands in nearly every message, so it must be longer. */
#define CHECK_FAILS(call, wanted, text)                                                        \
  do {                                                                                         \
    CHECK(strlen(text) >= 3);                                                                  \
    const shw_status found_status = (call);                                                    \
    if (found_status != (wanted) || error == NULL || shw_error_code(error) != (wanted) ||      \
        strstr(shw_error_message(error, NULL), (text)) == NULL) {                              \
      fprintf(stderr, "%s:%d: %s gives %s: '%s', expected %s with '%s'\n", __FILE__, __LINE__, \
              #call, shw_status_name(found_status), shw_error_message(error, NULL),            \
              shw_status_name(wanted), (text));                                                \
      exit(1);                                                                                 \
    }                                                                                          \
    shw_error_release(error);                                                                  \
    error = NULL;                                                                              \
  } while (0)

/* Value of the first detail with this key, "" when there is none; valid as long as the error. */
static inline const char* error_detail(const shw_error* error, const char* key) {
  shw_error_detail found;
  for (uint64_t i = 0; i < shw_error_detail_count(error); ++i) {
    CHECK_INT(shw_error_detail_at(error, i, &found), SHW_OK);
    if (strcmp(found.key, key) == 0) return found.value;
  }
  return "";
}

/* As CHECK_FAILS, and the error has this detail. */
#define CHECK_FAILS_WITH(call, wanted, text, key, value)                \
  do {                                                                  \
    const shw_status detailed_status = (call);                          \
    if (error != NULL) CHECK_TEXT(error_detail(error, (key)), (value)); \
    CHECK_FAILS(detailed_status, wanted, text);                         \
  } while (0)

/* The call fails with this status and some words; which ones is up to the host's own object. */
#define CHECK_STATUS(call, wanted)                              \
  do {                                                          \
    CHECK_INT((call), (wanted));                                \
    CHECK(error != NULL && shw_error_code(error) == (wanted) && \
          *shw_error_message(error, NULL) != '\0');             \
    shw_error_release(error);                                   \
    error = NULL;                                               \
  } while (0)

typedef void (*test_function)(void);
struct test {
  const char* name;
  test_function run;
};
#define TEST_ENTRY(function) {#function, function}

/* Runs all tests, or those named on the command line; prints one line each. */
static inline int run_tests(const struct test* tests, int count, int argc, char** argv) {
  int ran = 0;
  for (int i = 0; i < count; ++i) {
    int wanted = argc < 2;
    for (int a = 1; a < argc; ++a) wanted |= strcmp(argv[a], tests[i].name) == 0;
    if (!wanted) continue;
    printf("%s\n", tests[i].name);
    fflush(stdout);
    tests[i].run();
    ++ran;
  }
  if (ran == 0) fprintf(stderr, "no test has that name\n");
  return ran == 0;
}
#define TEST_MAIN(...)                                                            \
  int main(int argc, char** argv) {                                               \
    static const struct test tests[] = {__VA_ARGS__};                             \
    return run_tests(tests, (int)(sizeof(tests) / sizeof(tests[0])), argc, argv); \
  }

#endif
