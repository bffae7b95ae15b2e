// SPDX-License-Identifier: Apache-2.0
//
// RandomSource: random values for a test. Every failure that happens while one is alive shows the
// number that reproduces it; SHW_SEED=<number> in the environment repeats that run. One
// thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace shardwright::test {

class RandomSource {
 public:
  RandomSource() : RandomSource(starting_number()) {}
  explicit RandomSource(uint64_t number)
      : engine_(number),
        trace_(__FILE__, __LINE__, "repeat with SHW_SEED=" + std::to_string(number)) {}

  uint64_t next() { return engine_(); }
  // A value of [least, most], both included.
  int64_t between(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(engine_);
  }
  // True in percent of 100 cases.
  bool chance(int64_t percent) { return between(1, 100) <= percent; }
  template <typename T>
  const T& pick(const std::vector<T>& values) {
    return values[static_cast<size_t>(between(0, static_cast<int64_t>(values.size()) - 1))];
  }
  template <typename T>
  void shuffle(std::vector<T>* values) {
    std::shuffle(values->begin(), values->end(), engine_);
  }
  std::vector<std::byte> bytes(size_t count) {
    std::vector<std::byte> result(count);
    for (std::byte& each : result) each = static_cast<std::byte>(next() & 0xFF);
    return result;
  }

 private:
  static uint64_t starting_number() {
    const char* given = std::getenv("SHW_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  }

  std::mt19937_64 engine_;
  testing::ScopedTrace trace_;
};

}  // namespace shardwright::test
