// SPDX-License-Identifier: Apache-2.0
#include "core/format/safetensors/safetensors_format.h"

#include "core/format/safetensors/safetensors_checkpoint.h"
#include "core/format/safetensors/safetensors_saving.h"

namespace shardwright::format::safetensors {
namespace {

class SafetensorsFormat final : public Format {
 public:
  std::string_view name() const override { return kFormatName; }

  bool recognises(const Sight& sight) const override {
    if (sight.is_file)
      return is_safetensors_file(sight.head, sight.size_bytes, shown_path(sight.location));
    return sight.has_name("*.safetensors.index.json") || sight.has_name("*.safetensors");
  }

  Result<std::shared_ptr<const OpenedCheckpoint>> open(
      const Sight& sight, std::vector<std::byte>* metadata) const override {
    return sight.is_file ? open_file(sight.location, metadata)
                         : open_directory(sight.location, sight.names, metadata);
  }

  Result<std::shared_ptr<const OpenedCheckpoint>> open_shared(
      const Location& location, std::span<const std::byte> metadata) const override {
    return safetensors::open_shared(location, metadata);
  }

  const FormatWriter* writer() const override { return &safetensors_writer(); }
};

}  // namespace

std::unique_ptr<const Format> make_format() {
  return std::make_unique<SafetensorsFormat>();
}

}  // namespace shardwright::format::safetensors
