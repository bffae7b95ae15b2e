// SPDX-License-Identifier: Apache-2.0
//
// Communicators that come as a table of C functions, out of a plugin, before the conformance suite.
#include <atomic>
#include <string>
#include <utility>

#include "capi/boundary/communicator_argument.h"
#include "plugins/tables/communicator_table.h"
#include "shardwright/shardwright.h"
#include "tests/conformance/communicator/communicator_suite.h"
#include "tests/support/plugin_host.h"

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

// Ranks of the core on their way through the table that a plugin would offer of them, each with the
// operations of its own.
CommunicatorMaker core_of(int32_t world_size) {
  return {"core_" + std::to_string(world_size), world_size, [world_size] {
            test::be_the_host_of_plugins();
            Communicators members;
            for (CommunicatorPtr& each : make_thread_communicators(world_size)) {
              shw_communicator_vtable vtable = plugin_tables::communicator_functions("core");
              plugin_tables::add_own_operations(&vtable);
              plugin_tables::fill_table(std::move(each), &vtable);
              shw_communicator* handle = nullptr;
              EXPECT_EQ(shw_communicator_create(&vtable, &handle, nullptr), SHW_OK);
              members.push_back(capi::read_communicator(handle).value());
              shw_communicator_release(handle);
            }
            return members;
          }};
}

INSTANTIATE_TEST_SUITE_P(Core, CommunicatorConformance,
                         testing::Values(core_of(1), core_of(2), core_of(3)),
                         [](const auto& each) { return each.param.name; });

INSTANTIATE_TEST_SUITE_P(Plugin, CommunicatorConformance,
                         testing::Values(team(1), team(2), team(3), team(8)),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace shardwright::collective
