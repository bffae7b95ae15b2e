// SPDX-License-Identifier: Apache-2.0
#include "core/format/zarr/array_header.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/json_tree.h"
#include "core/base/limits.h"
#include "core/format/json_events.h"
#include "core/format/zarr/fill_value.h"

namespace shardwright::format::zarr {
namespace {

constexpr JsonLimits kLimits{kMaxHeaderBytes, 1024, 8};
constexpr size_t kMaxTextShown = 64;

constexpr std::pair<std::string_view, DType> kDTypes[] = {
    {"|b1", DType::kBool},      {"|i1", DType::kInt8},        {"<i2", DType::kInt16},
    {"<i4", DType::kInt32},     {"<i8", DType::kInt64},       {"|u1", DType::kUint8},
    {"<u2", DType::kUint16},    {"<u4", DType::kUint32},      {"<u8", DType::kUint64},
    {"<f2", DType::kFloat16},   {"<f4", DType::kFloat32},     {"<f8", DType::kFloat64},
    {"<c8", DType::kComplex64}, {"<c16", DType::kComplex128}, {"bfloat16", DType::kBfloat16},
};

class HeaderReader {
 public:
  HeaderReader(JsonValueView root, std::string_view array) : root_(root), array_(array) {}

  Result<ArrayHeader> read() {
    SHW_RETURN_IF_ERROR(check_form());
    SHW_RETURN_IF_ERROR(read_dtype());
    SHW_RETURN_IF_ERROR(read_extents("shape", &header_.shape));
    SHW_RETURN_IF_ERROR(read_extents("chunks", &header_.chunks));
    SHW_RETURN_IF_ERROR(check_extents());
    SHW_RETURN_IF_ERROR(read_separator());
    const JsonValueView fill = root_.member("fill_value");
    if (!fill.exists()) return damaged("has no fill_value");
    auto element = fill_element(fill, header_.dtype);
    if (!element.ok()) return about(element.status());
    header_.fill = std::move(*element);
    return std::move(header_);
  }

 private:
  // Names array and file.
  Status about(const Status& status) const {
    Status made(status.code(),
                fmt::format("array '{}': its {} {}", shown(array_), kHeaderName, status.message()));
    return std::move(made)
        .with_detail("tensor", array_)
        .with_detail("file", fmt::format("{}/{}", array_, kHeaderName));
  }
  Status damaged(std::string_view what) const { return about(data_loss(std::string(what))); }
  Status not_read(std::string_view what) const {
    return about(unimplemented(std::string(what)))
        .with_detail("hint",
                     "load it with the megatron-core that wrote it and save it as torch_dist: "
                     "versions up to 0.12 read zarr");
  }

  Status check_form() const {
    if (root_.type() != JsonType::kObject) return damaged("is no JSON object");
    const JsonValueView version = root_.member("zarr_format");
    if (!version.exists() || version.type() != JsonType::kInteger)
      return damaged("has no zarr_format");
    if (version.integer() != 2)
      return not_read(fmt::format("is of version {} of zarr, and 2 is read", version.integer()));
    SHW_RETURN_IF_ERROR(check_plain("compressor", "is compressed"));
    SHW_RETURN_IF_ERROR(check_plain("filters", "has filters"));
    const JsonValueView order = root_.member("order");
    if (!order.exists() || order.type() != JsonType::kText || order.text().size() != 1)
      return damaged("has no order");
    if (order.text() == "C") return {};
    return not_read(
        fmt::format("has the order {}, and only rows first (C) are read", shown(order.text())));
  }

  // Its chunks are the bytes of their elements.
  Status check_plain(std::string_view key, std::string_view otherwise) const {
    const JsonValueView value = root_.member(key);
    if (!value.exists()) return damaged(fmt::format("has no {}", key));
    if (value.type() == JsonType::kNull) return {};
    const bool is_list = value.type() == JsonType::kArray;
    if (is_list && value.size() == 0) return {};
    const JsonValueView codec = is_list ? value.first() : value;
    if (codec.type() != JsonType::kObject) return damaged(fmt::format("says no {}", key));
    const JsonValueView id = codec.member("id");
    const bool has_id = id.exists() && id.type() == JsonType::kText;
    return not_read(fmt::format("says that it {} ({} '{}'), and only arrays without {} are read",
                                otherwise, key, has_id ? shown(id.text()) : "?", key));
  }

  Status read_dtype() {
    const JsonValueView dtype = root_.member("dtype");
    if (!dtype.exists()) return damaged("has no dtype");
    if (dtype.type() != JsonType::kText) return not_read("has a dtype of several parts");
    for (const auto& [name, known] : kDTypes) {
      if (dtype.text() != name) continue;
      header_.dtype = known;
      return {};
    }
    return not_read(fmt::format("has the dtype '{}', which is not read",
                                shown(dtype.text().substr(0, kMaxTextShown))));
  }

  Status read_extents(std::string_view key, Dims* extents) const {
    const JsonValueView list = root_.member(key);
    if (!list.exists() || list.type() != JsonType::kArray)
      return damaged(fmt::format("has no {}", key));
    if (list.size() > static_cast<size_t>(kMaxTensorRank))
      return damaged(fmt::format("has {} dimensions in {}, more than the {} that a tensor has",
                                 list.size(), key, kMaxTensorRank));
    *extents = Dims(list.size(), 0);
    size_t dimension = 0;
    for (JsonValueView item = list.first(); item.exists(); item = item.next()) {
      if (item.type() != JsonType::kInteger || item.integer() < 0)
        return damaged(fmt::format("has something in {} that is no count", key));
      (*extents)[dimension++] = item.integer();
    }
    return {};
  }

  Status check_extents() const {
    if (header_.chunks.size() != header_.shape.size())
      return damaged(fmt::format("has {} dimensions in its shape and {} in its chunks",
                                 header_.shape.size(), header_.chunks.size()));
    for (const Dims& extents : {header_.shape, header_.chunks}) {
      const Result<int64_t> count = checked_element_count(extents);
      if (!count.ok() || !dtype_packed_bytes(header_.dtype, *count).ok())
        return damaged(
            fmt::format("has [{}] elements, more than can be counted", fmt::join(extents, ",")));
    }
    if (element_count_of(header_.shape) == 0 || element_count_of(header_.chunks) > 0) return {};
    return damaged("has chunks without elements");
  }

  Status read_separator() {
    const JsonValueView separator = root_.member("dimension_separator");
    if (!separator.exists()) return {};
    if (separator.type() != JsonType::kText || (separator.text() != "." && separator.text() != "/"))
      return damaged("has a dimension_separator that is neither '.' nor '/'");
    header_.separator = separator.text()[0];
    return {};
  }

  const JsonValueView root_;
  const std::string_view array_;
  ArrayHeader header_;
};

}  // namespace

Result<ArrayHeader> decode_header(std::span<const std::byte> bytes, std::string_view array) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Result<JsonTree> tree = JsonTree::parse(text, kLimits);
  if (!tree.ok()) {
    return data_loss(fmt::format("array '{}': its {} is no JSON that can be read: {}", shown(array),
                                 kHeaderName, tree.status().message()))
        .with_detail("tensor", array)
        .with_detail("file", fmt::format("{}/{}", array, kHeaderName));
  }
  return HeaderReader(tree->root(), array).read();
}

}  // namespace shardwright::format::zarr
