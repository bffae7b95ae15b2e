// SPDX-License-Identifier: Apache-2.0
#include "core/format/megatron/megatron_format.h"

#include "core/format/megatron/marker_file.h"
#include "core/format/megatron/megatron_checkpoint.h"
#include "core/format/megatron/megatron_saving.h"
#include "core/format/megatron/publication.h"
#include "core/format/torch_dcp/kept_openings.h"

namespace shardwright::format::megatron {
namespace {

class MegatronFormat final : public Format {
 public:
  explicit MegatronFormat(const Clock& clock) : kept_(clock) {}

  std::string_view name() const override { return kFormatName; }

  bool recognises(const Sight& sight) const override {
    return !sight.is_file && sight.has_name(kMarkerName);
  }

  Result<std::shared_ptr<const OpenedCheckpoint>> open(
      const Sight& sight, std::vector<std::byte>* metadata) const override {
    return open_directory(sight.location, &kept_, metadata);
  }

  Result<std::shared_ptr<const OpenedCheckpoint>> open_to_convert(
      const Sight& sight) const override {
    return megatron::open_to_convert(sight.location, &kept_);
  }

  Result<std::shared_ptr<const OpenedCheckpoint>> open_shared(
      const Location& location, std::span<const std::byte> metadata) const override {
    return megatron::open_shared(location, metadata);
  }

  // Without metadata.json a directory with the journal is one, too.
  std::span<const std::string_view> markers() const override { return {&kJournalName, 1}; }
  const FormatWriter* writer() const override { return &megatron_writer(); }

 private:
  mutable torch_dcp::KeptOpenings kept_;  // thread-safe
};

}  // namespace

std::unique_ptr<const Format> make_format(const Clock& clock) {
  return std::make_unique<MegatronFormat>(clock);
}

}  // namespace shardwright::format::megatron
