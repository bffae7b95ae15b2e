// SPDX-License-Identifier: Apache-2.0
//
// DerivedViews: the derived file of a checkpoint whose views become known while it is read: objects
// that were read when it was opened, then views in the order in which they were found. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/concurrency/mutex.h"
#include "core/format/derived_items.h"

namespace shardwright::format::torch_dcp::internal {

class DerivedViews {
 public:
  // Offset of the part in the file. name: of what the part is made of, for messages.
  uint64_t add(DerivedItems items, std::string name);
  // To be read by several threads; the views outlive it.
  std::unique_ptr<storage::StorageObject> open(DerivedItems::OpenFile open_file,
                                               std::string name) const;

 private:
  friend class DerivedViewsFile;
  struct Part {
    explicit Part(DerivedItems made, std::string of)
        : items(std::move(made)), name(std::move(of)) {}
    const DerivedItems items;
    const std::string name;
  };
  // The part that has the byte, and where it begins.
  std::pair<std::shared_ptr<const Part>, uint64_t> part_at(uint64_t offset) const;

  mutable Mutex mutex_;
  // By where they begin; co-owned by open files.
  std::map<uint64_t, std::shared_ptr<const Part>> parts_ SHW_GUARDED_BY(mutex_);
  uint64_t next_ SHW_GUARDED_BY(mutex_) = 0;
};

}  // namespace shardwright::format::torch_dcp::internal
