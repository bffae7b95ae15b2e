// SPDX-License-Identifier: Apache-2.0
//
// A format of the tests that is everything the library's own are not: an item's payload lies behind
// a header of its own, whose length is known only when it was read; elements may be missing;
// objects may be large; there are no generations and no digests. One data file, and a marker whose
// content stays in memory. Thread-safe once it is sealed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/format/format.h"
#include "tests/core/exec/checkpoint_fixture.h"

namespace shardwright::exec::test {

inline constexpr std::string_view kArchiveMarker = "archive.marker";
inline constexpr std::string_view kArchiveFile = "archive.bin";

// What is stored: filled by a test, then put into its storage.
class Archive {
 public:
  // Boxes of a tensor, each behind its header.
  void add(const Dense& tensor, const std::vector<Box>& boxes);
  void add_object(std::string_view name, std::string_view content_type,
                  std::span<const std::byte> bytes);
  void put(CheckpointFixture& fixture, const std::string& prefix) const;

  // Where the header of an item begins.
  uint64_t header_of(const format::StoredItem& item) const;

  plan::Catalog catalog;
  bool is_partial = false;
  mutable std::atomic<int> headers_read = 0;

 private:
  uint64_t append(std::span<const std::byte> payload);

  std::vector<std::byte> file_;
  std::vector<uint64_t> chunks_;  // where their headers begin
  std::vector<uint64_t> objects_;
};

std::shared_ptr<const format::Format> make_archive_format(std::shared_ptr<const Archive> archive);

}  // namespace shardwright::exec::test
