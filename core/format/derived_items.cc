// SPDX-License-Identifier: Apache-2.0
//
// A range of a view's row-major bytes needs the stored bytes from its first to its last element.
// When these are little more than the range, they are read and gathered; when a view is read across
// its storage (a transposed matrix), all that it spans is read once and kept until another view is
// read.
#include "core/format/derived_items.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/copy_bytes.h"
#include "core/base/text.h"
#include "core/concurrency/mutex.h"
#include "core/format/read_only_object.h"
#include "core/integrity/crc32.h"
#include "core/tensor/strided_copy.h"

namespace shardwright::format {
namespace {

// What may be read for a range beyond its own bytes before all of a view is kept instead.
constexpr uint64_t kFreeSpanBytes = uint64_t{1} << 20;
constexpr uint64_t kSpanOverRange = 4;
// What may be kept of a view: a file may say that two elements lie at its ends.
constexpr uint64_t kMaxKeptBytes = uint64_t{1} << 30;

// A part of a view: what a range of its row-major bytes lies in.
struct ViewPart {
  uint64_t first_element = 0;  // of the source
  Dims shape;
  Dims strides;
  uint64_t begin = 0;  // of the range in the part's bytes
};

uint64_t span_of(const Dims& shape, const Dims& strides) {
  uint64_t last = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    last += static_cast<uint64_t>(shape[d] - 1) * static_cast<uint64_t>(strides[d]);
  return last + 1;
}

// Fixes the leading indices that are the same for all of the range, and narrows the first that is
// not.
ViewPart part_of(const StridedSource& view, uint64_t begin, uint64_t size_bytes) {
  ViewPart part;
  part.begin = begin;
  uint64_t inner = view.element_bytes;
  for (const int64_t extent : view.shape) inner *= static_cast<uint64_t>(extent);
  for (size_t d = 0; d < view.shape.size(); ++d) {
    inner /= static_cast<uint64_t>(view.shape[d]);
    const uint64_t first = part.begin / inner;
    const uint64_t last = (part.begin + size_bytes - 1) / inner;
    part.first_element += first * static_cast<uint64_t>(view.strides[d]);
    part.begin -= first * inner;
    if (first == last) continue;
    part.shape = Dims(view.shape.span().subspan(d));
    part.strides = Dims(view.strides.span().subspan(d));
    part.shape[0] = static_cast<int64_t>(last - first + 1);
    break;
  }
  return part;
}

void gather_part(const ViewPart& part, uint64_t element_bytes, std::byte* first_element,
                 std::span<std::byte> to) {
  gather({first_element, element_bytes, part.shape, part.strides}, part.begin, to);
}

}  // namespace

bool is_packed(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  if (element_count_of(shape) == 0) return true;
  int64_t expected = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

Result<uint64_t> elements_spanned(std::span<const int64_t> shape,
                                  std::span<const int64_t> strides) {
  SHW_ASSIGN_OR_RETURN(const int64_t count, checked_element_count(shape));
  uint64_t last = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (strides[d] < 0)
      return invalid_argument(fmt::format("stride {} of dimension {} is negative", strides[d], d));
    uint64_t reach = 0;
    if (count > 0 && (!checked_multiply(static_cast<uint64_t>(shape[d] - 1),
                                        static_cast<uint64_t>(strides[d]), &reach) ||
                      !checked_add(last, reach, &last)))
      return invalid_argument("strides reach beyond what can be counted");
  }
  if (count == 0) return uint64_t{0};
  uint64_t elements = 0;
  if (!checked_add(last, uint64_t{1}, &elements))
    return invalid_argument("strides reach beyond what can be counted");
  return elements;
}

// The file that does not exist.
class DerivedObject final : public ReadOnlyObject {
 public:
  DerivedObject(const DerivedItems& items, DerivedItems::OpenFile open_file, std::string name)
      : ReadOnlyObject(std::move(name)), items_(items), open_file_(std::move(open_file)) {}

  Status read_at(uint64_t offset, std::span<std::byte> data) override {
    if (offset > items_.size_bytes() || data.size() > items_.size_bytes() - offset)
      return out_of_range(fmt::format("{} bytes at {} of {} ({} bytes)", data.size(), offset,
                                      escape_text(name()), items_.size_bytes()));
    while (!data.empty()) {
      const DerivedItems::Item& item = items_.item_at(offset);
      const uint64_t begin = offset - item.offset;
      const auto part =
          data.first(static_cast<size_t>(std::min<uint64_t>(data.size(), item.size_bytes - begin)));
      if (item.is_strided) {
        SHW_RETURN_IF_ERROR(read_view(item.number, begin, part));
      } else {
        copy_bytes(std::span(items_.memory_).subspan(item.number + begin, part.size()), part);
      }
      offset += part.size();
      data = data.subspan(part.size());
    }
    return {};
  }
  Result<storage::ObjectStat> stat() override {
    storage::ObjectStat stat;
    stat.size_bytes = items_.size_bytes();
    return stat;
  }

 private:
  using Bytes = std::vector<std::byte>;

