// SPDX-License-Identifier: Apache-2.0
//
// The plugin "torch" as a C or C++ host of libtorch uses it: by its name, without Python.
#include <shardwright/shardwright.h>

#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/gloo_groups.h"
#include "tests/support/temporary_directory.h"

namespace shardwright {
namespace {

// A failed call fails the test and gives the text.
#define EXPECT_SHW_OK(call)                                                 \
  do {                                                                      \
    shw_error* error_of_call = nullptr;                                     \
    shw_error** error = &error_of_call;                                     \
    EXPECT_EQ((call), SHW_OK) << shw_error_message(error_of_call, nullptr); \
    shw_error_release(error_of_call);                                       \
  } while (0)

std::string config_of(const test::GlooGroups& groups, int32_t rank) {
  const auto request = groups.request(rank);
  return fmt::format(R"({{"group": "{}", "gloo": "{}", "poll_seconds": 0.005}})", request.name,
                     request.gloo);
}

class TorchPlugin : public testing::Test {
 protected:
  TorchPlugin() {
    EXPECT_SHW_OK(shw_context_create(nullptr, &context_, error));
    EXPECT_SHW_OK(shw_context_load_plugin(context_, "torch", error));
  }
  ~TorchPlugin() override { shw_context_release(context_); }

  shw_collective* open(const std::string& config) {
    shw_collective* made = nullptr;
    EXPECT_SHW_OK(
        shw_context_open_collective(context_, "torch", config.data(), config.size(), &made, error));
    return made;
  }

  // body(rank, collective) for each rank, on a thread of its own.
  void on_ranks(int32_t size, const std::function<void(int32_t, shw_collective*)>& body) {
    const test::GlooGroups groups(size);
    std::vector<std::jthread> threads;
    for (int32_t rank = 0; rank < size; ++rank) {
      threads.emplace_back([this, rank, &groups, &body] {
        shw_collective* collective = open(config_of(groups, rank));
        body(rank, collective);
        shw_collective_release(collective);
      });
    }
    threads.clear();
  }

  // Status of opening; the text goes to message.
  shw_status refused(const std::string& config, std::string* message) {
    shw_collective* made = nullptr;
    shw_error* error = nullptr;
    const shw_status status =
        shw_context_open_collective(context_, "torch", config.data(), config.size(), &made, &error);
    *message = shw_error_message(error, nullptr);
    shw_error_release(error);
    return status;
  }

