/* SPDX-License-Identifier: Apache-2.0
 *
 * Every function with an exception inside its body. Runs against a copy of the library that was
 * built with fault injection, which exports one function more. */
#include "every_call.h"

#include "api_calls.inc"

void shw_test_inject(int kind);

enum { CALLS = sizeof(api_calls) / sizeof(api_calls[0]) };

static void inject_everywhere(int kind, shw_status wanted, const char* text) {
  struct env env;
  make_env(&env);
  for (int i = 0; i < CALLS; ++i) {
    shw_error* error = NULL;
    shw_test_inject(kind);
    const shw_status status = api_calls[i].call(&env, -1, &error);
    if (status != wanted || strstr(shw_error_message(error, NULL), text) == NULL) {
      fprintf(stderr, "%s gives %s: %s\n", api_calls[i].name, shw_status_name(status),
              shw_error_message(error, NULL));
      exit(1);
    }
    CHECK(outs_untouched(&env));
    shw_error_release(error);
    shw_test_inject(kind);
    CHECK_INT(api_calls[i].call(&env, -1, NULL), wanted);
  }
  release_env(&env);
}

static void standard_exceptions_become_internal(void) {
  inject_everywhere(1, SHW_INTERNAL, "injected");
}
static void bad_alloc_becomes_resource_exhausted(void) {
  inject_everywhere(2, SHW_RESOURCE_EXHAUSTED, "memory");
}
static void other_exceptions_become_internal(void) {
  inject_everywhere(3, SHW_INTERNAL, "not a std::exception");
}

TEST_MAIN(TEST_ENTRY(standard_exceptions_become_internal),
          TEST_ENTRY(bad_alloc_becomes_resource_exhausted),
          TEST_ENTRY(other_exceptions_become_internal))
