// SPDX-License-Identifier: Apache-2.0
//
// The loops over numbers for every processor that the library runs on. Compiled with options of its
// own (see CMakeLists.txt). Pure functions, any thread.

#define SHW_NUMBERS_TABLE kNumberBaseline
#define SHW_NUMBERS_NAME "baseline"

#include "core/tensor/number_kernel_body_internal.h"
