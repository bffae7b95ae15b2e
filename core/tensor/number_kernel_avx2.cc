// SPDX-License-Identifier: Apache-2.0
//
// The loops over numbers for processors with AVX2. Compiled with options of its
// own (see CMakeLists.txt). Pure functions, any thread.

#define SHW_NUMBERS_TABLE kNumberAvx2
#define SHW_NUMBERS_NAME "avx2"

#include "core/tensor/number_kernel_body_internal.h"
