// SPDX-License-Identifier: Apache-2.0
//
// The extensions that shw_get_extension looks through, the first of the list. Immutable.
#pragma once

#include "shardwright/base.h"

namespace shardwright::capi {

extern const shw_extension kExtensions;

}  // namespace shardwright::capi
