// SPDX-License-Identifier: Apache-2.0
//
// Stands in for libFuzzer where the compiler has none: gives every file of the named files and
// folders to LLVMFuzzerTestOneInput once. Fails when nothing was replayed, because an empty corpus
// tests nothing.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

bool replay(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    return false;
  }
  const std::vector<char> bytes((std::istreambuf_iterator<char>(stream)),
                                std::istreambuf_iterator<char>());
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  return true;
}

}  // namespace

int main(int argument_count, char** arguments) {
  size_t replayed = 0;
  for (int index = 1; index < argument_count; ++index) {
    const std::filesystem::path path(arguments[index]);
    if (!std::filesystem::is_directory(path)) {
      if (!replay(path)) {
        return 1;
      }
      ++replayed;
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) {
        if (!replay(entry.path())) {
          return 1;
        }
        ++replayed;
      }
    }
  }
  std::printf("replayed %zu inputs\n", replayed);
  return replayed == 0 ? 1 : 0;
}
