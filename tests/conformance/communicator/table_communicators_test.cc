// SPDX-License-Identifier: Apache-2.0
//
// Communicators that come as a table of C functions, out of a plugin, before the conformance suite.
#include <atomic>
#include <string>

#include "capi/boundary/communicator_argument.h"
#include "shardwright/shardwright.h"
#include "tests/conformance/communicator/communicator_suite.h"

namespace shardwright::collective {
namespace {

// Loads the sample plugin once; the context lives as long as the program.
shw_context* context_with_plugin() {
  static shw_context* const kContext = [] {
    shw_context* context = nullptr;
    shw_error* error = nullptr;
    EXPECT_EQ(shw_context_create(nullptr, &context, &error), SHW_OK);
    EXPECT_EQ(shw_context_load_plugin(context, "sample_team", &error), SHW_OK)
        << shw_error_message(error, nullptr);
    return context;
  }();
  return kContext;
}

CommunicatorPtr open_rank(const std::string& config) {
  shw_communicator* handle = nullptr;
  shw_error* error = nullptr;
  EXPECT_EQ(shw_context_open_communicator(context_with_plugin(), "sample_team", config.data(),
                                          config.size(), &handle, &error),
            SHW_OK)
      << shw_error_message(error, nullptr);
  CommunicatorPtr communicator = capi::read_communicator(handle).value();
  shw_communicator_release(handle);
  return communicator;
}

CommunicatorMaker team(int32_t world_size) {
  return {"team_" + std::to_string(world_size), world_size, [world_size] {
            static std::atomic<int> made = 0;
            const std::string name = "conformance-" + std::to_string(++made);
            Communicators members;
            for (int32_t rank = 0; rank < world_size; ++rank)
              members.push_back(
                  open_rank(name + " " + std::to_string(rank) + " " + std::to_string(world_size)));
            return members;
          }};
}

INSTANTIATE_TEST_SUITE_P(Plugin, CommunicatorConformance,
                         testing::Values(team(1), team(2), team(3), team(8)),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace shardwright::collective
