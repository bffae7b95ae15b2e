// SPDX-License-Identifier: Apache-2.0
#include "core/format/safetensors/hf_index.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/format/json_events.h"
#include "core/storage/storage.h"

namespace shardwright::format::safetensors {
namespace {

constexpr size_t kMaxIndexDepth = 32;

Status wrong(std::string_view file, std::string_view what) {
  return data_loss(fmt::format("index '{}': {}", escape_text(file), what))
      .with_detail("file", file)
      .with_detail("hint", "copy or download the directory again, or open its files one by one");
}

// What both texts have in common: the keys that lead to a value.
class KeyedSink : public JsonSink {
 public:
  explicit KeyedSink(std::string_view file) : file_(file) {}

  Status open(bool is_object) final {
    if (depth_ > 0) SHW_RETURN_IF_ERROR(opened(is_object));
    ++depth_;
    keys_.resize(std::max(keys_.size(), depth_));
    return {};
  }
  Status close() final {
    --depth_;
    return closed();
  }
  Status key(std::string&& name) final {
    keys_[depth_ - 1] = std::move(name);
    return named();
  }

 protected:
  virtual Status opened(bool is_object) = 0;  // a container that is not the whole text
  virtual Status closed() { return {}; }
  virtual Status named() { return {}; }

  std::string_view file() const { return file_; }
  size_t depth() const { return depth_; }  // open containers
  const std::string& key_at(size_t level) const { return keys_[level]; }
  std::string take_key_at(size_t level) { return std::move(keys_[level]); }

 private:
  std::string_view file_;
  size_t depth_ = 0;
  std::vector<std::string> keys_;
};

class IndexSink final : public KeyedSink {
 public:
  using KeyedSink::KeyedSink;

  Status natural(uint64_t value) override {
    if (in_metadata() && key_at(1) == "total_size") {
      index_.total_size = value;
      return {};
    }
    return value_of(fmt::to_string(value), "a number");
  }
  Status text(std::string&& value) override {
    if (in_map()) return add_tensor(std::move(value));
    return value_of(std::move(value), "a text");
  }
  Status other(std::string_view type) override { return value_of("", type); }

  Result<HfIndex> finish() && {
    if (!has_map_) return wrong(file(), "it has no weight_map");
    number_files();
    return std::move(index_);
  }

 private:
  bool in_map() const { return depth() == 2 && key_at(0) == "weight_map"; }
  bool in_metadata() const {
    return depth() == 2 && metadata_is_object_ && key_at(0) == "metadata";
  }

  Status opened(bool is_object) override {
    if (depth() == 1 && key_at(0) == "weight_map") {
      if (!is_object) return wrong(file(), "its weight_map is a list, not an object");
      if (std::exchange(has_map_, true)) return wrong(file(), "it has weight_map twice");
    }
    if (depth() == 1 && key_at(0) == "metadata") metadata_is_object_ = is_object;
    if (in_map()) return odd_file(is_object ? "an object" : "a list");
    return {};
  }

  Status value_of(std::string value, std::string_view type) {
    if (in_map()) return odd_file(type);
    if (depth() == 1 && key_at(0) == "weight_map")
      return wrong(file(), fmt::format("its weight_map is {}, not an object", type));
    if (in_metadata() && !value.empty())
      index_.metadata.insert_or_assign(take_key_at(1), std::move(value));
    return {};
  }

  Status odd_file(std::string_view type) const {
    return wrong(file(), fmt::format("weight_map gives {} as the file of tensor '{}'", type,
                                     shown(key_at(1))))
        .with_detail("tensor", key_at(1));
  }

  Status add_tensor(std::string&& name) {
    const bool backslash = name.find('\\') != std::string::npos;
    const Status key = storage::check_key(name);
    if (!key.ok() || backslash) {
      return wrong(file(),
                   fmt::format("weight_map places tensor '{}' in '{}', which is no path inside "
                               "the directory{}",
                               shown(key_at(1)), shown(name),
                               backslash ? " (it has a backslash)" : ""))
          .with_detail("tensor", key_at(1))
          .with_detail("unsafe", "path escape");
    }
    const auto number =
        numbers_.try_emplace(std::move(name), static_cast<uint32_t>(numbers_.size())).first;
    const auto added = index_.file_of.try_emplace(take_key_at(1), number->second);
    if (added.second) return {};
    return wrong(file(), "weight_map has a tensor twice");
  }

