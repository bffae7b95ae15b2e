// SPDX-License-Identifier: Apache-2.0
//
// Byte objects become items that hold values, and come back as what they were.
#include "core/format/torch_dcp/value_pickle.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <new>

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "core/format/archive/pickle_export.h"
#include "core/format/torch_dcp/byte_items.h"
#include "tests/support/expect_failure.h"
#include "tests/support/no_memory.h"

namespace shardwright::format::torch_dcp {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// The object that an item of these bytes is read as.
ByteObject read_back(std::string_view type, std::string_view text) {
  const auto item = object_item(Framing::kAligned, type, bytes_of(text));
  EXPECT_TRUE(item.ok()) << text << item.status().to_string();
  uint64_t budget = kMaxReadObjects;
  return read_object(*item, "item", &budget);
}

TEST(ValuePickle, PlainValuesComeBackAsTheJsonTheyWere) {
  for (const std::string_view text : {"null",
                                      "true",
                                      "false",
                                      "0",
                                      "-1",
                                      "255",
                                      "65536",
                                      "-2147483649",
                                      "9223372036854775807",
                                      "-9223372036854775808",
                                      "18446744073709551615",
                                      "123456789012345678901234567890",
                                      "-123456789012345678901234567890",
                                      "0.5",
                                      "-2.25",
                                      "1e+300",
                                      "\"\"",
                                      "\"a \\\"b\\\"\"",
                                      "\"\xc3\xa4\xe2\x82\xac\"",
                                      "[]",
                                      "[1]",
                                      "[1,[2,\"x\"],{}]",
                                      "{}",
                                      "{\"a\":1}",
                                      "{\"a\":1,\"b\":[null,{\"c\":2.5}]}",
                                      "{\"$tuple\":[]}",
                                      "{\"$tuple\":[1]}",
                                      "{\"$tuple\":[1,2,3,4]}",
                                      "{\"$float\":\"nan\"}",
                                      "{\"$float\":\"inf\"}",
                                      "{\"$float\":\"-inf\"}",
                                      "{\"$map\":[[1,\"one\"],[{\"$tuple\":[1,2]},2]]}"}) {
    const ByteObject object = read_back(archive::kJsonType, text);
    EXPECT_EQ(object.content_type, archive::kJsonType) << text;
    EXPECT_EQ(object.bytes, text);
  }
}

TEST(ValuePickle, WhatOnlyLooksLikeATagIsAMapping) {
  for (const std::string_view text :
       {"{\"$tuple\":1}", "{\"$float\":\"x\"}", "{\"$map\":[[1]]}", "{\"$tuple\":[1],\"b\":2}",
        "{\"$map\":[[[1],2]]}", "{\"$map\":[[{\"$float\":\"x\"},2]]}", "{\"$map\":[[1,2],[3]]}"}) {
    EXPECT_FALSE(read_back(archive::kJsonType, text).is_stored) << text;
  }
}

TEST(ValuePickle, LongContainersComeInBatches) {
  std::string text = "[0";
  for (int i = 1; i < 2001; ++i) text += "," + std::to_string(i);
  text += "]";
  EXPECT_EQ(read_back(archive::kJsonType, text).bytes, text);
}

TEST(ValuePickle, BytesComeBackAsBytes) {
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  for (const std::string_view type : {"application/octet-stream", "image/png"}) {
    const ByteObject object = read_back(type, all);
    EXPECT_EQ(object.content_type, archive::kBytesType);
    EXPECT_EQ(object.bytes, all);
  }
  EXPECT_EQ(read_back("application/octet-stream", "").bytes, "");
}

TEST(ValuePickle, APickleIsNotTouched) {
  const std::string_view set("\x80\x04\x8f\x94(K\x01K\x02\x90.", 11);
  const auto item = object_item(Framing::kAligned, archive::kPickleType, bytes_of(set));
  const std::string text(reinterpret_cast<const char*>(item->data()), item->size());
  EXPECT_NE(text.find(set), std::string::npos);
  EXPECT_EQ(read_back(archive::kPickleType, set).content_type, archive::kPickleType);
}

TEST(ValuePickle, AsPythonPicklesIt) {
  EXPECT_EQ(to_hex(bytes_of(*pickle_of_json("{\"a\":[1,2],\"b\":\"x\"}"))),
            "80027d71002858010000006171015d7102284b014b0265580100000062710358010000007871047"
            "52e");
  EXPECT_EQ(to_hex(bytes_of(*pickle_of_json("3000000000"))), "80028a05005ed0b2002e");
}

TEST(ValuePickle, RefusesWhatIsNoJson) {
  for (const std::string_view text : {"", "{", "nan", "[1,]", "1 2"})
    EXPECT_EQ(pickle_of_json(text).status().code(), StatusCode::kInvalidArgument) << text;
  const std::string deep(100'000, '[');
  EXPECT_EQ(pickle_of_json(deep).status().code(), StatusCode::kInvalidArgument);
}

TEST(ValuePickle, SaysWhichNumbersItDoesNotTake) {
  for (const std::string& text : {std::string(400, '9'), "[1, -" + std::string(400, '9') + "]",
                                  std::string("{\"a\": 1e999}")}) {
    const Status status = pickle_of_json(text).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("a number beyond 1.8e308"), std::string_view::npos)
        << status.to_string();
  }
  EXPECT_TRUE(pickle_of_json(std::string(308, '9')).ok());
}

// A list of so many numbers, in a process that may take no more than a few times its text.
TEST(ValuePickle, TakesNoMemoryForEachNumber) {
  SHW_SKIP_WITHOUT_OWN_OPERATORS();
  constexpr size_t kNumbers = 4'000'000;
  constexpr rlim_t kMostBytes = 6 * 2 * kNumbers;
  std::string text = "[0";
  for (size_t i = 1; i < kNumbers; ++i) text += ",7";
  text += "]";
  const pid_t child = ::fork();
  if (child == 0) {
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) + kMostBytes;
    const rlimit limit{most, most};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(3);
    try {
      ::_exit(pickle_of_json(text).ok() ? 0 : 1);
    } catch (const std::bad_alloc&) {
      ::_exit(2);
    }
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace shardwright::format::torch_dcp
