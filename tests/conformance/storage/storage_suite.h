// SPDX-License-Identifier: Apache-2.0
//
// The conformance suite of the storage interface. A storage passes it by instantiating
// StorageConformance with a maker; what a storage does not offer (capabilities) is left out of the
// suite for it. One thread but where a test says so.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/storage/storage.h"

namespace shardwright::storage {

// A storage with what it stands on; the last member goes first.
struct StorageUnderTest {
  std::vector<std::shared_ptr<void>> owned;
  std::shared_ptr<Storage> storage;
};

struct StorageMaker {
  std::string name;
  std::function<StorageUnderTest()> make;
  bool direct = false;  // open objects with the direct hint
};
inline void PrintTo(const StorageMaker& maker, std::ostream* out) {
  *out << maker.name;
}

class StorageConformance : public testing::TestWithParam<StorageMaker> {
 protected:
  StorageConformance() : under_test_(GetParam().make()) {}
  Storage& storage() { return *under_test_.storage; }
  bool offers(uint64_t capability) { return (storage().capabilities() & capability) == capability; }

  OpenOptions options(OpenMode mode) const {
    OpenOptions result;
    result.mode = mode;
    result.direct = GetParam().direct;
    return result;
  }
  std::unique_ptr<StorageObject> open(std::string_view key, OpenMode mode) {
    Result<std::unique_ptr<StorageObject>> object = storage().open(key, options(mode));
    EXPECT_TRUE(object.ok()) << object.status().to_string();
    return object.ok() ? std::move(*object) : nullptr;
  }
  StatusCode open_code(std::string_view key, OpenMode mode) {
    return storage().open(key, options(mode)).status().code();
  }
  // Writes a visible object in one piece.
  void put(std::string_view key, std::string_view text) {
    const auto object = open(key, OpenMode::kCreateVisible);
    ASSERT_NE(object, nullptr);
    ASSERT_TRUE(object->write_at(0, std::as_bytes(std::span(text))).ok());
    ASSERT_TRUE(object->sync().ok());
    ASSERT_TRUE(object->close().ok());
  }
  // Replaces or makes an object atomically.
  Status publish(std::string_view key, std::string_view text, CommitCondition condition,
                 std::string_view version) {
    Result<std::unique_ptr<StorageObject>> object = storage().open(key, options(OpenMode::kCreate));
    if (!object.ok()) return object.status();
    SHW_RETURN_IF_ERROR((*object)->write_at(0, std::as_bytes(std::span(text))));
    SHW_RETURN_IF_ERROR((*object)->sync());
    return (*object)->commit(condition, version);
  }
  std::string text_of(std::string_view key) {
    const Result<std::vector<std::byte>> bytes = read_all(storage(), key, 1 << 20);
    if (!bytes.ok()) return bytes.status().to_string();
    return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
  }
  std::vector<std::string> keys(std::string_view prefix, char delimiter = kNoDelimiter) {
    std::vector<std::string> found;
    const Status listed = storage().list(prefix, delimiter, [&](const ListEntry& entry) {
      found.push_back(entry.key);
      return Status();
    });
    EXPECT_TRUE(listed.ok()) << listed.to_string();
    return found;
  }

 private:
  StorageUnderTest under_test_;
};

}  // namespace shardwright::storage
