// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/buckets.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/text.h"

namespace shardwright::reshard {
namespace {

using Json = nlohmann::ordered_json;

// A name cut at its fixed words, from the left.
class NameParts {
 public:
  explicit NameParts(std::string_view rest) : rest_(rest) {}
  bool word(std::string_view wanted) {
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(wanted.size());
    return true;
  }
  std::optional<uint32_t> number() {
    uint32_t value = 0;
    const auto [end, failed] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (failed != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }
  std::optional<std::string_view> until(std::string_view word) {
    const size_t end = rest_.find(word);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view part = rest_.substr(0, end);
    rest_.remove_prefix(end + word.size());
    return part;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

using Key = std::tuple<std::string, uint32_t, uint32_t, std::string, uint32_t>;

struct Parsed {
  Key key;
  std::string state;
};

std::optional<Parsed> parse_name(std::string_view name) {
  NameParts parts(name);
  const auto prefix = parts.until(kOfGroup);
  if (!prefix.has_value()) return std::nullopt;
  const auto group = parts.number();
  if (!group || !parts.word(".gbuf_idx_")) return std::nullopt;
  const auto buffer = parts.number();
  if (!buffer || !parts.word(".dtype_")) return std::nullopt;
  const auto dtypes = parts.until(".bucket_idx_");
  if (!dtypes) return std::nullopt;
  const auto number = parts.number();
  if (!number || !parts.word(".") || parts.rest().empty()) return std::nullopt;
  return Parsed{Key{std::string(*prefix), *group, *buffer, std::string(*dtypes), *number},
                std::string(parts.rest())};
}

Status in_bucket(const Bucket& bucket, std::string_view what) {
  return data_loss(fmt::format("bucket '{}': {}", escape_text(bucket.name()), what))
      .with_detail("tensor", bucket.name());
}

std::vector<int64_t> chunk_bounds(const plan::Catalog& catalog, size_t tensor) {
  const plan::TensorRecord& record = catalog.tensors[tensor];
  std::vector<int64_t> bounds{catalog.shape(tensor)[0]};
  for (uint64_t k = 0; k < record.chunk_count; ++k)
    bounds.push_back(catalog.chunk_box(record.chunk_begin + k).offsets[0]);
  std::ranges::sort(bounds);
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  return bounds;
}

Status finish(const plan::Catalog& catalog, Bucket* bucket) {
  const auto main = bucket->states.find(std::string(kMainState));
  if (main == bucket->states.end()) return in_bucket(*bucket, "there is no state 'param'");
  for (const auto& [state, tensor] : bucket->states) {
    const std::span<const int64_t> shape = catalog.shape(tensor);
    if (shape.size() != 1)
      return in_bucket(*bucket, fmt::format("state '{}' has {} dimensions", state, shape.size()));
    if (bucket->elements != 0 && shape[0] != bucket->elements)
      return in_bucket(*bucket, fmt::format("state '{}' has {} elements and others {}", state,
                                            shape[0], bucket->elements));
    bucket->elements = shape[0];
  }
  bucket->bounds = chunk_bounds(catalog, main->second);
  return {};
}

Status check_numbers(std::span<const Bucket> buckets) {
  for (size_t i = 0; i < buckets.size(); ++i) {
    const Bucket& bucket = buckets[i];
    const bool goes_on =
        i > 0 && buckets[i - 1].prefix == bucket.prefix && buckets[i - 1].group == bucket.group &&
        buckets[i - 1].buffer == bucket.buffer && buckets[i - 1].dtypes == bucket.dtypes;
    const uint32_t expected = goes_on ? buckets[i - 1].number + 1 : 0;
    if (bucket.number != expected)
      return in_bucket(bucket, fmt::format("number {} should come there", expected));
  }
  return {};
}

// [[{"$map": [[{"$tuple": [dtype, dtype]}, [sizes]]]}, ...]]: a list with one value, that has a
// dict for each buffer. Null where it says something else.
const Json* sizes_of(const Json& said, const Bucket& bucket) {
  if (!said.is_array() || said.size() != 1 || !said[0].is_array()) return nullptr;
  if (bucket.buffer >= said[0].size()) return nullptr;
  const Json& buffer = said[0][bucket.buffer];
  if (!buffer.is_object() || !buffer.contains("$map")) return nullptr;
  for (const Json& pair : buffer["$map"]) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_object()) return nullptr;
    const Json dtypes = pair[0].value("$tuple", Json());
    if (!dtypes.is_array() || dtypes.size() != 2 || !dtypes[0].is_string() ||
        !dtypes[1].is_string())
      return nullptr;
    const std::string text =
        fmt::format("({}, {})", dtypes[0].get<std::string>(), dtypes[1].get<std::string>());
    if (text == bucket.dtypes) return &pair[1];
  }
  return nullptr;
}

// What objects say of the sizes of buckets, where they say it in a way that is known. Buckets of a
// group come one after the other.
class SaidSizes {
 public:
  SaidSizes(const exec::Checkpoint& source, std::string_view key) : source_(source), key_(key) {}

