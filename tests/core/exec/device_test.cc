// SPDX-License-Identifier: Apache-2.0
//
// Tensors on a device that the host cannot reach: saved, loaded, read and staged through the
// interface to devices alone, be it one of the runtime or one that a state brings an access to; a
// device that fails at any call; a device that nothing reaches.
#include <algorithm>
#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/core/exec/save_world.h"
#include "tests/support/guarded_device.h"

namespace shardwright::exec::test {
namespace {

using shardwright::test::GuardedDevice;
using shardwright::test::RandomSource;

constexpr uint64_t kDeviceBytes = uint64_t{64} << 20;
constexpr int64_t kMaxCalls = 4096;  // of one save or load of a small world

// The device as a state may bring it.
class GuardedAccess final : public WindowAccess {
 public:
  explicit GuardedAccess(std::shared_ptr<GuardedDevice> device) : device_(std::move(device)) {}
  std::string_view name() const override { return device_->name(); }
  Status gather(const StridedWindow& from, uint64_t begin, std::span<std::byte> to) override {
    return device_->gather(placed(from), begin, to);
  }
  Status scatter(std::span<const std::byte> from, const StridedWindow& to,
                 uint64_t begin) override {
    return device_->scatter(from, placed(to), begin);
  }

 private:
  device::DeviceWindow placed(const StridedWindow& window) const {
    return {device_.get(), window, GuardedDevice::kId, GuardedDevice::kStream};
  }

  const std::shared_ptr<GuardedDevice> device_;  // co-owned with the test
};

class DeviceFixture : public testing::Test {
 protected:
  explicit DeviceFixture(bool by_access) : by_access_(by_access) { renew(); }

  void renew() {
    device_ = std::make_shared<GuardedDevice>(kDeviceBytes);
    RuntimeOptions options;
    options.threads = 2;
    if (!by_access_) options.devices = {{GuardedDevice::kType, device_}};
    runtime_ = std::move(*Runtime::create(options));
  }
  void let_reach(State* state) {
    if (by_access_)
      state->add_access(
          {GuardedDevice::kType, GuardedDevice::kId, std::make_shared<GuardedAccess>(device_)});
  }

  // The same entries with their tensors on the device.
  std::shared_ptr<State> moved(const State& state) {
    std::shared_ptr<State> there = device_->moved(state);
    let_reach(there.get());
    return there;
  }
  World moved(const World& world) {
    World result;
    result.tensors = world.tensors;
    for (const Holding& rank : world.ranks) {
      Holding holding;
      holding.state = moved(*rank.state);
      result.ranks.push_back(std::move(holding));
    }
    return result;
  }

  // What a holding's entries hold now that its tensors are filled on the device.
  void fetch(const State& on_device, Holding* holding) {
    for (size_t i = 0; i < holding->memory.size(); ++i) {
      std::vector<std::byte>& memory = *holding->memory[i];
      if (memory.empty()) continue;
      std::memcpy(memory.data(), device_->behind(on_device.tensors()[i].local.data), memory.size());
    }
  }

  Result<Report> load_on_device(const Holding& target, std::shared_ptr<State>* on_device,
                                const LoadOptions& options = {}) {
    *on_device = moved(*target.state);
    const auto alone = collective::make_single_collective();
    return load(*runtime_, location_, **on_device, *alone, options, CallContext());
  }

