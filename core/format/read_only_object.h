// SPDX-License-Identifier: Apache-2.0
//
// ReadOnlyObject: an object that is made by a format and is read, nothing else. Who derives from it
// says how, and how large it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/storage/storage.h"

namespace shardwright::format {

class ReadOnlyObject : public storage::StorageObject {
 public:
  // name: for messages.
  explicit ReadOnlyObject(std::string name) : name_(std::move(name)) {}

  Status write_at(uint64_t, std::span<const std::byte>) final { return only_read(); }
  Status truncate(uint64_t) final { return only_read(); }
  Status sync() final { return only_read(); }
  Status commit(storage::CommitCondition, std::string_view) final { return only_read(); }
  void abort() final {}
  Status close() final { return {}; }

 protected:
  const std::string& name() const { return name_; }

 private:
  Status only_read() const {
    return internal_error(
        fmt::format("'{}' is made of other files and cannot be written", escape_text(name_)));
  }

  const std::string name_;
};

}  // namespace shardwright::format
