// SPDX-License-Identifier: Apache-2.0
#include "core/format/safetensors/header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/format/json_events.h"
#include "core/format/safetensors/dtype_names.h"

namespace shardwright::format::safetensors {
namespace {

constexpr size_t kMaxHeaderDepth = 3;  // the header, an entry, its shape
constexpr std::string_view kHint =
    "copy or download the file again; if it stays so, write it again with its writer";

// Takes the events of a header.
class HeaderSink final : public JsonSink {
 public:
  HeaderSink(Header* header, std::string_view file) : header_(header), file_(file) {}

  Status open(bool is_object) override {
    switch (place_) {
      case Place::kOutside:
        place_ = Place::kHeader;  // it is an object: the text begins with '{'
        return {};
      case Place::kHeader:
        if (!is_object) return odd_value("a list");
        place_ = key_ == kMetadataKey ? Place::kMetadata : Place::kEntry;
        return begin_member();
      case Place::kMetadata:
        return odd_value(is_object ? "an object" : "a list");
      case Place::kEntry:
        return open_field(is_object);
      case Place::kShape:
      case Place::kOffsets:
        return odd_value(is_object ? "an object" : "a list");
      case Place::kIgnored:
        ++ignored_depth_;
        return {};
    }
    return internal_error("no such place in a header");
  }

  Status close() override {
    if (place_ == Place::kIgnored && --ignored_depth_ > 0) return {};
    const Place closed = std::exchange(place_, outer(place_));
    return closed == Place::kEntry ? end_entry() : Status();
  }

  Status key(std::string&& name) override {
    switch (place_) {
      case Place::kHeader:
        if (name.size() > kMaxNameBytes) {
          return wrong(fmt::format("a tensor has a name of {} bytes, more than {}", name.size(),
                                   kMaxNameBytes))
              .with_detail("limit", fmt::to_string(kMaxNameBytes));
        }
        key_ = std::move(name);
        return {};
      case Place::kMetadata:
        metadata_key_ = std::move(name);
        return {};
      case Place::kEntry:
        return begin_field(std::move(name));
      default:
        return {};  // inside of what is ignored
    }
  }

  Status text(std::string&& value) override {
    if (place_ == Place::kMetadata) {
      if (header_->metadata.try_emplace(metadata_key_, std::move(value)).second) return {};
      return wrong(fmt::format("{} has the key '{}' twice", kMetadataKey, shown(metadata_key_)));
    }
    if (place_ != Place::kEntry || field_ != Field::kDType) return scalar("a text");
    const std::optional<DType> dtype = dtype_of(value);
    if (dtype.has_value()) {
      entry_.dtype = *dtype;
      return {};
    }
    return unimplemented(fmt::format("file '{}': tensor '{}' has the dtype '{}', which is none of "
                                     "those that are known: {}",
                                     shown(file_), shown(key_), shown(value), known_dtypes()))
        .with_detail("file", file_)
        .with_detail("tensor", key_);
  }

  Status natural(uint64_t value) override {
    if (place_ == Place::kShape) {
      int64_t extent = 0;
      if (!checked_cast(value, &extent)) return wrong_tensor("a dimension exceeds 2^63 - 1");
      if (entry_.dimension_count == kMaxTensorRank) {
        return wrong_tensor(fmt::format("it has more than {} dimensions", kMaxTensorRank))
            .with_detail("limit", fmt::to_string(kMaxTensorRank));
      }
      ++entry_.dimension_count;
      header_->shapes.push_back(extent);
      return {};
    }
    if (place_ == Place::kOffsets) {
      if (offset_count_ == offsets_.size())
        return wrong_tensor("data_offsets has more than 2 numbers");
      offsets_[offset_count_++] = value;
      return {};
    }
    return scalar("a number");
  }

  Status other(std::string_view type) override { return scalar(type); }

  // What was odd in all entries.
  std::string take_note() {
    if (unknown_keys_ == 0) return "";
    return fmt::format("file '{}': {} unknown {} in its entries, the first is '{}' of tensor '{}'",
                       shown(file_), unknown_keys_, unknown_keys_ == 1 ? "key" : "keys",
                       shown(unknown_key_), shown(unknown_tensor_));
  }

 private:
  enum class Place : uint8_t { kOutside, kHeader, kMetadata, kEntry, kShape, kOffsets, kIgnored };
  enum class Field : uint8_t { kDType, kShape, kOffsets, kUnknown };

  static Place outer(Place place) {
    if (place == Place::kHeader) return Place::kOutside;
    return place == Place::kMetadata || place == Place::kEntry ? Place::kHeader : Place::kEntry;
  }
  static std::string_view field_name(Field field) {
    constexpr std::string_view kNames[] = {"dtype", "shape", "data_offsets", ""};
    return kNames[static_cast<size_t>(field)];
  }

