// SPDX-License-Identifier: Apache-2.0
//
// A write list that does not fit the state is refused.
#include "core/plan/save/write_items.h"

#include <functional>

#include "tests/core/plan/world.h"

namespace shardwright::plan::test {
namespace {

TEST(CheckWriteList, NamesWhatDoesNotFit) {
  std::vector<State> states;
  states.push_back(state_of({whole("a", {2}), whole("b", {3})}, {{"o", "123"}}));
  WriteList good;
  good.items = planned(states).lists[0].items;
  EXPECT_TRUE(check_write_list(good, states[0], {0, 1}).ok());
  struct Case {
    std::string_view text;
    std::function<void(WriteList&)> change;
  };
  const std::vector<Case> cases = {
      {"rank 1 of 1", [](WriteList& list) { list.rank = 1; }},
      {"rank 0 of 2", [](WriteList& list) { list.world_size = 2; }},
      {"tensor 7 of 2", [](WriteList& list) { list.items[0].entry = 7; }},
      {"piece 1 of 1 of tensor 'a'", [](WriteList& list) { list.items[0].piece = 1; }},
      {"'a' has 8 bytes, the list says 9", [](WriteList& list) { list.items[0].size_bytes = 9; }},
      {"object 1 of 1", [](WriteList& list) { list.items[2].entry = 1; }},
      {"object 'o' has 3 bytes", [](WriteList& list) { list.items[2].size_bytes = 4; }},
      {"twice", [](WriteList& list) { list.items.push_back(list.items[0]); }},
  };
  for (const Case& each : cases) {
    WriteList list = good;
    each.change(list);
    EXPECT_FAILURE(check_write_list(list, states[0], {0, 1}), StatusCode::kFailedPrecondition,
                   each.text);
  }
}

}  // namespace
}  // namespace shardwright::plan::test
