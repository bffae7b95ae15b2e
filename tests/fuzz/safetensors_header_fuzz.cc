// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a safetensors file: its length and its header, and again as a header in front of a
// buffer that ends where the header says, so that mutations reach the proofs behind it. What
// decodes tiles its buffer and gives a sound catalog.
#include <string>
#include <string_view>
#include <vector>

#include "core/format/safetensors/contents_internal.h"
#include "core/format/safetensors/header.h"

namespace {

using namespace shardwright::format::safetensors;  // NOLINT: a fuzz target is one file

void check(const Header& header, uint64_t buffer_bytes) {
  uint64_t end = 0;
  for (const HeaderTensor& tensor : header.tensors) {
    if (tensor.begin != end || tensor.end < end) __builtin_trap();
    end = tensor.end;
  }
  if (end != buffer_bytes) __builtin_trap();
}

void decode(std::string_view text, uint64_t buffer_bytes) {
  auto header = decode_header(text, buffer_bytes, "f");
  if (!header.ok() && !header.status().detail("expected").empty()) {
    buffer_bytes =
        std::strtoull(std::string(header.status().detail("expected")).c_str(), nullptr, 10);
    header = decode_header(text, buffer_bytes, "f");
  }
  if (!header.ok()) return;
  check(*header, buffer_bytes);
  for (const auto parts : {internal::Parts::kWhole, internal::Parts::kOfTensors}) {
    internal::ContentsBuilder builder(nullptr, "", parts);
    internal::SourceFile source;
    source.info.key = "f";
    source.header = std::string(text);
    if (__builtin_add_overflow(buffer_bytes, text.size() + kLengthBytes, &source.info.size_bytes))
      return;
    if (!builder.add_file(std::move(source)).ok()) continue;
    const auto contents = std::move(builder).finish();
    if (!contents.ok() && parts == internal::Parts::kWhole) __builtin_trap();
    if (contents.ok() && !shardwright::plan::check_catalog(contents->catalog).ok())
      __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  decode(bytes, 0);
  if (size < kLengthBytes) return 0;
  const auto length = header_length(std::as_bytes(std::span(bytes)), size, "f");
  const std::string_view behind = bytes.substr(kLengthBytes);
  if (length.ok()) decode(behind.substr(0, *length), behind.size() - *length);
  decode(behind, 0);
  return 0;
}
