// SPDX-License-Identifier: Apache-2.0
//
// Small files in one piece.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "cli/plan.h"

namespace shardwright::cli {
namespace {

[[noreturn]] void fail_file(std::string what, const std::string& path, int error) {
  Failure failure;
  failure.status = error == ENOENT ? SHW_NOT_FOUND : SHW_UNKNOWN;
  failure.what = std::move(what);
  failure.where = path;
  failure.cause = std::strerror(error);
  failure.next = "check the path and its permissions";
  throw failure;
}

}  // namespace

std::string read_file(const std::string& path) {
  if (path == "-") {
    return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad()) fail_file("cannot read the file", path, errno);
  return bytes;
}

void write_file(const std::string& path, std::string_view bytes) {
  const std::string partial = path + ".partial";
  errno = 0;
  std::ofstream file(partial, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  int error = file ? 0 : (errno == 0 ? EIO : errno);
  if (error == 0 && std::rename(partial.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  std::remove(partial.c_str());
  fail_file("cannot write the file", path, error);
}

}  // namespace shardwright::cli
