// SPDX-License-Identifier: Apache-2.0
//
// Stands in for a header of Gloo, which the package of torch lacks: as much as the declaration of
// ProcessGroupGloo needs, which holds what lies here by pointers only.
#pragma once

namespace gloo::transport {
class Device;
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = default;
};
}  // namespace gloo::transport
