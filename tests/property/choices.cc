// SPDX-License-Identifier: Apache-2.0
#include "tests/property/choices.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace shardwright::test {
namespace {

class Shrinker {
 public:
  Shrinker(ChoiceList best, const std::function<bool(const ChoiceList&)>& fails, int tries)
      : best_(std::move(best)), fails_(fails), tries_(tries) {}

  ChoiceList run() {
    bool better = true;
    while (better && tries_ > 0) {
      better = false;
      for (size_t length = std::bit_floor(std::max<size_t>(best_.size(), 1)); length > 0;
           length /= 2) {
        better |= leave_out(length);
      }
      better |= lower_all();
    }
    while (!best_.empty() && best_.back() == 0) best_.pop_back();  // zeros follow anyway
    return best_;
  }

 private:
  bool take(ChoiceList candidate) {
    if (tries_-- <= 0 || !fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  bool leave_out(size_t length) {
    bool better = false;
    for (size_t end = best_.size(); end >= length && tries_ > 0; --end) {
      ChoiceList shorter = best_;
      const auto from = shorter.begin() + static_cast<std::ptrdiff_t>(end - length);
      shorter.erase(from, from + static_cast<std::ptrdiff_t>(length));
      better |= take(std::move(shorter));
      end = std::min(end, best_.size() + 1);
    }
    return better;
  }

  bool lower_all() {
    bool better = false;
    for (size_t i = 0; i < best_.size() && tries_ > 0; ++i) {
      for (uint64_t lower : {uint64_t{0}, best_[i] / 2, best_[i] - 1}) {
        if (i >= best_.size() || lower >= best_[i]) continue;
        ChoiceList smaller = best_;
        smaller[i] = lower;
        better |= take(std::move(smaller));
      }
    }
    return better;
  }

  ChoiceList best_;
  const std::function<bool(const ChoiceList&)>& fails_;
  int tries_;
};

}  // namespace

ChoiceList shrink(ChoiceList failing, const std::function<bool(const ChoiceList&)>& fails,
                  int tries) {
  return Shrinker(std::move(failing), fails, tries).run();
}

}  // namespace shardwright::test