  Status wrong(std::string_view what) const { return damaged_file(file_, what); }
  Status wrong_tensor(std::string_view what) const {
    return wrong(fmt::format("tensor '{}': {}", shown(key_), what)).with_detail("tensor", key_);
  }

  // A value where another type belongs.
  Status odd_value(std::string_view type) const {
    switch (place_) {
      case Place::kHeader:
        return wrong_tensor(fmt::format("its entry is {}, not an object", type));
      case Place::kMetadata:
        return wrong(fmt::format("{} has {} under '{}', where only texts are allowed", kMetadataKey,
                                 type, shown(metadata_key_)));
      case Place::kShape:
        return wrong_tensor(fmt::format("its shape holds {}", type));
      case Place::kOffsets:
        return wrong_tensor(fmt::format("its data_offsets hold {}", type));
      default:
        return wrong_tensor(fmt::format("its {} is {}", field_name(field_), type));
    }
  }
  Status scalar(std::string_view type) const {
    const bool ignored =
        place_ == Place::kIgnored || (place_ == Place::kEntry && field_ == Field::kUnknown);
    return ignored ? Status() : odd_value(type);
  }

  Status begin_member() {
    if (place_ == Place::kMetadata) {
      if (std::exchange(has_metadata_, true))
        return wrong(fmt::format("it has {} twice", kMetadataKey));
      return {};
    }
    if (header_->shapes.size() > UINT32_MAX - static_cast<size_t>(kMaxTensorRank))
      return wrong("its shapes have too many dimensions in all");
    entry_ = HeaderTensor();
    entry_.shape_begin = static_cast<uint32_t>(header_->shapes.size());
    offset_count_ = 0;
    seen_ = {};
    return {};
  }

  Status begin_field(std::string&& name) {
    field_ = Field::kUnknown;
    for (const Field field : {Field::kDType, Field::kShape, Field::kOffsets}) {
      if (name == field_name(field)) field_ = field;
    }
    if (field_ == Field::kUnknown) {
      if (++unknown_keys_ == 1) {
        unknown_key_ = std::move(name);
        unknown_tensor_ = key_;
      }
      return {};
    }
    if (std::exchange(seen_[static_cast<size_t>(field_)], true))
      return wrong_tensor(fmt::format("its entry has '{}' twice", name));
    return {};
  }

  Status open_field(bool is_object) {
    if (field_ == Field::kUnknown) {
      place_ = Place::kIgnored;
      ignored_depth_ = 1;
      return {};
    }
    if (is_object || field_ == Field::kDType) return odd_value(is_object ? "an object" : "a list");
    place_ = field_ == Field::kShape ? Place::kShape : Place::kOffsets;
    return {};
  }

  Status end_entry() {
    for (const Field field : {Field::kDType, Field::kShape, Field::kOffsets}) {
      if (!seen_[static_cast<size_t>(field)])
        return wrong_tensor(fmt::format("its entry has no '{}'", field_name(field)));
    }
    if (offset_count_ != offsets_.size())
      return wrong_tensor(fmt::format("data_offsets has {} numbers, not 2", offset_count_));
    if (offsets_[0] > offsets_[1])
      return wrong_tensor(
          fmt::format("it ends at byte {}, before it begins at {}", offsets_[1], offsets_[0]));
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    SHW_RETURN_IF_ERROR(check_size());
    entry_.name = header_->names.append(key_);
    header_->tensors.push_back(entry_);
    return {};
  }

  Status check_size() const {
    const Result<int64_t> elements = checked_element_count(header_->shape(entry_));
    uint64_t bits = 0;
    if (!elements.ok() || !checked_multiply(static_cast<uint64_t>(*elements),
                                            static_cast<uint64_t>(dtype_bits(entry_.dtype)), &bits))
      return wrong_tensor("its shape has more elements than can be counted");
    if (bits % 8 != 0) {
      return wrong_tensor(fmt::format("{} elements of {} do not end with a byte", *elements,
                                      dtype_name(entry_.dtype)));
    }
    if (bits / 8 == entry_.end - entry_.begin) return {};
    return wrong_tensor(fmt::format("dtype and shape make {} bytes, data_offsets {}", bits / 8,
                                    entry_.end - entry_.begin))
        .with_detail("expected", fmt::to_string(bits / 8))
        .with_detail("found", fmt::to_string(entry_.end - entry_.begin));
  }

