/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin in a process whose torch says that it is another version: it is refused, and both are
 * named. */
#include "tests/capi/support/check.h"

/* Stands before the one of libtorch_cpu. */
__attribute__((visibility("default"))) uint64_t aoti_torch_abi_version(void);
uint64_t aoti_torch_abi_version(void) {
  return (UINT64_C(2) << 56) | (UINT64_C(14) << 48) | (UINT64_C(1) << 40);
}

static void a_torch_of_another_version_is_refused(void) {
  shw_error* error = NULL;
  shw_context* context = NULL;
  CHECK_OK(shw_context_create(NULL, &context, &error));
  CHECK_FAILS(shw_context_load_plugin(context, "torch", &error), SHW_FAILED_PRECONDITION, "2.14.1");
  CHECK_FAILS(shw_context_load_plugin(context, "torch", &error), SHW_FAILED_PRECONDITION,
              "compiled for torch 2.15");
  shw_collective* collective = NULL;
  CHECK_FAILS(shw_context_open_collective(context, "torch", "{}", 2, &collective, &error),
              SHW_NOT_FOUND, "no plugin 'torch'");
  shw_context_release(context);
}

TEST_MAIN(TEST_ENTRY(a_torch_of_another_version_is_refused))
