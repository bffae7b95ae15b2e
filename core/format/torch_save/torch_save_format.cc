// SPDX-License-Identifier: Apache-2.0
#include "core/format/torch_save/torch_save_format.h"

#include "core/format/torch_save/stored_value.h"
#include "core/format/torch_save/torch_save_checkpoint.h"

namespace shardwright::format::torch_save {
namespace {

class TorchSaveFormat final : public Format {
 public:
  std::string_view name() const override { return kFormatName; }

  bool recognises(const Sight& sight) const override {
    // Zip archives whose name says that they are numpy's need no reading.
    return sight.is_file &&
           (is_old_file(sight.head) ||
            (is_zip_file(sight.head) && !shown_path(sight.location).ends_with(".npz")));
  }

  Result<std::shared_ptr<const OpenedCheckpoint>> open(
      const Sight& sight, std::vector<std::byte>* metadata) const override {
    return open_file(sight.location, metadata);
  }

  Result<std::shared_ptr<const OpenedCheckpoint>> open_shared(
      const Location& location, std::span<const std::byte> metadata) const override {
    return torch_save::open_shared(location, metadata);
  }
};

}  // namespace

std::unique_ptr<const Format> make_format() {
  return std::make_unique<TorchSaveFormat>();
}

}  // namespace shardwright::format::torch_save
