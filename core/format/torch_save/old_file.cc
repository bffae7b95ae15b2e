// SPDX-License-Identifier: Apache-2.0
//
// The pickles lie one behind the other and nothing says how long they are, so the beginning of the
// file is read in growing pieces until all five are there. Sizes of storages are counted in
// elements, whose dtype only the value's pickle knows.
#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/format/archive/torch_archive.h"
#include "core/format/archive/torch_tensor.h"
#include "core/format/torch_save/old_file_internal.h"

namespace shardwright::format::torch_save {

bool is_old_file(std::span<const std::byte> head) {
  constexpr std::string_view kMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e",
                                    internal::kOldMagicBytes);
  return head.size() >= kMagic.size() &&
         std::memcmp(head.data(), kMagic.data(), kMagic.size()) == 0;
}

namespace internal {
namespace {

using archive::PickleCursor;
using archive::PickleData;
using archive::PickleKind;
using archive::PickleRef;

constexpr uint64_t kFirstReadBytes = uint64_t{1} << 20;
constexpr uint64_t kReadGrowth = 8;
constexpr int64_t kProtocolVersion = 1001;
constexpr size_t kPickles = 5;  // magic, protocol, system, value, keys

Status damaged(const archive::ArchiveBytes& bytes, uint64_t offset, std::string_view what) {
  return data_loss(fmt::format("file '{}': {} at {}", escape_text(bytes.file), what, offset))
      .with_detail("file", bytes.file)
      .with_detail("offset", fmt::to_string(offset));
}

// The first pickles of a file, and how much of it they are.
struct Pickles {
  std::vector<std::byte> head;
  std::array<uint64_t, kPickles + 1> begins{};

  std::span<const std::byte> at(size_t i) const {
    return std::span(head).subspan(begins[i], begins[i + 1] - begins[i]);
  }
};

Result<PickleData> read_one(std::span<const std::byte> input, std::string_view file,
                            uint64_t* end = nullptr) {
  archive::PickleOptions options;
  options.file = file;
  options.vocabulary = archive::torch_vocabulary();
  return archive::read_pickle(input, options, end);
}

// Reads on while a pickle seems to go on behind what was read: its failure moves with the end.
Result<Pickles> read_pickles(const archive::ArchiveBytes& bytes) {
  Pickles found;
  std::string last_failure;
  const uint64_t most = std::min(bytes.size_bytes, archive::kMaxTorchPickleBytes);
  for (uint64_t size = std::min(kFirstReadBytes, most);;
       size = std::min(size * kReadGrowth, most)) {
    found.head.resize(static_cast<size_t>(size));
    SHW_RETURN_IF_ERROR(bytes.read_range(0, found.head, "its pickles"));
    Status status;
    for (size_t i = 0; i < kPickles && status.ok(); ++i) {
      uint64_t end = 0;
      const auto input = std::span<const std::byte>(found.head).subspan(found.begins[i]);
      status = read_one(input, bytes.file, &end).status();
      found.begins[i + 1] = found.begins[i] + end;
    }
    if (status.ok()) return found;
    const std::string failure(status.message());
    if (status.code() != StatusCode::kDataLoss || size == most || failure == last_failure)
      return status;
    last_failure = failure;
  }
}

Status check_beginning(const archive::ArchiveBytes& bytes, const Pickles& pickles) {
  SHW_ASSIGN_OR_RETURN(const PickleData protocol, read_one(pickles.at(1), bytes.file));
  if (protocol.kind(protocol.root()) != PickleKind::kInteger ||
      protocol.integer(protocol.root()) != kProtocolVersion)
    return unimplemented(fmt::format("file '{}' is of an unknown version of torch.save",
                                     escape_text(bytes.file)))
        .with_detail("file", bytes.file);
  SHW_ASSIGN_OR_RETURN(const PickleData system, read_one(pickles.at(2), bytes.file));
  if (system.kind(system.root()) != PickleKind::kDict)
    return damaged(bytes, pickles.begins[2], "the facts of its system are no dict");
  PickleCursor pairs = system.pairs(system.root());
  for (PickleRef key, value; pairs.next(&key) && pairs.next(&value);) {
    const bool is_order =
        system.kind(key) == PickleKind::kText && system.text(key) == "little_endian";
    if (is_order && system.kind(value) == PickleKind::kBool && !system.boolean(value))
      return unimplemented(
                 fmt::format("file '{}' has big-endian numbers; only little-endian ones can be "
                             "read",
                             escape_text(bytes.file)))
          .with_detail("file", bytes.file);
  }
  return {};
}

// Bytes of one element by the key of its storage, from every storage that the value names.
class ElementSizes {
 public:
  ElementSizes(const PickleData& data, std::string_view file) : data_(data), file_(file) {}

