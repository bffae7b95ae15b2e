// SPDX-License-Identifier: Apache-2.0
//
// What is written reads back the same; that CPython reads it too is shown by
// pickle_differential_test.py.
#include "core/format/archive/pickle_writer.h"

#include <string>

#include <gtest/gtest.h>

#include "core/format/archive/pickle_reader.h"
#include "tests/core/format/archive/pickle_description.h"

namespace shardwright::format::archive {
namespace {

std::string read_back(PickleWriter writer) {
  const std::string bytes = std::move(writer).finish();
  PickleOptions options;
  options.file = "written";
  const auto data = read_pickle(test::pickle_of(bytes), options);
  return data.ok() ? test::describe(*data) : data.status().to_string();
}

constexpr PickleProtocol kBoth[] = {PickleProtocol::k2, PickleProtocol::k4};

TEST(PickleWriter, WritesIntegersOfEveryWidth) {
  const int64_t values[] = {0,      1,          255,        256,         65535,     65536,    -1,
                            -65536, 2147483647, 2147483648, -2147483648, INT64_MIN, INT64_MAX};
  for (const PickleProtocol protocol : kBoth) {
    for (const int64_t value : values) {
      PickleWriter writer(protocol);
      writer.integer(value);
      EXPECT_EQ(read_back(std::move(writer)), std::to_string(value));
    }
  }
}

TEST(PickleWriter, WritesScalarsAndContainers) {
  for (const PickleProtocol protocol : kBoth) {
    PickleWriter writer(protocol);
    writer.empty_list().mark().none().boolean(true).boolean(false).real(1.5).text("a");
    writer.text(std::string(300, 'b')).empty_tuple();
    writer.integer(1).integer(2).tuple(2).mark().integer(1).tuple_to_mark().appends_to_mark();
    writer.empty_dict().text("k").integer(1).set_item().append();
    EXPECT_EQ(read_back(std::move(writer)), "[None, True, False, real:3ff8000000000000, \"a\", \"" +
                                                std::string(300, 'b') +
                                                "\", (), (1, 2), (1), {\"k\": 1}]");
  }
}

TEST(PickleWriter, WritesBytesAsEachProtocolHasThem) {
  const std::string value("\0\x7F\x80\xFF", 4);
  PickleWriter old(PickleProtocol::k2);
  old.bytes(test::pickle_of(value));
  EXPECT_EQ(read_back(std::move(old)),
            "_codecs.encode(\"\\x00\\x7f\\xc2\\x80\\xc3\\xbf\", \"latin1\")");
  PickleWriter writer(PickleProtocol::k4);
  writer.bytes(test::pickle_of(value));
  EXPECT_EQ(read_back(std::move(writer)), "bytes:007f80ff");
}

TEST(PickleWriter, WritesObjects) {
  for (const PickleProtocol protocol : kBoth) {
    PickleWriter writer(protocol);
    writer.empty_list().mark();
    writer.global("collections", "OrderedDict").empty_tuple().reduce();
    writer.mark().text("a").integer(1).set_items_to_mark();
    writer.global("a", "B").empty_tuple().new_object().empty_dict().text("x").none().set_item();
    writer.build();
    writer.text("0").persistent_id().appends_to_mark();
    EXPECT_EQ(read_back(std::move(writer)),
              "[collections.OrderedDict(){\"a\": 1}, a.B()|{\"x\": None}, persistent:\"0\"]");
  }
}

TEST(PickleWriter, LooksUpGlobalsAndSharedTextsOnce) {
  for (const PickleProtocol protocol : kBoth) {
    PickleWriter writer(protocol);
    writer.empty_list().mark();
    for (int i = 0; i < 300; ++i) writer.global("module.of.some.length", "name");
    const uint64_t before = writer.size_bytes();
    for (int i = 0; i < 300; ++i) writer.shared_text("a text of some length");
    EXPECT_LT(writer.size_bytes() - before, 300U * 4);
    EXPECT_LT(before, 300U * 4);
    writer.appends_to_mark();
    EXPECT_NE(read_back(std::move(writer)).find("\"a text of some length\"]"), std::string::npos);
  }
}

TEST(PickleWriter, TakesValuesFromManyMemoEntries) {
  for (const PickleProtocol protocol : kBoth) {
    PickleWriter writer(protocol);
    writer.empty_list().mark();
    PickleMemo last;
    for (int i = 0; i < 1000; ++i) {
      writer.integer(i);
      last = writer.memoize();
    }
    writer.get(last).get({7}).appends_to_mark();
    const std::string value = read_back(std::move(writer));
    EXPECT_TRUE(value.ends_with(", 999, 999, 7]")) << value;
  }
}

}  // namespace
}  // namespace shardwright::format::archive
