// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a pickle: read as data and with a vocabulary, and scanned. Every value of what is
// read can be looked at, and none takes more memory than its bytes explain. What one way of reading
// takes the scan takes too, with the same globals.
#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/format/archive/pickle_reader.h"
#include "core/format/archive/pickle_scan.h"

namespace {

using namespace shardwright::format::archive;  // NOLINT: a fuzz target is one file

constexpr std::string_view kFields[] = {"fqn", "index", "offset"};
constexpr PickleClass kVocabulary[] = {
    {"torch.distributed.checkpoint.metadata", "MetadataIndex", kPickleInstance, kFields},
    {"torch.distributed.checkpoint.metadata", "_MEM_FORMAT_ENCODING", kPickleCall | kPickleEnum},
    {"torch", "Size", kPickleCall},
    {"torch", "float32"},
    {"builtins", "getattr", kPickleGetattr},
    {"collections", "OrderedDict", kPickleCall},
};
constexpr uint64_t kFreeBytes = uint64_t{1} << 20;
constexpr uint64_t kBytesPerByte = 32;

class Walker {
 public:
  explicit Walker(const PickleData& data) : data_(data) { todo_.push_back(data.root()); }

  void walk() {
    while (!todo_.empty()) {
      const PickleRef value = todo_.back();
      todo_.pop_back();
      if (seen_.insert(value.bits).second) look_at(value);
    }
  }

 private:
  void add(std::span<const PickleRef> values) {
    todo_.insert(todo_.end(), values.begin(), values.end());
  }
  void add(PickleCursor cursor) {
    PickleRef value;
    while (cursor.next(&value)) todo_.push_back(value);
  }

  void look_at(PickleRef value) {
    switch (data_.kind(value)) {
      case PickleKind::kText:
        return touch(data_.text(value));
      case PickleKind::kBytes:
      case PickleKind::kByteArray:
      case PickleKind::kLongInteger: {
        const auto bytes = data_.bytes(value);
        return touch({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      }
      case PickleKind::kInteger:
        sum_ = sum_ + static_cast<uint64_t>(data_.integer(value));
        return;
      case PickleKind::kTuple:
      case PickleKind::kFrozenSet:
        return add(data_.tuple(value));
      case PickleKind::kList:
      case PickleKind::kSet:
      case PickleKind::kDict:
        return add(data_.parts(value));
      case PickleKind::kGlobal:
        return touch(data_.global(value).module);
      case PickleKind::kPersistent:
        return todo_.push_back(data_.target(value));
      case PickleKind::kRecord:
        if (data_.known(value) < 0) __builtin_trap();
        add(data_.fields(value));
        return todo_.push_back(data_.state(value));
      case PickleKind::kObject:
        for (const PickleRef part : {data_.callable(value), data_.arguments(value),
                                     data_.keywords(value), data_.state(value)})
          todo_.push_back(part);
        add(data_.parts(value));
        return add(data_.pairs(value));
      default:
        return;
    }
  }
  void touch(std::string_view text) {
    for (const char each : text) sum_ = sum_ + static_cast<uint8_t>(each);
  }

  const PickleData& data_;
  std::vector<PickleRef> todo_;
  std::unordered_set<uint32_t> seen_;
  volatile uint64_t sum_ = 0;
};

// Calls of what is computed are listed, and are no global.
size_t named(const PickleScan& scan) {
  return static_cast<size_t>(std::ranges::count_if(
      scan.imports, [](const PickleImport& import) { return import.module != kComputedModule; }));
}

void read(std::span<const std::byte> input, const PickleScan& scan, const PickleOptions& options) {
  uint64_t end = 0;
  const auto data = read_pickle(input, options, &end);
  if (!data.ok()) return;
  if (!scan.ended.ok() || scan.end != end || named(scan) != data->globals().size())
    __builtin_trap();
  if (data->arena_bytes() > kFreeBytes + kBytesPerByte * input.size()) __builtin_trap();
  Walker(*data).walk();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  const PickleScan scan = scan_pickle(input, "f");
  PickleOptions options;
  options.file = "f";
  read(input, scan, options);
  options.vocabulary = kVocabulary;
  read(input, scan, options);
  options.calls = PickleCalls::kKnownOnly;
  read(input, scan, options);
  return 0;
}