  Status named() override {
    if (!in_map()) return {};
    if (!index_.file_of.contains(key_at(1))) return {};
    return wrong(file(), fmt::format("weight_map has tensor '{}' twice", shown(key_at(1))))
        .with_detail("tensor", key_at(1));
  }

  // Files got their numbers as they came; they become ascending.
  void number_files() {
    std::vector<uint32_t> now(numbers_.size());
    for (const auto& [name, number] : numbers_) {
      now[number] = static_cast<uint32_t>(index_.files.size());
      index_.files.push_back(name);
    }
    for (auto& [name, number] : index_.file_of) number = now[number];
  }

  HfIndex index_;
  std::map<std::string, uint32_t> numbers_;
  bool has_map_ = false;
  bool metadata_is_object_ = false;
};

// {"name": {"saved_offsets": [0, 4]}, ...}
class ShardingSink final : public KeyedSink {
 public:
  using KeyedSink::KeyedSink;

  Status natural(uint64_t value) override {
    if (!in_offsets()) return scalar("a number");
    int64_t offset = 0;
    if (!checked_cast(value, &offset) || count_ == offsets_.size())
      return odd("offsets that no tensor has");
    offsets_[count_++] = offset;
    return {};
  }
  Status text(std::string&&) override { return scalar("a text"); }
  Status other(std::string_view type) override { return scalar(type); }

  ByName<Dims> take() { return std::move(by_name_); }

 private:
  bool in_offsets() const { return depth() == 3 && key_at(1) == "saved_offsets"; }

  Status opened(bool is_object) override {
    if (depth() == 1 && !is_object) return odd("a list");
    if (depth() == 2 && key_at(1) == "saved_offsets") {
      if (is_object) return odd("an object as saved_offsets");
      if (std::exchange(has_offsets_, true)) return odd("saved_offsets twice");
      count_ = 0;
    }
    if (in_offsets()) return odd("a list in saved_offsets");
    return {};
  }

  Status closed() override {
    if (depth() != 1) return {};
    if (!std::exchange(has_offsets_, false)) return odd("no saved_offsets");
    if (by_name_.try_emplace(key_at(0), Dims(std::span(offsets_).first(count_))).second) return {};
    return odd("two entries");
  }

  Status scalar(std::string_view type) const {
    if (depth() == 1) return odd(type);
    if (in_offsets() || (depth() == 2 && key_at(1) == "saved_offsets"))
      return odd(fmt::format("{} in saved_offsets", type));
    return {};
  }

  Status odd(std::string_view what) const {
    return data_loss(fmt::format("file '{}': its {} has {} for tensor '{}'", escape_text(file()),
                                 kShardingKey, what, shown(key_at(0))))
        .with_detail("file", file())
        .with_detail("tensor", key_at(0));
  }

  std::array<int64_t, kMaxTensorRank> offsets_{};
  size_t count_ = 0;
  bool has_offsets_ = false;
  ByName<Dims> by_name_;
};

}  // namespace

Result<HfIndex> decode_index(std::string_view text, std::string_view file) {
  IndexSink sink(file);
  Status read = read_json(text, kMaxIndexDepth, &sink);
  if (!read.ok() && read.detail("file").empty()) read = wrong(file, read.message());
  SHW_RETURN_IF_ERROR(read);
  return std::move(sink).finish();
}

Result<ByName<Dims>> decode_sharding(std::string_view text, std::string_view file) {
  ShardingSink sink(file);
  Status read = read_json(text, kMaxIndexDepth, &sink);
  if (!read.ok() && read.detail("file").empty()) {
    read = data_loss(fmt::format("file '{}': its {}: {}", escape_text(file), kShardingKey,
                                 read.message()))
               .with_detail("file", file);
  }
  SHW_RETURN_IF_ERROR(read);
  return sink.take();
}

}  // namespace shardwright::format::safetensors
