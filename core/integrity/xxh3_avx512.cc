// SPDX-License-Identifier: Apache-2.0
//
// The XXH3-128 kernel for processors with AVX-512F. Compiled with options of its own (see
// CMakeLists.txt). Pure functions, any thread.

#define SHW_XXH3_TABLE kXxh3Avx512
#define SHW_XXH3_NAME "avx512"

#include "core/integrity/xxh3_kernel_body_internal.h"
