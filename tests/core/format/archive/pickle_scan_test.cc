// SPDX-License-Identifier: Apache-2.0
//
// Pickles that attack: each is listed with what it would import and call, and nothing happens.
#include "core/format/archive/pickle_scan.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/core/format/archive/pickle_description.h"
#include "tests/support/expect_failure.h"

namespace shardwright::format::archive {
namespace {

using std::string_literals::operator""s;

std::string listing_of(const PickleScan& scan) {
  std::string out;
  for (const PickleImport& import : scan.imports) {
    out += import.module + "." + import.name;
    if (import.calls > 0) out += "()";
    out += " ";
  }
  return out;
}

struct Row {
  const char* what;
  std::string pickle;
  const char* listing;
};

TEST(PickleScan, ListsWhatAttacksWouldCall) {
  const Row rows[] = {
      {"a command", "cos\nsystem\n(S'id'\ntR.", "os.system() "},
      {"a command of protocol 4", "\x80\x04\x8C\x05posix\x8C\x06system\x93\x8C\x02id\x85R.",
       "posix.system() "},
      {"INST", "(S'id'\nios\nsystem\n.", "os.system() "},
      {"OBJ", "(cos\nsystem\nS'id'\no.", "os.system() "},
      {"eval", "c__builtin__\neval\n(S'1'\ntR.", "__builtin__.eval() "},
      {"a chain of getattr",
       "cbuiltins\ngetattr\ncos\npath\n\x8C\x02os\x86R\x94"
       "cbuiltins\ngetattr\nh\0\x8C\x06system\x86R"
       "\x8C\x02id\x85R."s,
       "builtins.getattr() os.path (computed value).() "},
      {"a nested name", "\x8C\x05torch\x8C\x09os.system\x93\x8C\x02id\x85R.", "torch.os.system() "},
      {"a state that is a call", "ca\nB\n)\x81}(\x8C\x01xcos\nsystem\n\x8C\x02id\x85Rub.",
       "a.B os.system() "},
      {"a dropped call", "cos\nsystem\n(S'id'\ntR0N.", "os.system() "},
      {"a call behind the root", "Ncos\nsystem\n(S'id'\ntR1.", "os.system() "},
      {"an extension", "\x83\x05\0)R."s, "(extension registry).code 5() "},
      {"remote code", "ctorch.hub\nload\n(S'a'\nS'b'\ntR.", "torch.hub.load() "},
  };
  for (const Row& row : rows) {
    const PickleScan scan = scan_pickle(test::pickle_of(row.pickle), "f.pkl");
    EXPECT_EQ(listing_of(scan), row.listing) << row.what;
  }
}

TEST(PickleScan, ListsWhatComesBeforeADefect) {
  const PickleScan scan = scan_pickle(test::pickle_of("cos\nsystem\n(S'id'\ntR\xFF"), "f.pkl");
  EXPECT_EQ(listing_of(scan), "os.system() ");
  EXPECT_FAILURE(scan.ended, StatusCode::kDataLoss, "f.pkl", "0xff");
}

TEST(PickleScan, SaysProtocolAndEnd) {
  const PickleScan scan = scan_pickle(test::pickle_of("\x80\x02N.rest"), "f.pkl");
  EXPECT_TRUE(scan.ended.ok());
  EXPECT_EQ(scan.protocol, 2);
  EXPECT_EQ(scan.end, 4U);
  EXPECT_TRUE(scan.imports.empty());
}

}  // namespace
}  // namespace shardwright::format::archive
