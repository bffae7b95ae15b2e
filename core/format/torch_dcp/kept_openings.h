// SPDX-License-Identifier: Apache-2.0
//
// KeptOpenings: checkpoints that were opened, for whoever opens them again. What lay in a directory
// is told by the names, sizes, inodes and times of the files that opening looks at. The time of the
// last change cannot be set by a program, so a directory that looks the same is the same, unless a
// file was changed twice within one tick of the file system's clock: nothing is kept of a directory
// in which something has changed shortly before. Thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/digest128.h"
#include "core/base/result.h"
#include "core/concurrency/cancellation.h"
#include "core/concurrency/mutex.h"
#include "core/format/opened_checkpoint.h"

namespace shardwright::format::torch_dcp {

// Names directly in a directory, as one listing has them.
using DirectoryListing = std::map<std::string, storage::ObjectStat, std::less<>>;
Result<DirectoryListing> list_directory(const Location& location);

class KeptOpenings {
 public:
  // More than file systems count their times in.
  static constexpr int64_t kSettledNs = int64_t{2} * 1000 * 1000 * 1000;
  static constexpr uint64_t kMostBytes = uint64_t{256} << 20;  // of all that are kept

  // What was seen of a place before anything of it was read.
  struct Seen {
    std::string path;
    Digest128 files{};
  };

  explicit KeptOpenings(const Clock& clock) : clock_(clock) {}

  int64_t now_ns() const { return clock_.unix_ns(); }
  // indexes: those that will be read; now_ns: before the listing was made. nullopt: the storage
  // does not tell enough of its files, or they have changed shortly before.
  static std::optional<Seen> see(const Location& location, std::span<const std::string> indexes,
                                 const DirectoryListing& listing, int64_t now_ns);
  // What was opened of the same files; null = it is not kept. Forgets what the path had before.
  std::shared_ptr<const OpenedCheckpoint> find(const Seen& seen) SHW_EXCLUDES(mutex_);
  // bytes: about, in memory. Those that were used longest ago go.
  void keep(Seen seen, uint64_t bytes, std::shared_ptr<const OpenedCheckpoint> opened)
      SHW_EXCLUDES(mutex_);

 private:
  struct Kept {
    Seen seen;
    uint64_t bytes = 0;
    std::shared_ptr<const OpenedCheckpoint> opened;  // co-owned by who opened it
  };

  const Clock& clock_;
  Mutex mutex_;
  std::list<Kept> kept_ SHW_GUARDED_BY(mutex_);  // the last used first
};

}  // namespace shardwright::format::torch_dcp
