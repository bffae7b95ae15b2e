// SPDX-License-Identifier: Apache-2.0
//
// .zarray: what it may say, what its fill_value becomes, and how the rest is refused.
#include "core/format/zarr/array_header.h"

#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/expect_failure.h"

namespace shardwright::format::zarr {
namespace {

Result<ArrayHeader> decode(std::string_view text) {
  return decode_header(std::as_bytes(std::span(text)), "layer.weight");
}

// A header in which one text was put in the place of another.
std::string header_with(std::string_view old_text = "", std::string_view new_text = "") {
  std::string text = R"({"chunks": [4, 8], "compressor": null, "dtype": "<f4", "fill_value": null,)"
                     R"( "filters": null, "order": "C", "shape": [9, 8], "zarr_format": 2})";
  if (!old_text.empty()) text.replace(text.find(old_text), old_text.size(), new_text);
  return text;
}

std::vector<std::byte> fill_of(std::string_view dtype, std::string_view value) {
  std::string text = header_with("\"<f4\"", fmt::format("\"{}\"", dtype));
  text.replace(text.find("\"fill_value\": null"), 18, fmt::format("\"fill_value\": {}", value));
  const auto header = decode(text);
  EXPECT_TRUE(header.ok()) << dtype << " " << value << ": " << header.status().to_string();
  return header.ok() ? header->fill : std::vector<std::byte>();
}

template <typename T>
std::vector<std::byte> bytes_of(T value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}

TEST(ArrayHeader, SaysWhatAnArrayIs) {
  const auto header = decode(header_with());
  ASSERT_TRUE(header.ok()) << header.status().to_string();
  EXPECT_EQ(header->dtype, DType::kFloat32);
  EXPECT_EQ(header->shape, (Dims{9, 8}));
  EXPECT_EQ(header->chunks, (Dims{4, 8}));
  EXPECT_EQ(header->separator, '.');
  EXPECT_TRUE(header->fill.empty());
  const auto nested = decode(header_with("\"order\"", R"("dimension_separator": "/", "order")"));
  ASSERT_TRUE(nested.ok()) << nested.status().to_string();
  EXPECT_EQ(nested->separator, '/');
}

TEST(ArrayHeader, KnowsTheDtypesOfMegatron) {
  const std::pair<std::string_view, DType> table[] = {
      {"|b1", DType::kBool},      {"|i1", DType::kInt8},        {"<i2", DType::kInt16},
      {"<i4", DType::kInt32},     {"<i8", DType::kInt64},       {"|u1", DType::kUint8},
      {"<f2", DType::kFloat16},   {"<f4", DType::kFloat32},     {"<f8", DType::kFloat64},
      {"<c8", DType::kComplex64}, {"<c16", DType::kComplex128}, {"bfloat16", DType::kBfloat16}};
  for (const auto& [name, dtype] : table) {
    const auto header = decode(header_with("<f4", name));
    ASSERT_TRUE(header.ok()) << header.status().to_string();
    EXPECT_EQ(header->dtype, dtype) << name;
  }
}

TEST(ArrayHeader, TakesArraysWithoutElementsAndScalars) {
  const auto empty = decode(header_with("[9, 8]", "[0, 8]"));
  ASSERT_TRUE(empty.ok()) << empty.status().to_string();
  std::string scalar = header_with("[9, 8]", "[]");
  scalar.replace(scalar.find("[4, 8]"), 6, "[]");
  ASSERT_TRUE(decode(scalar).ok()) << decode(scalar).status().to_string();
  EXPECT_TRUE(decode(scalar)->shape.empty());
}

TEST(ArrayHeader, AFillValueIsOneElement) {
  EXPECT_EQ(fill_of("<f4", "0.0"), bytes_of(0.0F));
  EXPECT_EQ(fill_of("<f4", "-1.5"), bytes_of(-1.5F));
  EXPECT_EQ(fill_of("<f8", "3"), bytes_of(3.0));
  EXPECT_EQ(fill_of("<f4", "\"-Infinity\""), bytes_of(-INFINITY));
  EXPECT_EQ(fill_of("bfloat16", "1.0"), bytes_of(uint16_t{0x3F80}));
  EXPECT_EQ(fill_of("<f2", "1.0"), bytes_of(uint16_t{0x3C00}));
  EXPECT_EQ(fill_of("<i8", "-7"), bytes_of(int64_t{-7}));
  EXPECT_EQ(fill_of("|u1", "255"), bytes_of(uint8_t{255}));
  EXPECT_EQ(fill_of("|b1", "true"), bytes_of(uint8_t{1}));
  float number = 0;
  const std::vector<std::byte> nan = fill_of("<f4", "\"NaN\"");
  ASSERT_EQ(nan.size(), sizeof(number));
  std::memcpy(&number, nan.data(), sizeof(number));
  EXPECT_TRUE(std::isnan(number));
}

TEST(ArrayHeader, RefusesDamage) {
  const std::pair<std::string, std::string_view> table[] = {
      {"", "no JSON"},
      {"[1]", "no JSON object"},
      {header_with("\"zarr_format\": 2}", "\"zarr_format\": 2"), "no JSON"},
      {header_with("\"shape\"", "\"chunks\""), "stands here again"},
      {"{\"a\":" + std::string(30000, '['), "deeper"},
      {"{\"a\": [" + std::string(30000, '0') + "]}", "no JSON"},
      {header_with("\"zarr_format\": 2", "\"zarr_format\": \"2\""), "zarr_format"},
      {header_with("\"compressor\": null, ", ""), "no compressor"},
      {header_with("\"filters\": null", "\"filters\": 3"), "filters"},
      {header_with("\"order\": \"C\", ", ""), "no order"},
      {header_with("\"dtype\": \"<f4\", ", ""), "no dtype"},
      {header_with("\"fill_value\": null,", ""), "no fill_value"},
      {header_with("[9, 8]", "\"9\""), "no shape"},
      {header_with("[9, 8]", "[9, -8]"), "in shape that is no count"},
      {header_with("[9, 8]", "[9, 8.5]"), "in shape that is no count"},
      {header_with("[9, 8]", "[9, 99999999999999999999]"), "in shape that is no count"},
      {header_with("[9, 8]", "[9]"), "1 dimensions in its shape and 2 in its chunks"},
      {header_with("[9, 8]", "[9223372036854775807, 9223372036854775807]"), "can be counted"},
      {header_with("[9, 8]", "[9223372036854775807, 1]"), "can be counted"},
      {header_with("[4, 8]", "[4, 4611686018427387904]"), "can be counted"},
      {header_with("[4, 8]", "[4, 0]"), "chunks without elements"},
      {header_with("\"order\"", "\"dimension_separator\": \"\", \"order\""), "neither"},
      {header_with("\"fill_value\": null", "\"fill_value\": \"x\""), "no float32"},
      {header_with("\"fill_value\": null", "\"fill_value\": true"), "no float32"},
  };
  for (const auto& [text, says] : table) {
    const Status status = decode(text).status();
    EXPECT_FAILURE(status, StatusCode::kDataLoss, says, "layer.weight");
    EXPECT_EQ(status.detail("tensor"), "layer.weight");
    EXPECT_EQ(status.detail("file"), "layer.weight/.zarray");
  }
  std::string deep = "[";
  for (int i = 0; i < 100; ++i) deep += "9,";
  EXPECT_FAILURE(decode(header_with("[9, 8]", deep + "9]")).status(), StatusCode::kDataLoss,
                 "101 dimensions");
}

TEST(ArrayHeader, RefusesNumbersThatAreNoneOfTheDtype) {
  const std::pair<std::string_view, std::string_view> table[] = {
      {"|u1", "256"}, {"|u1", "-1"}, {"|i1", "128"}, {"<i2", "1.0"}, {"|b1", "1"}};
  for (const auto& [dtype, value] : table) {
    std::string text = header_with("<f4", dtype);
    text.replace(text.find("\"fill_value\": null"), 18, fmt::format("\"fill_value\": {}", value));
    EXPECT_EQ(decode(text).status().code(), StatusCode::kDataLoss) << dtype << " " << value;
  }
}

TEST(ArrayHeader, NamesWhatIsNotRead) {
  const std::pair<std::string, std::string_view> table[] = {
      {header_with("\"zarr_format\": 2", "\"zarr_format\": 3"), "version 3"},
      {header_with("\"compressor\": null", R"("compressor": {"id": "blosc", "clevel": 5})"),
       "compressor 'blosc'"},
      {header_with("\"filters\": null", R"("filters": [{"id": "delta"}])"), "filters 'delta'"},
      {header_with("\"C\"", "\"F\""), "order F"},
      {header_with("<f4", ">f4"), "dtype '>f4'"},
      {header_with("<f4", "<V2"), "dtype '<V2'"},
      {header_with("\"<f4\"", R"([["a", "<f4"]])"), "dtype of several parts"},
  };
  for (const auto& [text, says] : table) {
    const Status status = decode(text).status();
    EXPECT_FAILURE(status, StatusCode::kUnimplemented, says, "array 'layer.weight'");
    EXPECT_NE(status.detail("hint").find("torch_dist"), std::string::npos);
  }
  EXPECT_TRUE(decode(header_with("\"filters\": null", "\"filters\": []")).ok());
}

}  // namespace
}  // namespace shardwright::format::zarr
