// SPDX-License-Identifier: Apache-2.0
//
// Choices: the random numbers from which a test draws its world, kept so that a failing world can
// be made smaller. What is drawn is a list of numbers; a list that ends early goes on with zeros,
// so every shorter or smaller list draws a world, too, and smaller numbers draw simpler worlds. A
// generator that asks for nothing but these numbers can be shrunk without further help. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <utility>
#include <vector>

namespace shardwright::test {

using ChoiceList = std::vector<uint64_t>;

class Choices {
 public:
  // Draws at random.
  explicit Choices(uint64_t start) : engine_(start), random_(true) {}
  // Draws these, then zeros.
  explicit Choices(ChoiceList given) : given_(std::move(given)) {}

  // A value of [least, most], both included; the simplest is least.
  int64_t between(int64_t least, int64_t most) {
    const uint64_t span = static_cast<uint64_t>(most) - static_cast<uint64_t>(least);
    uint64_t value = 0;
    if (random_) {
      value = span == UINT64_MAX ? engine_() : engine_() % (span + 1);
    } else if (drawn_.size() < given_.size()) {
      value = std::min(given_[drawn_.size()], span);
    }
    drawn_.push_back(value);
    return static_cast<int64_t>(static_cast<uint64_t>(least) + value);
  }
  size_t index(size_t count) {
    return static_cast<size_t>(between(0, static_cast<int64_t>(count) - 1));
  }
  // True in percent of 100 cases; the simplest is false.
  bool chance(int64_t percent) { return between(0, 99) >= 100 - percent; }
  template <typename T>
  const T& pick(const std::vector<T>& values) {
    return values[index(values.size())];
  }

  const ChoiceList& drawn() const { return drawn_; }

 private:
  std::mt19937_64 engine_;
  bool random_ = false;
  ChoiceList given_;
  ChoiceList drawn_;
};

// A list that still fails and is no longer than the given one: runs of numbers are left out, then
// numbers are made smaller, until nothing helps or `tries` are used up.
ChoiceList shrink(ChoiceList failing, const std::function<bool(const ChoiceList&)>& fails,
                  int tries);

}  // namespace shardwright::test
