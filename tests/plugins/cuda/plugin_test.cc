// SPDX-License-Identifier: Apache-2.0
//
// The plugin "cuda" as a host loads it: by its name, on machines with and without a GPU.
#include <shardwright/shardwright.h>

#include <string>

#include <gtest/gtest.h>

#include "core/base/cuda/cuda_calls.h"

namespace shardwright {
namespace {

class CudaPlugin : public testing::Test {
 protected:
  CudaPlugin() {
    EXPECT_EQ(shw_context_create(nullptr, &context_, nullptr), SHW_OK);
    shw_error* error = nullptr;
    EXPECT_EQ(shw_context_load_plugin(context_, "cuda", &error), SHW_OK)
        << shw_error_message(error, nullptr);
    shw_error_release(error);
  }
  ~CudaPlugin() override { shw_context_release(context_); }

  // Status of opening a device, released at once; the text of a failure goes to message.
  shw_status open_device(const std::string& config, std::string* message) {
    shw_device* made = nullptr;
    shw_error* error = nullptr;
    const shw_status status =
        shw_context_open_device(context_, "cuda", config.data(), config.size(), &made, &error);
    if (error != nullptr) *message = shw_error_message(error, nullptr);
    shw_error_release(error);
    shw_device_release(made);
    return status;
  }

  // The same for a communicator of one rank.
  shw_status open_communicator(const std::string& id, const std::string& library,
                               std::string* message) {
    const std::string config =
        R"({"id": ")" + id + R"(", "rank": 0, "size": 1, "library": ")" + library + "\"}";
    shw_communicator* made = nullptr;
    shw_error* error = nullptr;
    const shw_status status = shw_context_open_communicator(context_, "cuda", config.data(),
                                                            config.size(), &made, &error);
    if (error != nullptr) *message = shw_error_message(error, nullptr);
    shw_error_release(error);
    shw_communicator_release(made);
    return status;
  }
  // A new id, or the text of the failure.
  shw_status make_id(const std::string& library, std::string* id) {
    const std::string question = R"({"ask": "nccl_id", "library": ")" + library + "\"}";
    shw_buffer* answer = nullptr;
    shw_error* error = nullptr;
    const shw_status status =
        shw_context_ask_plugin(context_, "cuda", question.data(), question.size(), &answer, &error);
    *id = error != nullptr ? std::string(shw_error_message(error, nullptr))
                           : std::string(static_cast<const char*>(shw_buffer_data(answer)),
                                         shw_buffer_size(answer));
    shw_error_release(error);
    shw_buffer_release(answer);
    return status;
  }

  shw_context* context_ = nullptr;
};

TEST_F(CudaPlugin, LiesBesideTheLibraryAndSaysWhatItOffers) {
  shw_buffer* json = nullptr;
  EXPECT_EQ(shw_context_plugins(context_, &json, nullptr), SHW_OK);
  const std::string text(static_cast<const char*>(shw_buffer_data(json)), shw_buffer_size(json));
  EXPECT_NE(text.find("libshardwright_cuda.so"), std::string::npos) << text;
  shw_buffer_release(json);
}

TEST_F(CudaPlugin, RefusesAConfigThatItDoesNotUnderstand) {
  std::string message;
  EXPECT_EQ(open_device(R"({"gpu": 1})", &message), SHW_INVALID_ARGUMENT);
  EXPECT_NE(message.find("unknown key 'gpu'"), std::string::npos) << message;
}

TEST_F(CudaPlugin, SaysWhatIsMissingWhereThereIsNoGpu) {
  if (cuda::check_device(0).ok()) GTEST_SKIP() << "there is a GPU";
  std::string message;
  EXPECT_EQ(open_device("", &message), SHW_UNAVAILABLE);
  EXPECT_NE(message.find("no CUDA device can be used"), std::string::npos) << message;
  EXPECT_NE(message.find("NVIDIA driver"), std::string::npos) << message;
  EXPECT_NE(message.find("nvidia-smi"), std::string::npos) << message;
}

TEST_F(CudaPlugin, OpensADevice) {
  const Status there = cuda::check_device(0);
  if (!there.ok()) GTEST_SKIP() << "there is no GPU: " << there.message();
  std::string message;
  EXPECT_EQ(open_device("", &message), SHW_OK) << message;
  EXPECT_EQ(open_device(R"({"device": 1000})", &message), SHW_INVALID_ARGUMENT);
}

TEST_F(CudaPlugin, MakesIdsWithoutAGpu) {
  const std::string library = SHW_NCCL_LIBRARY;
  if (library.empty()) GTEST_SKIP() << "the build found no libnccl.so.2 to run with";
  std::string first;
  std::string second;
  ASSERT_EQ(make_id(library, &first), SHW_OK) << first;
  ASSERT_EQ(make_id(library, &second), SHW_OK) << second;
  EXPECT_EQ(first.size(), 256U);
  EXPECT_EQ(first.find_first_not_of("0123456789abcdef"), std::string::npos) << first;
  EXPECT_NE(first, second);
}

TEST_F(CudaPlugin, SaysWhatIsMissingWhereThereIsNoNccl) {
  std::string message;
  EXPECT_EQ(make_id("/no/such/libnccl.so.2", &message), SHW_UNAVAILABLE);
  EXPECT_NE(message.find("/no/such/libnccl.so.2"), std::string::npos) << message;
  EXPECT_NE(message.find("nvidia-nccl-cu13"), std::string::npos) << message;
  EXPECT_EQ(make_id("libm.so.6", &message), SHW_UNAVAILABLE);
  EXPECT_NE(message.find("or newer"), std::string::npos) << message;
}

TEST_F(CudaPlugin, SaysWhatIsMissingForACommunicatorWhereThereIsNoGpu) {
  if (cuda::check_device(0).ok()) GTEST_SKIP() << "there is a GPU";
  std::string message;
  EXPECT_EQ(open_communicator(std::string(256, '0'), SHW_NCCL_LIBRARY "x", &message),
            SHW_UNAVAILABLE);
  EXPECT_NE(message.find("no CUDA device can be used"), std::string::npos) << message;
  EXPECT_EQ(open_communicator("00", "libnccl.so.2", &message), SHW_INVALID_ARGUMENT);
  EXPECT_NE(message.find("256"), std::string::npos) << message;
}

TEST_F(CudaPlugin, OpensACommunicator) {
  const Status there = cuda::check_device(0);
  if (!there.ok()) GTEST_SKIP() << "there is no GPU: " << there.message();
  std::string id;
  std::string message;
  ASSERT_EQ(make_id(SHW_NCCL_LIBRARY, &id), SHW_OK) << id;
  EXPECT_EQ(open_communicator(id, SHW_NCCL_LIBRARY, &message), SHW_OK) << message;
}

}  // namespace
}  // namespace shardwright
