// SPDX-License-Identifier: Apache-2.0
//
// Against CPython: opcodes as pickletools lists them, values as its unpickler makes them, and what
// is written it reads. Of damaged pickles nothing is taken that CPython takes otherwise.
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/format/archive/pickle_reader.h"
#include "core/format/archive/pickle_tokens.h"
#include "core/format/archive/pickle_writer.h"
#include "tests/core/format/archive/oracle.h"
#include "tests/core/format/archive/pickle_description.h"
#include "tests/support/random_source.h"
#include "tests/support/run_length.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::format::archive {
namespace {

using test::text_of_file;

bool run_oracle(const std::string& arguments) {
  return test::run_oracle("pickle_oracle.py", arguments);
}

std::string value_of(std::string_view pickle) {
  PickleOptions options;
  options.file = "f.pkl";
  const auto data = read_pickle(test::pickle_of(pickle), options);
  return data.ok() ? test::describe(*data) : "refused";
}

std::string tokens_of(std::string_view pickle) {
  PickleTokens tokens(test::pickle_of(pickle), "f.pkl");
  PickleToken token;
  std::string lines;
  while (tokens.next(&token))
    lines += fmt::format("{} {}\n", token.offset, pickle_opcode_info(token.opcode).name);
  return lines;
}

TEST(PickleDifferential, ReadsWhatCPythonWritesAndNothingThatItReadsOtherwise) {
  const shardwright::test::TemporaryDirectory folder;
  // The same each time, but for the long run: the short one cannot fail by chance.
  constexpr int64_t kSeed = 20;
  shardwright::test::RandomSource random;
  const int64_t seed = shardwright::test::is_soak() ? random.between(0, 1 << 30) : kSeed;
  const int64_t sound = shardwright::test::rounds(300, 2000);
  const int64_t damaged = shardwright::test::rounds(1000, 10000);
  ASSERT_TRUE(run_oracle(fmt::format("'{}' {} {} {}", folder / "", seed, sound, damaged)));
  int64_t both = 0;
  for (int64_t i = 0; i < sound + damaged; ++i) {
    const std::string pickle = text_of_file(folder / fmt::format("{}.pickle", i));
    const std::string listed = text_of_file(folder / fmt::format("{}.tokens", i));
    const std::string expected = text_of_file(folder / fmt::format("{}.value", i));
    const std::string tokens = tokens_of(pickle);
    const std::string found = value_of(pickle);
    if (i < sound) {
      ASSERT_NE(expected, "refused") << i;
      EXPECT_EQ(tokens, listed) << i;
      EXPECT_EQ(found, expected) << i;
      continue;
    }
    // Each gives up where it likes; up to there they see the same.
    const size_t common = std::min(tokens.size(), listed.size());
    EXPECT_EQ(tokens.substr(0, common), listed.substr(0, common)) << i;
    if (found == "refused" || expected == "refused") continue;
    EXPECT_EQ(found, expected) << i;
    ++both;
  }
  EXPECT_GT(both, 0);
}

TEST(PickleDifferential, CPythonReadsWhatIsWritten) {
  const shardwright::test::TemporaryDirectory folder;
  for (const PickleProtocol protocol : {PickleProtocol::k2, PickleProtocol::k4}) {
    PickleWriter writer(protocol);
    writer.empty_list().mark();
    for (const int64_t value : {int64_t{0}, int64_t{255}, int64_t{65536}, int64_t{-1}, INT64_MIN})
      writer.integer(value);
    writer.none().boolean(true).real(-0.0).text("\xC3\xA9").shared_text("a").shared_text("a");
    writer.global("a.b", "C.D").empty_tuple().new_object();
    writer.empty_dict().text("x").integer(1).tuple(1).set_item().build();
    writer.global("collections", "OrderedDict").empty_tuple().reduce();
    writer.mark().text("k").global("a.b", "C.D").set_items_to_mark();
    const PickleMemo dict = writer.memoize();
    writer.get(dict).bytes(test::pickle_of("\xFF\x01")).text("id").persistent_id();
    for (int i = 0; i < 300; ++i) writer.shared_text(fmt::format("text {}", i));
    writer.shared_text("text 299").appends_to_mark();
    const std::string pickle = std::move(writer).finish();
    std::ofstream(folder / "written", std::ios::binary) << pickle;
    ASSERT_TRUE(
        run_oracle(fmt::format("--value '{}' > '{}'", folder / "written", folder / "value")));
    EXPECT_EQ(text_of_file(folder / "value"), value_of(pickle));
    EXPECT_NE(value_of(pickle), "refused");
  }
}

}  // namespace
}  // namespace shardwright::format::archive
