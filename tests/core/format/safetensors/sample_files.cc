// SPDX-License-Identifier: Apache-2.0
#include "tests/core/format/safetensors/sample_files.h"

#include <cstring>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace shardwright::format::safetensors::test {

std::string file_of(std::string_view header, uint64_t buffer_bytes) {
  const uint64_t length = header.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  file += header;
  for (uint64_t i = 0; i < buffer_bytes; ++i) file += static_cast<char>(i);
  return file;
}

std::string entry_of(std::string_view name, std::string_view dtype, std::string_view shape,
                     uint64_t begin, uint64_t end) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", name, dtype,
                     shape, begin, end);
}

void store(storage::Storage* storage, const std::string& key, std::string_view bytes) {
  ASSERT_TRUE(storage->remove(key).ok());
  storage::OpenOptions options;
  options.mode = storage::OpenMode::kCreateVisible;
  const auto object = storage->open(key, options);
  ASSERT_TRUE(object.ok()) << object.status().to_string();
  ASSERT_TRUE((*object)->write_at(0, std::as_bytes(std::span(bytes))).ok());
}

}  // namespace shardwright::format::safetensors::test
