// SPDX-License-Identifier: Apache-2.0
//
// See files.h.
#include "tests/bindings/c/files.h"

#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace contract {
namespace {

namespace fs = std::filesystem;

// A path in which one "*" stands for the only directory that fits.
fs::path resolve(const fs::path& root, const std::string& text) {
  fs::path path = root;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, '/');) {
    if (part != "*") {
      path /= part;
      continue;
    }
    std::vector<fs::path> fits;
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.is_directory()) fits.push_back(entry.path());
    }
    if (fits.size() != 1) throw std::runtime_error("not one entry fits " + text);
    path = fits[0];
  }
  return path;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

void flip_bit(const fs::path& path, const Json& step) {
  std::string bytes = read_file(path);
  bytes.at(member(step, "offset").get<size_t>()) ^=
      static_cast<char>(1 << member(step, "bit").get<int>());
  write_file(path, bytes);
}

}  // namespace

bool run_file_step(const fs::path& root, const Json& step) {
  const std::string op = text_of(step, "op");
  const auto path = [&] { return resolve(root, text_of(step, "path")); };
  if (op == "make_directory") {
    fs::create_directories(path());
  } else if (op == "write_file") {
    write_file(path(), text_of(step, "text"));
  } else if (op == "remove_file") {
    fs::remove(path());
  } else if (op == "truncate_file") {
    fs::resize_file(path(), fs::file_size(path()) - member(step, "drop").get<uintmax_t>());
  } else if (op == "flip_bit") {
    flip_bit(path(), step);
  } else if (op == "move_and_link") {
    const fs::path from = path();
    const fs::path to = root / text_of(step, "to");
    fs::rename(from, to);
    fs::create_symlink(to, from);
  } else {
    return false;
  }
  return true;
}

}  // namespace contract
