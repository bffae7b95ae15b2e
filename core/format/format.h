// SPDX-License-Identifier: Apache-2.0
//
// Format: what a checkpoint looks like in storage. Each is recognised and opened; those that can be
// saved have a FormatWriter (saving.h). A FormatTable holds them in the order in which they are
// tried. Immutable, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/concurrency/cancellation.h"
#include "core/format/opened_checkpoint.h"
#include "core/format/saving.h"

namespace shardwright::format {

// What lies at a location, as far as recognition looks: a file with its first bytes, or names.
struct Sight {
  const Location& location;
  bool is_file = false;
  uint64_t size_bytes = 0;           // of the file
  std::vector<std::byte> head = {};  // its first kHeadBytes, or all
  std::vector<std::string> names =
      {};  // at and below the directory, relative to it; not all of many

  static constexpr uint64_t kHeadBytes = 16;
  // Whether a name directly in the directory matches the glob.
  bool has_name(std::string_view pattern) const;
};

class Format {
 public:
  virtual ~Format() = default;
  virtual std::string_view name() const = 0;
  // Names of files of which one makes a directory one of this format whatever else lies there.
  virtual std::span<const std::string_view> markers() const { return {}; }
  // Whether what is seen is of this format, sound or not; nothing is read.
  virtual bool recognises(const Sight& sight) const = 0;
  // The place was recognised. metadata: receives what open_shared takes, or null. DATA_LOSS:
  // damaged; UNIMPLEMENTED: a newer version, or a part that is not known.
  virtual Result<std::shared_ptr<const OpenedCheckpoint>> open(
      const Sight& sight, std::vector<std::byte>* metadata) const = 0;
  // The same for who only saves it again in another format: what a format reads for that alone is
  // opened, too.
  virtual Result<std::shared_ptr<const OpenedCheckpoint>> open_to_convert(
      const Sight& sight) const {
    return open(sight, nullptr);
  }
  // What another rank has opened: its structure is checked again, for it has travelled; what was
  // proved of it (covers, no overlaps) is not. The failures of open.
  virtual Result<std::shared_ptr<const OpenedCheckpoint>> open_shared(
      const Location& location, std::span<const std::byte> metadata) const = 0;
  // Null when the format is only read.
  virtual const FormatWriter* writer() const { return nullptr; }
};

// What open read: enough to open the same checkpoint without looking at its storage.
struct StoredMetadata {
  std::string format_name;
  std::vector<std::byte> bytes;
};

class FormatTable {
 public:
  // With the formats of this library. The clock outlives the table.
  explicit FormatTable(const Clock& clock = real_clock());
  // Tried after those that are there.
  void add(std::shared_ptr<const Format> format);
  // Null when there is none of the name.
  const Format* find(std::string_view name) const;
  // The format that can be saved: UNIMPLEMENTED, naming those that can, for others.
  Result<const FormatWriter*> writer(std::string_view name) const;

  // Recognises the format and opens it. NOT_FOUND: nothing there (or an empty prefix);
  // INVALID_ARGUMENT: no known format, naming what was looked at; UNIMPLEMENTED: recognised but
  // only listed, or a newer version; DATA_LOSS: damaged. metadata: receives what was read, or null.
  // as: a format that is opened where it is recognised, though another one may come before it; "" =
  // the first one.
  Result<std::shared_ptr<const OpenedCheckpoint>> open(const Location& location,
                                                       StoredMetadata* metadata = nullptr,
                                                       std::string_view as = "") const;
  // As Format::open_to_convert; the failures of open.
  Result<std::shared_ptr<const OpenedCheckpoint>> open_to_convert(const Location& location) const;
  // By what another rank read; the failures of open, but NOT_FOUND.
  Result<std::shared_ptr<const OpenedCheckpoint>> open_shared(const Location& location,
                                                              const StoredMetadata& metadata) const;
  // The format of what lies there, or the native one when nothing says another. Failures of looking
  // are returned.
  Result<const Format*> format_at(const Location& location) const;

 private:
  using Opener =
      std::function<Result<std::shared_ptr<const OpenedCheckpoint>>(const Format&, const Sight&)>;
  Result<std::shared_ptr<const OpenedCheckpoint>> open_by(const Location& location,
                                                          std::string_view as,
                                                          const Opener& open_as) const;
  // Null when no format recognises it.
  const Format* recognise(const Sight& sight) const;
  Result<const Format*> marked(const Location& location) const;
  // The format of the name when the location may be opened as one; else null.
  const Format* wanted(std::string_view as, const Sight& sight) const;

  // Co-owned with who makes the runtime.
  std::vector<std::shared_ptr<const Format>> formats_;
};

}  // namespace shardwright::format
