// SPDX-License-Identifier: Apache-2.0
//
// The XXH3-128 kernel for every processor of the platform. Compiled with options of its own (see
// CMakeLists.txt). Pure functions, any thread.

#define SHW_XXH3_TABLE kXxh3Baseline
#define SHW_XXH3_NAME "baseline"

#include "core/integrity/xxh3_kernel_body_internal.h"
