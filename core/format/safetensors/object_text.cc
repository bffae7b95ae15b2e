// SPDX-License-Identifier: Apache-2.0
#include "core/format/safetensors/object_text.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/json_events.h"
#include "core/format/safetensors/header.h"

namespace shardwright::format::safetensors {
namespace {

constexpr std::string_view kScheme = "data:";
constexpr std::string_view kEncoding = ";base64,";

}  // namespace

std::string object_text(std::string_view content_type, std::span<const std::byte> bytes) {
  return fmt::format("{}{}{}{}", kScheme, content_type, kEncoding, to_base64(bytes));
}

Result<ObjectOfText> read_object_text(std::string_view text, std::string_view name,
                                      std::string_view file) {
  // No base64 holds the mark, so that the last one counts, whatever the content type.
  const size_t mark = text.rfind(kEncoding);
  std::optional<std::vector<std::byte>> bytes;
  if (text.starts_with(kScheme) && mark != std::string_view::npos && mark >= kScheme.size())
    bytes = from_base64(text.substr(mark + kEncoding.size()));
  if (bytes.has_value())
    return ObjectOfText{std::string(text.substr(kScheme.size(), mark - kScheme.size())),
                        *std::move(bytes)};
  return damaged_file(file, fmt::format("the object '{}' in its metadata is not \"{}TYPE{}\" and "
                                        "base64",
                                        shown(name), kScheme, kEncoding))
      .with_detail("object", name);
}

}  // namespace shardwright::format::safetensors
