// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/read_only_object.h"
#include "core/format/torch_dcp/derived_views_internal.h"

namespace shardwright::format::torch_dcp::internal {

uint64_t DerivedViews::add(DerivedItems items, std::string name) {
  const MutexLock lock(mutex_);
  const uint64_t begin = next_;
  if (items.size_bytes() == 0) return begin;
  next_ += items.size_bytes();
  parts_.emplace(begin, std::make_shared<const Part>(std::move(items), std::move(name)));
  return begin;
}

std::pair<std::shared_ptr<const DerivedViews::Part>, uint64_t> DerivedViews::part_at(
    uint64_t offset) const {
  const MutexLock lock(mutex_);
  const auto behind = parts_.upper_bound(offset);
  if (behind == parts_.begin()) return {};
  const auto& [begin, part] = *std::prev(behind);
  if (offset - begin >= part->items.size_bytes()) return {};
  return {part, begin};
}

// Parts are opened when they are read first.
class DerivedViewsFile final : public ReadOnlyObject {
 public:
  DerivedViewsFile(const DerivedViews& views, DerivedItems::OpenFile open_file, std::string name)
      : ReadOnlyObject(std::move(name)), views_(views), open_file_(std::move(open_file)) {}

  Status read_at(uint64_t offset, std::span<std::byte> data) override {
    while (!data.empty()) {
      const auto [part, begin] = views_.part_at(offset);
      if (part == nullptr)
        return out_of_range(fmt::format("{} bytes at {} of {}, where nothing is", data.size(),
                                        offset, escape_text(name())));
      const uint64_t left = part->items.size_bytes() - (offset - begin);
      const auto to = data.first(static_cast<size_t>(std::min<uint64_t>(data.size(), left)));
      SHW_RETURN_IF_ERROR(object_of(part, begin)->read_at(offset - begin, to));
      offset += to.size();
      data = data.subspan(to.size());
    }
    return {};
  }
  Result<storage::ObjectStat> stat() override {
    return unimplemented("a derived file that grows while it is read has no size");
  }

 private:
  struct OpenPart {
    std::shared_ptr<const DerivedViews::Part> part;  // co-owned with the views
    std::shared_ptr<storage::StorageObject> object;  // co-owned by reads that are under way
  };
  std::shared_ptr<storage::StorageObject> object_of(
      const std::shared_ptr<const DerivedViews::Part>& part, uint64_t begin) {
    const MutexLock lock(mutex_);
    OpenPart& open = open_[begin];
    if (open.object == nullptr) open = {part, part->items.open(open_file_, part->name)};
    return open.object;
  }

  const DerivedViews& views_;
  const DerivedItems::OpenFile open_file_;
  Mutex mutex_;
  std::map<uint64_t, OpenPart> open_ SHW_GUARDED_BY(mutex_);
};

std::unique_ptr<storage::StorageObject> DerivedViews::open(DerivedItems::OpenFile open_file,
                                                           std::string name) const {
  return std::make_unique<DerivedViewsFile>(*this, std::move(open_file), std::move(name));
}

}  // namespace shardwright::format::torch_dcp::internal