  Status read_view(size_t number, uint64_t begin, std::span<std::byte> to) {
    const StridedSource& view = items_.sources_[number];
    const ViewPart part = part_of(view, begin, to.size());
    const uint64_t bytes = view.element_bytes;
    const uint64_t span_bytes = span_of(part.shape, part.strides) * bytes;
    if (span_bytes / kSpanOverRange <= to.size() + kFreeSpanBytes) {
      Bytes span(static_cast<size_t>(span_bytes));
      SHW_RETURN_IF_ERROR(read_file(view.file, view.offset + part.first_element * bytes, span));
      if (span_bytes == span_of(view.shape, view.strides) * bytes)
        SHW_RETURN_IF_ERROR(check_span(view, span));
      gather_part(part, bytes, span.data(), to);
      return {};
    }
    SHW_ASSIGN_OR_RETURN(const std::shared_ptr<Bytes> kept, whole_view(number));
    gather_part(part, bytes, kept->data() + part.first_element * bytes, to);
    return {};
  }

  Result<std::shared_ptr<Bytes>> whole_view(size_t number) {
    const MutexLock lock(kept_mutex_);
    if (kept_ != nullptr && kept_number_ == number) return kept_;
    const StridedSource& view = items_.sources_[number];
    const uint64_t bytes = span_of(view.shape, view.strides) * view.element_bytes;
    if (bytes > kMaxKeptBytes) return too_wide(view, bytes);
    kept_ = nullptr;
    auto fresh = std::make_shared<Bytes>(static_cast<size_t>(bytes));
    SHW_RETURN_IF_ERROR(read_file(view.file, view.offset, *fresh));
    SHW_RETURN_IF_ERROR(check_span(view, *fresh));
    kept_ = fresh;
    kept_number_ = number;
    return fresh;
  }

  Status check_span(const StridedSource& view, std::span<const std::byte> bytes) const {
    if (view.crc == 0) return {};
    const uint32_t found = integrity::crc32(0, bytes);
    if (found == view.crc) return {};
    return data_loss(fmt::format("file '{}': CRC-32 of the {} bytes that a view spans at {} is "
                                 "{:08x}, expected {:08x}",
                                 escape_text(name()), bytes.size(), view.offset, found, view.crc))
        .with_detail("file", name())
        .with_detail("offset", fmt::to_string(view.offset))
        .with_detail("length", fmt::to_string(bytes.size()))
        .with_detail("expected", fmt::format("{:08x}", view.crc))
        .with_detail("found", fmt::format("{:08x}", found));
  }

  Status too_wide(const StridedSource& view, uint64_t bytes) const {
    return resource_exhausted(
               "memory",
               fmt::format("{}: a view of shape [{}] and strides [{}] spans {} bytes of its file "
                           "from {}, more than the {} that are read at once",
                           escape_text(name()), fmt::join(view.shape, ","),
                           fmt::join(view.strides, ","), bytes, view.offset, kMaxKeptBytes))
        .with_detail("file", name())
        .with_detail("offset", fmt::to_string(view.offset))
        .with_detail("hint", "read larger parts of the tensor at a time, or save it contiguous");
  }

  // One at a time: not every storage takes reads of one object together.
  Status read_file(uint32_t file, uint64_t offset, std::span<std::byte> data) {
    const MutexLock lock(files_mutex_);
    std::unique_ptr<storage::StorageObject>& object = files_[file];
    if (object == nullptr) {
      SHW_ASSIGN_OR_RETURN(object, open_file_(file));
    }
    return object->read_at(offset, data);
  }

  const DerivedItems& items_;
  const DerivedItems::OpenFile open_file_;
  Mutex kept_mutex_;  // held while a view is read, so that it is read once
  // Co-owned by reads that gather from it.
  std::shared_ptr<Bytes> kept_ SHW_GUARDED_BY(kept_mutex_);
  size_t kept_number_ SHW_GUARDED_BY(kept_mutex_) = 0;
  Mutex files_mutex_;  // taken behind kept_mutex_
  std::map<uint32_t, std::unique_ptr<storage::StorageObject>> files_ SHW_GUARDED_BY(files_mutex_);
};

uint64_t DerivedItems::add_bytes(std::span<const std::byte> bytes) {
  const uint64_t offset = next_;
  if (bytes.empty()) return offset;
  items_.push_back({offset, bytes.size(), memory_.size(), false});
  memory_.insert(memory_.end(), bytes.begin(), bytes.end());
  next_ += bytes.size();
  return offset;
}

uint64_t DerivedItems::add_strided(StridedSource source) {
  const uint64_t offset = next_;
  const uint64_t size =
      static_cast<uint64_t>(element_count_of(source.shape)) * source.element_bytes;
  if (size == 0) return offset;
  items_.push_back({offset, size, sources_.size(), true});
  sources_.push_back(std::move(source));
  next_ += size;
  return offset;
}

const DerivedItems::Item& DerivedItems::item_at(uint64_t offset) const {
  return *--std::ranges::upper_bound(items_, offset, {}, &Item::offset);
}

std::unique_ptr<storage::StorageObject> DerivedItems::open(OpenFile open_file,
                                                           std::string name) const {
  return std::make_unique<DerivedObject>(*this, std::move(open_file), std::move(name));
}

}  // namespace shardwright::format
