// SPDX-License-Identifier: Apache-2.0
//
// HashIndex: finds what was inserted and nothing else, also when hashes collide and while it grows.
#include "core/base/hash_index.h"

#include <string>

#include <gtest/gtest.h>

namespace shardwright {
namespace {

// Names in a vector, found through the index by a hash of the test's choice.
class Names {
 public:
  explicit Names(uint64_t (*hash)(std::string_view)) : hash_(hash) {}

  void add(std::string name) {
    index_.reserve(names_.size() + 1, [this](size_t i) { return hash_(names_[i]); });
    index_.insert(hash_(name), names_.size());
    names_.push_back(std::move(name));
  }
  std::optional<size_t> find(std::string_view name) const {
    return index_.find(hash_(name), [&](size_t i) { return names_[i] == name; });
  }
  void clear() {
    index_.clear();
    names_.clear();
  }

 private:
  uint64_t (*hash_)(std::string_view);
  std::vector<std::string> names_;
  HashIndex index_;
};

void expect_all_found(Names names, size_t count) {
  EXPECT_EQ(names.find("0"), std::nullopt);
  for (size_t i = 0; i < count; ++i) names.add(std::to_string(i));
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(names.find(std::to_string(i)), i);
  EXPECT_EQ(names.find("absent"), std::nullopt);
  names.clear();
  EXPECT_EQ(names.find("0"), std::nullopt);
}

TEST(HashIndex, FindsWhatWasInserted) {
  expect_all_found(Names(hash_text), 10000);
}

TEST(HashIndex, ManyKeysOfOneHashAreToldApart) {
  expect_all_found(Names([](std::string_view) { return uint64_t{42}; }), 200);
}

TEST(HashIndex, KeysThatStartAtTheLastSlotWrapAround) {
  expect_all_found(Names([](std::string_view name) { return ~uint64_t{0} - name.size(); }), 200);
}

TEST(HashIndex, HashesOfTextsDiffer) {
  EXPECT_EQ(hash_text("a.b"), hash_text("a.b"));
  EXPECT_NE(hash_text("a.b"), hash_text("a.c"));
  EXPECT_NE(hash_text(""), hash_text(std::string_view("\0", 1)));
}

}  // namespace
}  // namespace shardwright
