// SPDX-License-Identifier: Apache-2.0
#include "core/format/derived_items.h"

#include <cstring>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/storage/backends.h"
#include "tests/core/format/safetensors/sample_files.h"
#include "tests/support/random_source.h"
#include "tests/support/run_length.h"

namespace shardwright::format {
namespace {

class DerivedItemsTest : public testing::Test {
 protected:
  void store(std::string_view bytes) { safetensors::test::store(storage_.get(), "f", bytes); }
  std::unique_ptr<storage::StorageObject> open(const DerivedItems& items) {
    return items.open(
        [this](uint32_t) {
          ++opened_;
          return storage_->open("f", {});
        },
        "f");
  }

  std::shared_ptr<storage::Storage> storage_ = storage::make_memory_storage();
  int opened_ = 0;
};

std::string read(storage::StorageObject* object, uint64_t offset, uint64_t size) {
  std::string bytes(size, '?');
  const Status status = object->read_at(offset, std::as_writable_bytes(std::span(bytes)));
  EXPECT_TRUE(status.ok()) << status.to_string();
  return bytes;
}

StridedSource view(uint64_t offset, uint64_t element_bytes, Dims shape, Dims strides) {
  StridedSource source;
  source.offset = offset;
  source.element_bytes = element_bytes;
  source.shape = std::move(shape);
  source.strides = std::move(strides);
  return source;
}

TEST_F(DerivedItemsTest, GivesBytesAndViewsOneBehindTheOther) {
  store("0123456789");
  DerivedItems items;
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  EXPECT_EQ(items.add_bytes(bytes("first")), 0U);
  EXPECT_EQ(items.add_strided(view(1, 1, {2, 3}, {1, 2})), 5U);
  EXPECT_EQ(items.add_bytes(bytes("")), 11U);
  EXPECT_EQ(items.add_strided(view(0, 1, {2, 0}, {1, 1})), 11U);
  EXPECT_EQ(items.add_bytes(bytes("last")), 11U);
  EXPECT_EQ(items.size_bytes(), 15U);
  const auto object = open(items);
  EXPECT_EQ(read(object.get(), 0, 15), "first135246last");
  EXPECT_EQ(read(object.get(), 3, 5), "st135");
  EXPECT_EQ(read(object.get(), 15, 0), "");
  EXPECT_EQ(opened_, 1);
  std::byte one{};
  EXPECT_EQ(object->read_at(15, {&one, 1}).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(object->write_at(0, {&one, 1}).code(), StatusCode::kInternal);
  EXPECT_EQ(object->stat()->size_bytes, 15U);
}

TEST_F(DerivedItemsTest, EveryRangeOfEveryViewIsThatOfItsElements) {
  test::RandomSource random;
  const int64_t views = test::rounds(100, 2000);
  std::string stored(4096, '\0');
  for (char& each : stored) each = static_cast<char>(random.next());
  store(stored);
  for (int64_t round = 0; round < views; ++round) {
    const uint64_t element = uint64_t{1} << random.between(0, 3);
    Dims shape(static_cast<size_t>(random.between(0, 4)), 0);
    Dims strides(shape.size(), 0);
    for (size_t d = 0; d < shape.size(); ++d) {
      shape[d] = random.between(1, 5);
      strides[d] = random.between(0, 20);
    }
    std::string expected;
    Dims index(shape.size(), 0);
    for (int64_t i = 0; i < element_count_of(shape); ++i) {
      int64_t rest = i;
      uint64_t at = 0;
      for (size_t d = shape.size(); d-- > 0; rest /= shape[d])
        at += static_cast<uint64_t>(rest % shape[d] * strides[d]);
      expected += stored.substr(7 + at * element, element);
    }
    DerivedItems items;
    (void)items.add_strided(view(7, element, shape, strides));
    ASSERT_EQ(items.size_bytes(), expected.size());
    const auto object = open(items);
    for (int i = 0; i < 5; ++i) {
      const auto size = static_cast<int64_t>(expected.size());
      const auto begin = static_cast<uint64_t>(random.between(0, size));
      const auto count =
          static_cast<uint64_t>(random.between(0, size - static_cast<int64_t>(begin)));
      EXPECT_EQ(read(object.get(), begin, count), expected.substr(begin, count))
          << fmt::format("shape {} strides {}", fmt::join(shape, ","), fmt::join(strides, ","));
    }
  }
}

TEST_F(DerivedItemsTest, AViewReadAcrossItsStorageIsReadOnce) {
  constexpr int64_t kRows = 3000;
  constexpr int64_t kColumns = 1000;
  std::string stored(kRows * kColumns * 4, '\0');
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    const auto number = static_cast<int32_t>(i);
    std::memcpy(stored.data() + i * 4, &number, 4);
  }
  store(stored);
  DerivedItems items;
  (void)items.add_strided(view(0, 4, {kColumns, kRows}, {1, kColumns}));
  const auto object = open(items);
  for (const int64_t column : {int64_t{0}, int64_t{500}, kColumns - 1}) {
    const std::string row =
        read(object.get(), static_cast<uint64_t>(column * kRows * 4), kRows * 4);
    for (const int64_t i : {int64_t{0}, int64_t{1}, kRows - 1}) {
      int32_t number = 0;
      std::memcpy(&number, row.data() + i * 4, 4);
      EXPECT_EQ(number, i * kColumns + column);
    }
  }
}

TEST_F(DerivedItemsTest, KeepsNoViewThatSpansTooMuch) {
  store("0");
  DerivedItems items;
  (void)items.add_strided(view(0, 1, {2, 2}, {1, int64_t{1} << 30}));
  std::byte two[2];
  const Status status = open(items)->read_at(0, two);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status.to_string();
  EXPECT_EQ(status.detail("resource"), "memory");
  EXPECT_EQ(status.detail("file"), "f");
  EXPECT_NE(status.message().find("spans 1073741826 bytes"), std::string::npos);
}

TEST_F(DerivedItemsTest, PassesOnWhyAFileCannotBeRead) {
  store("012");
  DerivedItems items;
  (void)items.add_strided(view(1, 1, {2, 2}, {1, 2}));
  std::byte one{};
  EXPECT_EQ(open(items)->read_at(0, {&one, 1}).code(), StatusCode::kOk);
  EXPECT_EQ(open(items)->read_at(3, {&one, 1}).code(), StatusCode::kOutOfRange);
  ASSERT_TRUE(storage_->remove("f").ok());
  EXPECT_EQ(open(items)->read_at(0, {&one, 1}).code(), StatusCode::kNotFound);
}

TEST(ElementsSpanned, CountsUpToTheLastElement) {
  const auto spanned = [](Dims shape, Dims strides) { return elements_spanned(shape, strides); };
  EXPECT_EQ(*spanned({}, {}), 1U);
  EXPECT_EQ(*spanned({2, 3}, {3, 1}), 6U);
  EXPECT_EQ(*spanned({2, 3}, {1, 10}), 22U);
  EXPECT_EQ(*spanned({5, 5}, {0, 0}), 1U);
  EXPECT_EQ(*spanned({5, 0}, {INT64_MAX, INT64_MAX}), 0U);
  EXPECT_FALSE(spanned({2}, {-1}).ok());
  EXPECT_FALSE(spanned({-2}, {1}).ok());
  EXPECT_FALSE(spanned({INT64_MAX, 2}, {0, 0}).ok());
  EXPECT_FALSE(spanned({3, 3, 3}, {INT64_MAX, INT64_MAX, INT64_MAX}).ok());
}

TEST(IsPacked, LooksAtExtentsAboveOneOnly) {
  const auto packed = [](Dims shape, Dims strides) { return is_packed(shape, strides); };
  EXPECT_TRUE(packed({}, {}));
  EXPECT_TRUE(packed({2, 3}, {3, 1}));
  EXPECT_TRUE(packed({1, 3}, {99, 1}));
  EXPECT_TRUE(packed({0, 3}, {7, 7}));
  EXPECT_FALSE(packed({2, 3}, {1, 2}));
  EXPECT_FALSE(packed({2, 3}, {4, 1}));
  EXPECT_FALSE(packed({2}, {0}));
}

}  // namespace
}  // namespace shardwright::format