  shw_context* context_ = nullptr;
};

TEST_F(TorchPlugin, LiesBesideTheLibraryAndSaysWhatItOffers) {
  shw_buffer* json = nullptr;
  EXPECT_SHW_OK(shw_context_plugins(context_, &json, error));
  const std::string text(static_cast<const char*>(shw_buffer_data(json)), shw_buffer_size(json));
  EXPECT_NE(text.find("libshardwright_torch.so"), std::string::npos) << text;
  shw_buffer_release(json);
}

TEST_F(TorchPlugin, RefusesAConfigThatItDoesNotUnderstand) {
  std::string message;
  EXPECT_EQ(refused("{}", &message), SHW_INVALID_ARGUMENT) << message;
  EXPECT_NE(message.find("names no group"), std::string::npos) << message;
  EXPECT_EQ(refused(R"({"group": "nobody's"})", &message), SHW_NOT_FOUND) << message;
}

TEST_F(TorchPlugin, CarriesEveryOperationOfTheTable) {
  on_ranks(3, [](int32_t rank, shw_collective* collective) {
    EXPECT_EQ(shw_collective_rank(collective), rank);
    EXPECT_EQ(shw_collective_size(collective), 3);
    EXPECT_STREQ(shw_collective_name(collective, nullptr), "c10d");
    const auto root = [rank](auto* pointer) { return rank == 1 ? pointer : nullptr; };
    uint64_t sizes[3] = {1, 0, 2};
    char mine[3] = {static_cast<char>('a' + rank), static_cast<char>('a' + rank), 0};
    char all[10] = "";
    EXPECT_SHW_OK(shw_collective_barrier(collective, nullptr, error));
    EXPECT_SHW_OK(shw_collective_gather_v(collective, nullptr, mine, sizes[rank], root(all),
                                          root(sizes), 1, error));
    EXPECT_STREQ(all, rank == 1 ? "acc" : "");
    EXPECT_SHW_OK(shw_collective_broadcast(collective, nullptr, all, 3, 1, error));
    EXPECT_STREQ(all, "acc");
    char part[3] = "";
    EXPECT_SHW_OK(shw_collective_scatter_v(collective, nullptr, root(all), root(sizes), part,
                                           sizes[rank], 1, error));
    EXPECT_EQ(std::string(part), std::string(sizes[rank], static_cast<char>('a' + rank)));
    char gathered[10] = "";
    EXPECT_SHW_OK(shw_collective_all_gather(collective, nullptr, mine, 2, gathered, error));
    EXPECT_STREQ(gathered, "aabbcc");
    std::memset(gathered, 0, sizeof gathered);
    EXPECT_SHW_OK(shw_collective_all_gather_v(collective, nullptr, mine, sizes[rank], gathered,
                                              sizes, error));
    EXPECT_STREQ(gathered, "acc");
    uint64_t ones[3] = {1, 1, 1};
    EXPECT_SHW_OK(
        shw_collective_all_to_all_v(collective, nullptr, "xyz", ones, gathered, ones, error));
    EXPECT_EQ(std::string(gathered, 3), std::string(3, "xyz"[rank]));
    int64_t value = rank;
    EXPECT_SHW_OK(
        shw_collective_all_reduce_i64(collective, nullptr, &value, 1, SHW_REDUCE_SUM, error));
    EXPECT_EQ(value, 3);
  });
}

TEST_F(TorchPlugin, AnErrorBringsItsRank) {
  on_ranks(2, [](int32_t rank, shw_collective* collective) {
    const uint64_t sizes[2] = {4, 4};
    char bytes[8] = "";
    shw_error* error = nullptr;
    EXPECT_EQ(shw_collective_scatter_v(collective, nullptr, bytes, sizes, bytes, rank == 0 ? 4 : 5,
                                       0, &error),
              SHW_INVALID_ARGUMENT);
    shw_error_detail detail{};
    EXPECT_EQ(shw_error_detail_at(error, 0, &detail), SHW_OK);
    EXPECT_STREQ(detail.key, "rank");
    shw_error_release(error);
  });
}

// An operation of a communicator as a host waits for it.
void expect_ended(shw_status issued, shw_work* work) {
  ASSERT_EQ(issued, SHW_OK);
  EXPECT_SHW_OK(shw_work_wait(work, -1, error));
  shw_work_release(work);
}

// Gathers and exchanges by the plugin, the sum by the library.
TEST_F(TorchPlugin, CarriesEveryOperationOfACommunicator) {
  const test::GlooGroups groups(2);
  std::vector<std::jthread> threads;
  for (int32_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const std::string config = config_of(groups, rank);
      shw_communicator* communicator = nullptr;
      EXPECT_SHW_OK(shw_context_open_communicator(context_, "torch", config.data(), config.size(),
                                                  &communicator, error));
      EXPECT_STREQ(shw_communicator_name(communicator, nullptr), "c10d");
      EXPECT_TRUE(shw_communicator_capabilities(communicator) & SHW_COMMUNICATOR_ASYNC);
      shw_communicator_call call = SHW_COMMUNICATOR_CALL_INIT;
      call.count = 1;
      call.dtype = SHW_FLOAT32;
      shw_work* work = nullptr;
      const float mine[2] = {static_cast<float>(rank + 1), static_cast<float>(10 * rank)};
      float all[2] = {};
      shw_status issued =
          shw_communicator_all_gather(communicator, &call, mine, 4, all, 8, &work, nullptr);
      expect_ended(issued, work);
      EXPECT_EQ(all[0] + 10 * all[1], 21);
      issued = shw_communicator_all_to_all(communicator, &call, mine, 8, all, 8, &work, nullptr);
      expect_ended(issued, work);
      EXPECT_EQ(all[1], rank == 0 ? 2 : 10);
      issued =
          shw_communicator_reduce_scatter(communicator, &call, mine, 8, all, 4, &work, nullptr);
      expect_ended(issued, work);
      EXPECT_EQ(all[0], rank == 0 ? 3 : 10);
      shw_communicator_release(communicator);
    });
  }
}

TEST_F(TorchPlugin, CarriesACheckpoint) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/checkpoint";
  on_ranks(2, [&](int32_t rank, shw_collective* collective) {
    float mine[2] = {static_cast<float>(rank), 5};
    shw_state* state = nullptr;
    shw_context* context = nullptr;
    EXPECT_SHW_OK(shw_context_create(nullptr, &context, error));
    EXPECT_SHW_OK(shw_state_create(&state, error));
    const int64_t global[1] = {4};
    const int64_t offset[1] = {2 * rank};
    const int64_t local[1] = {2};
    shw_tensor tensor = SHW_TENSOR_INIT;
    tensor.data = mine;
    tensor.shape = local;
    tensor.ndim = 1;
    tensor.device_type = SHW_DEVICE_CPU;
    tensor.dtype = SHW_FLOAT32;
    EXPECT_SHW_OK(
        shw_state_add_tensor(state, "w", 1, &tensor, global, offset, SHW_KIND_AUTO, error));
    shw_report* saved = nullptr;
    shw_report* loaded = nullptr;
    EXPECT_SHW_OK(
        shw_save(context, state, nullptr, path.c_str(), collective, nullptr, &saved, error));
    EXPECT_NE(std::strstr(shw_report_json(saved, nullptr), R"("collective":"c10d")"), nullptr);
    std::memset(mine, 0, sizeof mine);
    EXPECT_SHW_OK(
        shw_load(context, state, nullptr, path.c_str(), collective, nullptr, &loaded, error));
    EXPECT_EQ(mine[0], static_cast<float>(rank));
    EXPECT_EQ(mine[1], 5);
    shw_report_release(saved);
    shw_report_release(loaded);
    shw_state_release(state);
    shw_context_release(context);
  });
}

}  // namespace
}  // namespace shardwright