  const bool by_access_;
  std::shared_ptr<GuardedDevice> device_;
  std::unique_ptr<Runtime> runtime_;
  format::Location location_{storage::make_memory_storage(), "ckpt"};
};

class DeviceTest : public DeviceFixture, public testing::WithParamInterface<bool> {
 protected:
  DeviceTest() : DeviceFixture(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(Each, DeviceTest, testing::Bool(), [](const auto& each) {
  return std::string(each.param ? "Access" : "Runtime");
});

class DeviceOfARuntime : public DeviceFixture {
 protected:
  DeviceOfARuntime() : DeviceFixture(/*by_access=*/false) {}
};

TEST_P(DeviceTest, SavesOfSeveralRanksGoThroughTheInterface) {
  const World world = make_world(3, 9);
  SaveOptions options;
  options.rules.verify_replicas = plan::VerifyReplicas::kAll;
  const auto saved = save_world(*runtime_, moved(world), location_, options);
  ASSERT_EQ(agreed_code(saved), StatusCode::kOk) << texts(saved);
  EXPECT_TRUE(stores(*runtime_, location_, world));
  options.digests = false;
  const auto again = save_world(*runtime_, moved(world), location_, options);
  ASSERT_EQ(agreed_code(again), StatusCode::kOk) << texts(again);
  EXPECT_TRUE(stores(*runtime_, location_, world));
}

TEST_P(DeviceTest, LoadsInAnyLayoutGoThroughTheInterface) {
  const World world = make_world(2, 4);
  ASSERT_EQ(agreed_code(save_world(*runtime_, world, location_)), StatusCode::kOk);
  RandomSource random;
  for (int round = 0; round < 8; ++round) {
    Holding target;
    for (const Dense& tensor : world.tensors) {
      if (round == 0) {
        add_whole(&target, tensor, /*filled=*/false);
      } else {
        add_boxes(&target, tensor, random_cuts(random, tensor.shape, round), /*filled=*/false);
      }
    }
    std::shared_ptr<State> on_device;
    const Result<Report> loaded = load_on_device(target, &on_device);
    ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
    fetch(*on_device, &target);
    for (size_t t = 0; t < world.tensors.size(); ++t)
      EXPECT_TRUE(holds(target, t, world.tensors[t])) << "round " << round;
    renew();
  }
}

TEST_P(DeviceTest, ReplicasInSeveralPiecesAreDigestedThere) {
  RandomSource random;
  const Dense truth = random_dense(random, "w", DType::kFloat32, {8, 6});
  World world;
  world.tensors = {truth};
  world.ranks.resize(2);
  for (Holding& rank : world.ranks)
    add_boxes(&rank, truth, {{{0, 0}, {8, 2}}, {{0, 2}, {8, 4}}}, true, EntryKind::kReplicated);
  SaveOptions options;
  options.rules.verify_replicas = plan::VerifyReplicas::kAll;
  const auto saved = save_world(*runtime_, moved(world), location_, options);
  ASSERT_EQ(agreed_code(saved), StatusCode::kOk) << texts(saved);
  EXPECT_TRUE(stores(*runtime_, location_, world));
}

// A matrix whose element (i, j) lies at j * rows + i.
struct Transposed {
  static constexpr int64_t kRows = 300;
  static constexpr int64_t kColumns = 200;
  std::vector<float> memory = std::vector<float>(kRows * kColumns);
  TensorView view;

  explicit Transposed(float first) {
    std::iota(memory.begin(), memory.end(), first);
    view.data = reinterpret_cast<std::byte*>(memory.data());
    view.dtype = DType::kFloat32;
    view.shape = Dims{kRows, kColumns};
    view.strides = Dims{1, kRows};
  }
};

TEST_P(DeviceTest, StridedTensorsAreSavedAndLoadedThere) {
  const Transposed stored(1.0F);
  auto state = std::make_shared<State>();
  ASSERT_TRUE(state->add_tensors({plain_tensor_entry("t", device_->moved(stored.view))}).ok());
  let_reach(state.get());
  const auto alone = collective::make_single_collective();
  ASSERT_TRUE(save(*runtime_, state, location_, *alone, SaveOptions(), CallContext()).ok());
  Transposed target(-1.0F);
  State wanted;
  const TensorView there = device_->moved(target.view);
  ASSERT_TRUE(wanted.add_tensors({plain_tensor_entry("t", there)}).ok());
  let_reach(&wanted);
  const Result<Report> loaded =
      load(*runtime_, location_, wanted, *alone, LoadOptions(), CallContext());
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  std::memcpy(target.memory.data(), device_->behind(there.data), target.memory.size() * 4);
  EXPECT_EQ(target.memory, stored.memory);
}

TEST_P(DeviceTest, CastsAndPaddingAreMadeThere) {
  Dense stored{"table", DType::kInt32, {4, 5}, {}};
  std::vector<int32_t> numbers(20);
  std::iota(numbers.begin(), numbers.end(), 1);
  stored.bytes.resize(80);
  std::memcpy(stored.bytes.data(), numbers.data(), 80);
  World world;
  world.tensors = {stored};
  world.ranks.resize(1);
  add_whole(&world.ranks[0], stored, true);
  ASSERT_EQ(agreed_code(save_world(*runtime_, world, location_)), StatusCode::kOk);
  Dense wider{"table", DType::kFloat32, {4, 7}, {}};
  wider.bytes.resize(112);
  LoadOptions options;
  options.rules.cast = plan::CastRule::kAllow;
  options.rules.shape = plan::ShapeRule::kCropAndPad;
  Holding target;
  add_whole(&target, wider, false);
  std::shared_ptr<State> on_device;
  const Result<Report> loaded = load_on_device(target, &on_device, options);
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  fetch(*on_device, &target);
  const auto* values = reinterpret_cast<const float*>(target.memory[0]->data());
  for (int64_t i = 0; i < 28; ++i)
    EXPECT_EQ(values[i], i % 7 < 5 ? static_cast<float>(i / 7 * 5 + i % 7 + 1) : 0.0F) << i;
  if (by_access_) return;  // by an access the host casts
  // A cast that this device does not make is refused before anything is written.
  Dense wide{"table", DType::kFloat64, {4, 5}, {}};
  wide.bytes.resize(160);
  Holding refused;
  add_whole(&refused, wide, false);
  EXPECT_EQ(load_on_device(refused, &on_device, options).status().code(),
            StatusCode::kUnimplemented);
}

TEST_F(DeviceOfARuntime, BoxesAreReadIntoIt) {
  const World world = make_world(2, 4);
  ASSERT_EQ(agreed_code(save_world(*runtime_, world, location_)), StatusCode::kOk);
  const auto checkpoint = *Checkpoint::open(*runtime_, location_);
  const Dense& rows = world.tensors[0];
  BoxRead read{*checkpoint->find_tensor(rows.name, -1), Box{Dims{500, 7}, Dims{40, 300}}, {}};
  std::vector<std::byte> memory(40 * 300 * 4);
  read.target.data = memory.data();
  read.target.dtype = rows.dtype;
  read.target.shape = read.box.sizes;
  read.target = device_->moved(read.target);
  const auto outcome = checkpoint->read_boxes({&read, 1}, VerifyRule::kOnRead, CallContext());
  ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
  std::memcpy(memory.data(), device_->behind(read.target.data), memory.size());
  EXPECT_EQ(memory, rows.box_bytes(read.box));
}

TEST_P(DeviceTest, ASaveInTheBackgroundCopiesItFirst) {
  const World world = make_world(1, 6);
  const World there = moved(world);
  const auto alone = collective::make_single_collective();
  CallContext call;
  call.on_staged = [&] {
    for (const TensorRef entry : there.ranks[0].state->tensors()) {
      const int64_t count = entry.local.element_count();
      if (count > 0) *device_->behind(entry.local.data) ^= std::byte{0xFF};
    }
  };
  const Result<Report> saved = save_in_background(*runtime_, there.ranks[0].state, location_,
                                                  *alone, SaveOptions(), 0, call);
  ASSERT_TRUE(saved.ok()) << saved.status().to_string();
  EXPECT_TRUE(stores(*runtime_, location_, world));
}

TEST_P(DeviceTest, ASaveWhoseDeviceFailsAtAnyCallCommitsNothing) {
  const World world = make_small_world(2, 6);
  const World there = moved(world);
  for (int64_t call = 0; call < kMaxCalls; ++call) {
    device_->fail_call(call);
    const auto saved = save_world(*runtime_, there, location_);
    device_->fail_call(-1);
    if (saved[0].ok()) {
      EXPECT_GT(call, 0) << "no call was made";
      EXPECT_TRUE(stores(*runtime_, location_, world));
      return;
    }
    ASSERT_EQ(agreed_code(saved), StatusCode::kUnavailable) << texts(saved);
    EXPECT_EQ(saved[0].status().detail("tensor"), "w") << texts(saved);
    EXPECT_TRUE(keys_at(location_).empty()) << "call " << call;
  }
  FAIL() << "it never succeeded";
}

TEST_P(DeviceTest, ALoadAndACopyWhoseDeviceFailsNameTheTensor) {
  const World world = make_small_world(1, 6);
  ASSERT_EQ(agreed_code(save_world(*runtime_, world, location_)), StatusCode::kOk);
  Holding target;
  add_boxes(&target, world.tensors[0], {{{0, 0}, {3, 60}}, {{0, 60}, {3, 68}}}, false);
  const auto on_device = moved(*target.state);
  const auto alone = collective::make_single_collective();
  device_->fail_call(0);
  const Status loaded =
      load(*runtime_, location_, *on_device, *alone, LoadOptions(), CallContext()).status();
  EXPECT_EQ(loaded.code(), StatusCode::kUnavailable) << loaded.to_string();
  EXPECT_EQ(loaded.detail("tensor"), "w") << loaded.to_string();
  device_->fail_call(0);
  const Status staged = stage_state(*runtime_, *on_device, CallContext()).status();
  EXPECT_EQ(staged.code(), StatusCode::kUnavailable) << staged.to_string();
  EXPECT_EQ(staged.detail("tensor"), "w") << staged.to_string();
}

TEST_F(DeviceOfARuntime, OneThatNothingReachesIsRefusedBeforeAnythingIsWritten) {
  const World world = make_small_world(1, 6);
  const auto on_device = device_->moved(*world.ranks[0].state);
  const auto without = make_runtime();
  const auto alone = collective::make_single_collective();
  const auto is_named = [](const Status& status) {
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
    EXPECT_EQ(status.detail("tensor"), "w");
    EXPECT_NE(status.to_string().find("tensor w lies on extension:3"), std::string::npos)
        << status.to_string();
  };
  is_named(save(*without, on_device, location_, *alone, SaveOptions(), CallContext()).status());
  is_named(
      save_in_background(*without, on_device, location_, *alone, SaveOptions(), 0, CallContext())
          .status());
  EXPECT_TRUE(keys_at(location_).empty());
  ASSERT_EQ(agreed_code(save_world(*without, world, location_)), StatusCode::kOk);
  is_named(load(*without, location_, *on_device, *alone, LoadOptions(), CallContext()).status());
  const auto checkpoint = *Checkpoint::open(*without, location_);
  BoxRead read{0, whole_box(world.tensors[0].shape), view_of(on_device->tensors()[0].local)};
  read.target.shape = world.tensors[0].shape;
  is_named(checkpoint->read_boxes({&read, 1}, VerifyRule::kOnRead, CallContext()).status());
}

}  // namespace
}  // namespace shardwright::exec::test
