// SPDX-License-Identifier: Apache-2.0
//
// What CPython makes of the same bytes: a program of this folder is run, and leaves files.
#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace shardwright::format::archive::test {

inline std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Whether the program has ended well.
inline bool run_oracle(std::string_view program, const std::string& arguments) {
  const char* source = std::getenv("SHW_SOURCE_DIR");
  const std::string root = source == nullptr ? "." : source;
  const std::string command =
      fmt::format("python3 '{}/tests/core/format/archive/{}' {}", root, program, arguments);
  return std::system(command.c_str()) == 0;
}

}  // namespace shardwright::format::archive::test
