// SPDX-License-Identifier: Apache-2.0
//
// The one function that the copy of the library for injection tests exports beside the public ones.
#include "capi/boundary/guard.h"

extern "C" __attribute__((visibility("default"))) void shw_test_inject(int kind) {
  shardwright::capi::inject_exception(kind);
}
