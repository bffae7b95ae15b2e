// SPDX-License-Identifier: Apache-2.0
//
// One implementation of the rule for all structs; the caller's bytes are copied, never cast.
#include "capi/boundary/struct_reader.h"

#include <algorithm>
#include <string>

#include "capi/boundary/version.h"

namespace shardwright::capi {
namespace {

Status from_newer_caller(const StructRules& rules, const char* parameter, uint64_t offset) {
  return unimplemented(
             fmt::format("parameter '{}': {} has a value at byte {} that this library ({}) "
                         "does not know; it comes from a newer header",
                         parameter, rules.name, offset, library_version()))
      .with_detail("parameter", parameter)
      .with_detail("field_offset", std::to_string(offset))
      .with_detail("library_version", library_version());
}

bool is_zero(const std::byte* bytes, size_t size) {
  uint64_t any = 0;
  for (; size >= sizeof(any); size -= sizeof(any), bytes += sizeof(any)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof(word));
    any |= word;
  }
  for (; size > 0; --size, ++bytes) any |= std::to_integer<uint64_t>(*bytes);
  return any == 0;
}

Status check_known(const std::byte* bytes, const StructRules& rules, const char* parameter) {
  uint32_t flags = 0;
  std::memcpy(&flags, bytes + sizeof(uint32_t), sizeof(flags));
  const uint32_t unknown = flags & ~rules.known_flags;
  if (unknown != 0) {
    return unimplemented(fmt::format("parameter '{}': {} has unknown flags {}, known are {}",
                                     parameter, rules.name, unknown, rules.known_flags))
        .with_detail("parameter", parameter)
        .with_detail("flags", std::to_string(unknown))
        .with_detail("library_version", library_version());
  }
  for (const ReservedField& field : rules.reserved) {
    if (!is_zero(bytes + field.offset, field.size))
      return from_newer_caller(rules, parameter, field.offset);
  }
  return {};
}

uint32_t size_of(const void* from) {
  uint32_t size = 0;
  std::memcpy(&size, from, sizeof(size));
  return size;
}

Status null_struct(const StructRules& rules, const char* parameter) {
  return invalid_argument(
             fmt::format("parameter '{}' is NULL, expected a {}", parameter, rules.name))
      .with_detail("parameter", parameter);
}

}  // namespace

Status check_struct_size(uint32_t size, const StructRules& rules, const char* parameter) {
  if (size >= rules.oldest_size && size <= kLargestStruct && size % 8 == 0) return {};
  return invalid_argument(
             fmt::format(
                 "parameter '{}': struct_size of {} is {}, expected {} (set it with the init "
                 "macro or function)",
                 parameter, rules.name, size, rules.size))
      .with_detail("parameter", parameter)
      .with_detail("expected", std::to_string(rules.size))
      .with_detail("found", std::to_string(size));
}

Status copy_struct(const void* from, const StructRules& rules, const char* parameter, void* to) {
  if (from == nullptr) return null_struct(rules, parameter);
  const uint32_t size = size_of(from);
  SHW_RETURN_IF_ERROR(check_struct_size(size, rules, parameter));
  const auto* bytes = static_cast<const std::byte*>(from);
  for (uint32_t i = rules.size; i < size; ++i) {
    if (bytes[i] != std::byte{0}) return from_newer_caller(rules, parameter, i);
  }
  auto* target = static_cast<std::byte*>(to);
  const uint32_t common = std::min(size, rules.size);
  std::memcpy(target, bytes, common);
  std::memset(target + common, 0, rules.size - common);
  std::memcpy(target, &rules.size, sizeof(rules.size));
  return check_known(target, rules, parameter);
}

Status check_out_struct(const void* out, const StructRules& rules, const char* parameter) {
  if (out == nullptr) return null_struct(rules, parameter);
  return check_struct_size(size_of(out), rules, parameter);
}

void write_struct(const void* value, const StructRules& rules, void* out) noexcept {
  const uint32_t size = size_of(out);
  const uint32_t common = std::min(size, rules.size);
  auto* target = static_cast<std::byte*>(out);
  std::memcpy(target, value, common);
  std::memset(target + common, 0, size - common);
  std::memcpy(target, &common, sizeof(common));
}

}  // namespace shardwright::capi