  Header* header_;
  std::string_view file_;
  Place place_ = Place::kOutside;
  size_t ignored_depth_ = 0;
  std::string key_;
  std::string metadata_key_;
  bool has_metadata_ = false;
  Field field_ = Field::kUnknown;
  std::array<bool, 3> seen_{};
  std::array<uint64_t, 2> offsets_{};
  size_t offset_count_ = 0;
  HeaderTensor entry_;
  size_t unknown_keys_ = 0;
  std::string unknown_key_;
  std::string unknown_tensor_;
};

Status check_names(const Header& header, std::string_view file) {
  std::vector<uint32_t> order(header.tensors.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto name = [&header](uint32_t i) { return header.name(header.tensors[i]); };
  std::ranges::sort(order, {}, [&](uint32_t i) { return std::pair(name(i), i); });
  const auto twice =
      std::ranges::adjacent_find(order, [&](uint32_t a, uint32_t b) { return name(a) == name(b); });
  if (twice == order.end()) return {};
  const HeaderTensor& first = header.tensors[*twice];
  const HeaderTensor& second = header.tensors[*std::next(twice)];
  return damaged_file(file, fmt::format("tensor '{}' is there twice, with the bytes {} to {} and "
                                        "{} to {}",
                                        shown(name(*twice)), first.begin, first.end, second.begin,
                                        second.end))
      .with_detail("tensor", name(*twice));
}

// Tensors in the order of their bytes leave none out, share none, and end with the buffer.
Status check_tiling(Header* header, uint64_t buffer_bytes, std::string_view file) {
  std::ranges::stable_sort(header->tensors, {}, [](const HeaderTensor& each) {
    return std::pair(each.begin, each.end);
  });
  uint64_t end = 0;
  for (const HeaderTensor& tensor : header->tensors) {
    if (tensor.begin != end) {
      const std::string_view name = header->name(tensor);
      const std::string_view what = tensor.begin > end ? "nothing names the bytes before it"
                                                       : "it shares bytes with the one before it";
      return damaged_file(file, fmt::format("tensor '{}' begins at byte {} of the buffer, expected "
                                            "{}: {}",
                                            shown(name), tensor.begin, end, what))
          .with_detail("tensor", name)
          .with_detail("offset", fmt::to_string(tensor.begin));
    }
    end = tensor.end;
  }
  if (end == buffer_bytes) return {};
  return damaged_file(
             file,
             fmt::format("its tensors have {} bytes and {} are there: {}", end, buffer_bytes,
                         end > buffer_bytes ? "it was cut" : "bytes follow that nothing names"))
      .with_detail("expected", fmt::to_string(end))
      .with_detail("found", fmt::to_string(buffer_bytes));
}

}  // namespace

Status damaged_file(std::string_view file, std::string_view what) {
  return data_loss(
             fmt::format("file '{}' is no sound safetensors file: {}", escape_text(file), what))
      .with_detail("file", file)
      .with_detail("hint", kHint);
}

Result<uint64_t> header_length(std::span<const std::byte> first_bytes, uint64_t file_bytes,
                               std::string_view file) {
  if (file_bytes < kLengthBytes || first_bytes.size() < kLengthBytes) {
    return damaged_file(
               file, fmt::format("it has {} bytes, too few for the length of a header", file_bytes))
        .with_detail("found", fmt::to_string(file_bytes));
  }
  const auto begins_with = [&](std::string_view magic) {
    return std::memcmp(first_bytes.data(), magic.data(), magic.size()) == 0;
  };
  if (begins_with("PK\x03\x04")) {
    return unimplemented(fmt::format("file '{}' is an archive of torch.save in spite of its name, "
                                     "which this version cannot read",
                                     escape_text(file)))
        .with_detail("file", file)
        .with_detail("format", "a torch.save archive");
  }
  if (begins_with("version ")) {
    return damaged_file(file,
                        "it is the pointer that Git LFS leaves for a file that was not "
                        "fetched; run git lfs pull");
  }
  static_assert(std::endian::native == std::endian::little);
  uint64_t length = 0;
  std::memcpy(&length, first_bytes.data(), sizeof(length));
  const bool too_long = length > kMaxHeaderBytes;
  if (!too_long && length <= file_bytes - kLengthBytes) return length;
  const uint64_t limit = too_long ? kMaxHeaderBytes : file_bytes - kLengthBytes;
  return damaged_file(file,
                      fmt::format("it says that its header has {} bytes, {} {}", length,
                                  too_long ? "the format allows" : "behind the length are", limit))
      .with_detail("limit", fmt::to_string(limit))
      .with_detail("found", fmt::to_string(length));
}

Result<Header> decode_header(std::string_view text, uint64_t buffer_bytes, std::string_view file) {
  Header header;
  HeaderSink sink(&header, file);
  Status read = read_json(text, kMaxHeaderDepth, &sink);
  if (!read.ok() && read.detail("file").empty())
    read = damaged_file(file, fmt::format("its header: {}", read.message()));
  SHW_RETURN_IF_ERROR(read);
  SHW_RETURN_IF_ERROR(check_names(header, file));
  SHW_RETURN_IF_ERROR(check_tiling(&header, buffer_bytes, file));
  header.note = sink.take_note();
  return header;
}

}  // namespace shardwright::format::safetensors
