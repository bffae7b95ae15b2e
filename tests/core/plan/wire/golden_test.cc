// SPDX-License-Identifier: Apache-2.0
//
// Plan buffers of today are those that were committed, byte for byte; they are also where the fuzz
// target starts. SHW_UPDATE_GOLDEN=1 writes them.
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/core/plan/wire/plan_samples.h"

namespace shardwright::plan::test {
namespace {

TEST(PlanBuffer, BytesAreThoseThatWereCommitted) {
  const char* source = std::getenv("SHW_SOURCE_DIR");
  ASSERT_NE(source, nullptr) << "set SHW_SOURCE_DIR to the root of the repository";
  for (const Sample& sample : all_samples()) {
    const std::string path =
        std::string(source) + "/tests/fuzz/corpus/plan_buffer/" + sample.name + ".shwp";
    if (std::getenv("SHW_UPDATE_GOLDEN") != nullptr) {
      std::ofstream out(path, std::ios::binary);
      out.write(reinterpret_cast<const char*>(sample.bytes.data()),
                static_cast<std::streamsize>(sample.bytes.size()));
    }
    std::ifstream in(path, std::ios::binary);
    ASSERT_TRUE(in.good()) << path;
    const std::string committed((std::istreambuf_iterator<char>(in)),
                                std::istreambuf_iterator<char>());
    const std::string today(reinterpret_cast<const char*>(sample.bytes.data()),
                            sample.bytes.size());
    EXPECT_EQ(committed, today) << sample.name;
  }
}

}  // namespace
}  // namespace shardwright::plan::test
