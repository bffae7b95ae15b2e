// SPDX-License-Identifier: Apache-2.0
#include "plugins/torch/torch_version.h"

#include <fmt/format.h>

// Of libtorch_cpu, in which a header declares much else beside it.
extern "C" uint64_t aoti_torch_abi_version();

namespace shardwright::torch_plugin {
namespace {

constexpr uint64_t kCompiled = uint64_t{SHW_TORCH_MAJOR} << 56U | uint64_t{SHW_TORCH_MINOR} << 48U |
                               uint64_t{SHW_TORCH_PATCH} << 40U;

}  // namespace

std::string version_text(uint64_t packed) {
  return fmt::format("{}.{}.{}", packed >> 56U, (packed >> 48U) & 0xFFU, (packed >> 40U) & 0xFFU);
}

Status check_torch_version(uint64_t compiled, uint64_t running) {
  if (compiled >> 48U == running >> 48U) return {};
  return failed_precondition(
             fmt::format("it was compiled for torch {} and this process has torch {}: build "
                         "shardwright in the environment that has this torch",
                         version_text(compiled), version_text(running)))
      .with_detail("expected", version_text(compiled))
      .with_detail("found", version_text(running));
}

Status check_running_torch() {
  return check_torch_version(kCompiled, aoti_torch_abi_version());
}

}  // namespace shardwright::torch_plugin
