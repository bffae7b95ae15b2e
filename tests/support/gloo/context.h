// SPDX-License-Identifier: Apache-2.0
//
// Stands in for a header of Gloo, which the package of torch lacks: as much as the declaration of
// ProcessGroupGloo needs, which holds what lies here by pointers only.
#pragma once

#include <chrono>
#include <memory>

#include "gloo/transport/device.h"

namespace gloo {
class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};
}  // namespace gloo
