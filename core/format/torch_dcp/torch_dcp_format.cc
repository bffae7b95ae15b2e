// SPDX-License-Identifier: Apache-2.0
#include "core/format/torch_dcp/torch_dcp_format.h"

#include "core/format/torch_dcp/kept_openings.h"
#include "core/format/torch_dcp/torch_dcp_checkpoint.h"
#include "core/format/torch_dcp/torch_dcp_saving.h"

namespace shardwright::format::torch_dcp {
namespace {

class TorchDcpFormat final : public Format {
 public:
  explicit TorchDcpFormat(const Clock& clock) : kept_(clock) {}

  std::string_view name() const override { return kFormatName; }

  bool recognises(const Sight& sight) const override {
    return !sight.is_file && (sight.has_name(kIndexName) || sight.has_name(kRankIndexPattern));
  }

  Result<std::shared_ptr<const OpenedCheckpoint>> open(
      const Sight& sight, std::vector<std::byte>* metadata) const override {
    return open_directory(sight.location, sight.names, &kept_, metadata);
  }

  Result<std::shared_ptr<const OpenedCheckpoint>> open_shared(
      const Location& location, std::span<const std::byte> metadata) const override {
    return torch_dcp::open_shared(location, metadata);
  }
  const FormatWriter* writer() const override { return &torch_dcp_writer(); }

 private:
  mutable KeptOpenings kept_;  // thread-safe
};

}  // namespace

std::unique_ptr<const Format> make_format(const Clock& clock) {
  return std::make_unique<TorchDcpFormat>(clock);
}

}  // namespace shardwright::format::torch_dcp