  Status collect() {
    later_.push_back(data_.root());
    while (!later_.empty()) {
      const PickleRef value = later_.back();
      later_.pop_back();
      if (!is_looked_into(value) || !seen_.insert(value.bits).second) continue;
      if (data_.kind(value) == PickleKind::kPersistent) {
        SHW_ASSIGN_OR_RETURN(const archive::TorchStorage storage,
                             archive::torch_storage(data_, value, file_));
        sizes_[std::string(storage.key)] = static_cast<uint64_t>(dtype_bits(storage.dtype) / 8);
      } else {
        look_into(value);
      }
    }
    return {};
  }
  const uint64_t* find(const std::string& key) const {
    const auto found = sizes_.find(key);
    return found == sizes_.end() ? nullptr : &found->second;
  }

 private:
  bool is_looked_into(PickleRef value) const {
    switch (data_.kind(value)) {
      case PickleKind::kTuple:
      case PickleKind::kList:
      case PickleKind::kDict:
      case PickleKind::kSet:
      case PickleKind::kFrozenSet:
      case PickleKind::kRecord:
      case PickleKind::kObject:
      case PickleKind::kPersistent:
        return true;
      default:
        return false;
    }
  }

  void look_into(PickleRef value) {
    switch (data_.kind(value)) {
      case PickleKind::kTuple:
      case PickleKind::kFrozenSet:
        return add(data_.tuple(value));
      case PickleKind::kRecord:
        return add(data_.fields(value));
      case PickleKind::kList:
      case PickleKind::kSet:
        return add(data_.parts(value));
      case PickleKind::kDict:
        return add(data_.pairs(value));
      default:
        break;
    }
    add(data_.parts(value));
    add(data_.pairs(value));
    for (const PickleRef part : {data_.callable(value), data_.arguments(value),
                                 data_.keywords(value), data_.state(value)}) {
      if (!part.is_absent()) later_.push_back(part);
    }
  }
  void add(std::span<const PickleRef> parts) {
    later_.insert(later_.end(), parts.begin(), parts.end());
  }
  void add(PickleCursor parts) {
    for (PickleRef part; parts.next(&part);) later_.push_back(part);
  }

  const PickleData& data_;
  std::string_view file_;
  std::vector<PickleRef> later_;
  std::unordered_set<uint32_t> seen_;
  std::unordered_map<std::string, uint64_t> sizes_;
};

// One storage behind the other, each behind the count of its elements.
Status take_storages(const archive::ArchiveBytes& bytes, const Pickles& pickles,
                     const ElementSizes& sizes, StoredValue* stored) {
  SHW_ASSIGN_OR_RETURN(const PickleData keys, read_one(pickles.at(4), bytes.file));
  if (keys.kind(keys.root()) != PickleKind::kList)
    return damaged(bytes, pickles.begins[4], "the keys of its storages are no list");
  uint64_t offset = pickles.begins[kPickles];
  PickleCursor parts = keys.parts(keys.root());
  std::unordered_set<std::string_view> seen;
  for (PickleRef part; parts.next(&part);) {
    if (keys.kind(part) != PickleKind::kText || !seen.insert(keys.text(part)).second)
      return damaged(bytes, pickles.begins[4], "the keys of its storages are no texts, each once");
    StorageRecord record;
    record.key = std::string(keys.text(part));
    const uint64_t* const element_bytes = sizes.find(record.key);
    if (element_bytes == nullptr)
      return damaged(bytes, offset,
                     fmt::format("storage '{}', which nothing in its value names",
                                 escape_text(record.key, 64)));
    int64_t count = 0;
    SHW_RETURN_IF_ERROR(bytes.read_range(offset, std::as_writable_bytes(std::span(&count, 1)),
                                         "the size of a storage"));
    record.offset = offset + sizeof(count);
    uint64_t end = 0;
    if (count < 0 ||
        !checked_multiply(static_cast<uint64_t>(count), *element_bytes, &record.size_bytes) ||
        !checked_add(record.offset, record.size_bytes, &end) || end > bytes.size_bytes)
      return damaged(bytes, offset,
                     fmt::format("storage '{}' of {} elements leaves the file",
                                 escape_text(record.key, 64), count));
    offset = end;
    stored->storages.push_back(std::move(record));
  }
  return {};
}

}  // namespace

Status read_old_file(const archive::ArchiveBytes& bytes, StoredValue* stored) {
  SHW_ASSIGN_OR_RETURN(const Pickles pickles, read_pickles(bytes));
  SHW_RETURN_IF_ERROR(check_beginning(bytes, pickles));
  const auto value = pickles.at(3);
  stored->pickle.assign(value.begin(), value.end());
  SHW_ASSIGN_OR_RETURN(const PickleData data, read_one(stored->pickle, bytes.file));
  ElementSizes sizes(data, bytes.file);
  SHW_RETURN_IF_ERROR(sizes.collect());
  return take_storages(bytes, pickles, sizes, stored);
}

}  // namespace internal
}  // namespace shardwright::format::torch_save