  // Null: nothing.
  Result<const Json*> of(const Bucket& bucket) {
    std::string name = fmt::format("{}.{}/shard_0_1", bucket.group_name(), key_);
    const int64_t object = source_.index().find_object_of_any(name);
    const Json* found = nullptr;
    if (object < 0) return found;
    if (name != name_) {
      SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                           source_.read_object(static_cast<size_t>(object), {}));
      const auto* const begin = reinterpret_cast<const char*>(bytes.data());
      said_ = Json::parse(begin, begin + bytes.size(), nullptr, /*allow_exceptions=*/false);
      name_ = std::move(name);
    }
    const Json* const sizes = sizes_of(said_, bucket);
    if (sizes != nullptr && sizes->is_array() && bucket.number < sizes->size())
      found = &(*sizes)[bucket.number];
    return found;
  }
  const std::string& name() const { return name_; }

 private:
  const exec::Checkpoint& source_;
  const std::string_view key_;
  std::string name_;  // of the object that was read last
  Json said_;
};

Status check_sizes(const exec::Checkpoint& source, std::span<Bucket> buckets) {
  SaidSizes sizes(source, kSizes);
  SaidSizes padded(source, kPaddedSizes);
  for (Bucket& bucket : buckets) {
    SHW_ASSIGN_OR_RETURN(const Json* const with_pad, padded.of(bucket));
    if (with_pad != nullptr && with_pad->is_number_integer())
      bucket.padded = with_pad->get<int64_t>();
    SHW_ASSIGN_OR_RETURN(const Json* const size, sizes.of(bucket));
    if (size == nullptr) continue;
    if (size->is_number_integer() && size->get<int64_t>() == bucket.elements) continue;
    return in_bucket(bucket, fmt::format("it has {} elements, and '{}' says {}", bucket.elements,
                                         escape_text(sizes.name()), size->dump()));
  }
  return {};
}

}  // namespace

std::string group_name(std::string_view prefix, int64_t group) {
  return fmt::format("{}{}{}", prefix, kOfGroup, group);
}

std::string Bucket::group_name() const {
  return reshard::group_name(prefix, group);
}

std::string Bucket::name() const {
  return fmt::format("{}.gbuf_idx_{}.dtype_{}.bucket_idx_{}", group_name(), buffer, dtypes, number);
}

Result<std::vector<Bucket>> find_buckets(const exec::Checkpoint& source) {
  const plan::Catalog& catalog = source.catalog();
  std::map<Key, Bucket> found;
  for (size_t i = 0; i < catalog.tensors.size(); ++i) {
    std::optional<Parsed> parsed = parse_name(catalog.tensor_name(i));
    if (!parsed.has_value()) continue;
    Bucket& bucket = found[parsed->key];
    std::tie(bucket.prefix, bucket.group, bucket.buffer, bucket.dtypes, bucket.number) =
        parsed->key;
    bucket.states[parsed->state] = i;
  }
  std::vector<Bucket> buckets;
  for (auto& [key, bucket] : found) {
    SHW_RETURN_IF_ERROR(finish(catalog, &bucket));
    const std::string gathered = fmt::format("{}.param_state/shard_0_1", bucket.group_name());
    bucket.is_gathered = source.index().find_object_of_any(gathered) >= 0;
    buckets.push_back(std::move(bucket));
  }
  SHW_RETURN_IF_ERROR(check_numbers(buckets));
  SHW_RETURN_IF_ERROR(check_sizes(source, buckets));
  return buckets;
}

}  // namespace shardwright::reshard
