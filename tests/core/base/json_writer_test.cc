// SPDX-License-Identifier: Apache-2.0
//
// JSON text: commas, escapes, numbers.
#include "core/base/json_writer.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace shardwright {
namespace {

TEST(JsonWriter, PutsCommasWhereTheyBelong) {
  JsonWriter writer;
  writer.begin_object().key("a").number(1).key("b").begin_array().number(2).boolean(true).null();
  writer.begin_object()
      .end_object()
      .begin_array()
      .end_array()
      .end_array()
      .key("c")
      .text("x")
      .end_object();
  EXPECT_EQ(writer.str(), R"({"a":1,"b":[2,true,null,{},[]],"c":"x"})");
}

TEST(JsonWriter, EscapesWhatJsonNeeds) {
  JsonWriter writer;
  writer.text(std::string_view("\"\\\n\r\t\x01\x7f\0 \xC3\xA4", 11));
  EXPECT_EQ(writer.str(), "\"\\\"\\\\\\n\\r\\t\\u0001\\u007f\\u0000 \xC3\xA4\"");
}

TEST(JsonWriter, ReplacesBytesThatAreNotUtf8) {
  JsonWriter writer;
  writer.text("a\xFF\xE2\x82");
  EXPECT_EQ(writer.str(), "\"a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(JsonWriter, WritesNumbersThatReadBackEqual) {
  JsonWriter writer;
  writer.begin_array().number(std::numeric_limits<int64_t>::min()).number_unsigned(UINT64_MAX);
  writer.number_real(0.1).number_real(NAN).number_real(INFINITY).end_array();
  EXPECT_EQ(writer.str(), "[-9223372036854775808,18446744073709551615,0.1,null,null]");
}

TEST(JsonWriter, TakesRawValuesAsTheyAre) {
  JsonWriter writer;
  writer.begin_array().raw("{\"x\":1}").raw("2").end_array();
  EXPECT_EQ(writer.take(), "[{\"x\":1},2]");
}

}  // namespace
}  // namespace shardwright
