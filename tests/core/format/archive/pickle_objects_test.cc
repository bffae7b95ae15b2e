// SPDX-License-Identifier: Apache-2.0
//
// Globals, calls and instances: as data, as records of a vocabulary, or refused.
#include <string>

#include <gtest/gtest.h>

#include "core/format/archive/pickle_reader.h"
#include "tests/core/format/archive/pickle_description.h"
#include "tests/support/expect_failure.h"

namespace shardwright::format::archive {
namespace {

using std::string_literals::operator""s;

constexpr std::string_view kPointFields[] = {"x", "y"};
constexpr PickleClass kVocabulary[] = {
    {"shapes", "Point", kPickleInstance, kPointFields},
    {"shapes", "Size", kPickleCall},
    {"shapes", "Color", kPickleEnum},
    {"builtins", "getattr", kPickleGetattr},
    {"shapes", "red"},
};

Result<PickleData> read(std::string_view bytes, PickleCalls calls = PickleCalls::kAsData) {
  PickleOptions options;
  options.file = "f.pkl";
  options.vocabulary = kVocabulary;
  options.calls = calls;
  return read_pickle(test::pickle_of(bytes), options);
}

std::string value_of(std::string_view bytes, PickleCalls calls = PickleCalls::kAsData) {
  const auto data = read(bytes, calls);
  return data.ok() ? test::describe(*data) : data.status().to_string();
}

const std::string kPoint = "cshapes\nPoint\n)\x81";

TEST(PickleObjects, MakeRecordsOfKnownClasses) {
  EXPECT_EQ(value_of(kPoint + "."), "known0(absent, absent)");
  EXPECT_EQ(value_of(kPoint + "}b."), "known0(absent, absent)");
  EXPECT_EQ(value_of(kPoint + "}\x94(\x8C\x01xK\x01\x8C\x01yK\x02ub."), "known0(1, 2)");
  EXPECT_EQ(value_of(kPoint + "}(\x8C\x01yK\x02\x8C\x01xK\x01ub."), "known0(1, 2)");
  EXPECT_EQ(value_of(kPoint + "}(\x8C\x01yK\x02\x8C\x01zK\x03ub."),
            "known0(absent, 2)|{\"y\": 2, \"z\": 3}");
  EXPECT_EQ(value_of(kPoint + "K\x01K\x02\x86"
                              "b."),
            "known0(absent, absent)|(1, 2)");
  EXPECT_EQ(value_of("cshapes\nSize\nK\x01K\x02\x86\x85R."), "known1((1, 2))");
  EXPECT_EQ(value_of("cshapes\nred\n."), "<shapes.red>");
}

TEST(PickleObjects, KeepUnknownOnesWhole) {
  EXPECT_EQ(value_of("cos\nsystem\n\x8C\x02id\x85R."), "os.system(\"id\")");
  EXPECT_EQ(value_of("ca\nB\n)\x81K\x01"
                     "b."),
            "a.B()|1");
  EXPECT_EQ(value_of("ca\nB\n)R(K\x01K\x02"
                     "eK\x03K\x04s."),
            "a.B()[1, 2]{3: 4}");
  EXPECT_EQ(value_of("ca\nB\nN\x85}\x8C\x01kK\x01s\x92."), "a.B(None)**{\"k\": 1}");
  EXPECT_EQ(value_of("(K\x01ia\nB\n."), "a.B(1)");
  EXPECT_EQ(value_of("(ca\nB\nK\x01o."), "a.B(1)");
  EXPECT_EQ(value_of("\x8C\x01"
                     "a\x8C\x03"
                     "B.C\x93)R."),
            "a.B.C()");
  EXPECT_EQ(value_of("ca\nB\n)R)R."), "[a.B()]()");
  EXPECT_EQ(value_of("\x82\x07."), "<(extension registry).code 7>");
  EXPECT_EQ(value_of("Pid 1\n."), "persistent:\"id 1\"");
  EXPECT_EQ(value_of("K\x01\x85Q."), "persistent:(1)");
}

// What is known by name and made in another way than the vocabulary says stays an object.
TEST(PickleObjects, OfKnownClassesMadeOtherwiseAreObjects) {
  EXPECT_EQ(value_of("cshapes\nPoint\nK\x01\x85\x81."), "shapes.Point(1)");
  EXPECT_EQ(value_of("cshapes\nPoint\n)R."), "shapes.Point()");
  EXPECT_EQ(value_of(kPoint + "K\x01K\x02s}b."), "shapes.Point(){1: 2}|{}");
  EXPECT_EQ(value_of("cshapes\nSize\nK\x01\x85RK\x02"
                     "b."),
            "shapes.Size(1)|2");
  EXPECT_EQ(read("cshapes\nPoint\n)R.")->known(read("cshapes\nPoint\n)R.")->root()), 0);
}

TEST(PickleObjects, RefuseStatesThatCannotBe) {
  EXPECT_FAILURE(read(kPoint + "}b}b.").status(), StatusCode::kDataLoss, "BUILD", "again");
  EXPECT_FAILURE(read("ca\nB\n)R}b}b.").status(), StatusCode::kDataLoss, "BUILD", "again");
  EXPECT_FAILURE(read(kPoint + "}bNNs.").status(), StatusCode::kDataLoss, "behind its state");
}

TEST(PickleObjects, RefuseCallsOfOthersWhereOnlyKnownOnesMayStand) {
  const char* const rows[] = {
      "cos\nsystem\n\x8C\x02id\x85R.",
      "cos\nsystem\n\x8C\x02id\x85R0N.",  // dropped again
      "cshapes\nPoint\n)R.",              // an instance, never called
      "cshapes\nred\n)R.",
      "cshapes\nSize.__init__\n)R.",
      "(\x8C\x02idios\nsystem\n.",
      "(cos\nsystem\n\x8C\x02ido.",
      "cbuiltins\ngetattr\ncos\nx\n\x8C\x06system\x86R.",
      "cbuiltins\ngetattr\ncshapes\nColor\nK\x01\x86R.",
      "cshapes\nSize\n)R)R.",
      "cshapes\nSize\n)R)\x81.",
  };
  for (const char* const row : rows) {
    const Status status = read(row, PickleCalls::kKnownOnly).status();
    EXPECT_FAILURE(status, StatusCode::kPermissionDenied, "f.pkl", "nothing was called");
    EXPECT_NE(status.detail("unsafe"), "");
    EXPECT_NE(status.detail("offset"), "");
  }
  EXPECT_EQ(read(rows[0], PickleCalls::kKnownOnly).status().detail("unsafe"), "os.system");
}

TEST(PickleObjects, RefuseWhatAnIndexNeverHolds) {
  for (const char* const row : {"\x82\x07.", "Pid\n.", "NQ.", "ca\nB\n)}\x92."}) {
    EXPECT_FAILURE(read(row, PickleCalls::kKnownOnly).status(), StatusCode::kDataLoss,
                   "has no place");
  }
}

TEST(PickleObjects, LetKnownCallsAndOpaqueInstancesPass) {
  const auto known = PickleCalls::kKnownOnly;
  EXPECT_EQ(value_of("cshapes\nSize\n)R.", known), "known1()");
  EXPECT_EQ(value_of("cbuiltins\ngetattr\ncshapes\nColor\n\x8C\x03RED\x86R.", known),
            "known3(<shapes.Color>, \"RED\")");
  EXPECT_EQ(value_of("ca\nB\n)\x81}b.", known), "a.B()|{}");
  EXPECT_EQ(value_of("ca\nB\n.", known), "<a.B>");
}

// The state dict is given back when the record took its values; whoever asks for it all the same
// gets it.
TEST(PickleObjects, GiveBackOnlyWhatNobodyAsksFor) {
  const std::string built = kPoint + "}\x94(\x8C\x01xK\x01\x8C\x01yK\x02ub";
  EXPECT_EQ(value_of(built + "]\x86."), "(known0(1, 2), [])");
  EXPECT_EQ(value_of(built + "h\0\x86."s), "(known0(1, 2), {\"x\": 1, \"y\": 2})");
  EXPECT_EQ(value_of("}\x94" + kPoint +
                     "h\0b\x8C\x01xK\x01"
                     "0h\0K\x05K\x06s\x87."s),
            value_of("}\x94" + kPoint +
                     "h\0b\x8C\x01xK\x01"
                     "0h\0K\x05K\x06s\x87."s));
  EXPECT_EQ(value_of("cshapes\nSize\nK\x01\x85\x94Rh\0\x86."s), "(known1(1), (1))");
  EXPECT_EQ(value_of("cshapes\nSize\nK\x01\x85"
                     "2\x86"
                     "0K\x02\x85R."),
            "known1(2)");
}

TEST(PickleObjects, ListTheGlobalsWithTheirUses) {
  const auto data = read(
      "cos\nsystem\n)R0cos\nsystem\n0ca\nB\n)\x81"
      "0cshapes\nred\n.");
  ASSERT_TRUE(data.ok()) << data.status().to_string();
  const auto globals = data->globals();
  ASSERT_EQ(globals.size(), 3U);
  EXPECT_EQ(globals[0].name, "system");
  EXPECT_EQ(globals[0].imports, 2U);
  EXPECT_EQ(globals[0].calls, 1U);
  EXPECT_EQ(globals[0].known, -1);
  EXPECT_EQ(globals[1].instances, 1U);
  EXPECT_EQ(globals[2].known, 4);
}

}  // namespace
}  // namespace shardwright::format::archive
