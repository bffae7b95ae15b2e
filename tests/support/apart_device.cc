// SPDX-License-Identifier: Apache-2.0
//
// Memory of an allocation is a file without a name that is mapped twice: once without any rights,
// which is what the device gives, and once to be read and written.
#include "tests/support/apart_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace shardwright::test {
namespace {

using device::CopyKind;
using device::ElementCopy;
using device::LaneDevice;

struct Mapping {
  std::byte* behind = nullptr;
  size_t bytes = 0;
};

// All memory of all such devices.
class Mappings {
 public:
  static Mappings& all() {
    static Mappings mappings;
    return mappings;
  }

  std::byte* add(size_t bytes) {
    bytes += 1;  // an address behind the last byte is of this memory, too
    const int file = ::memfd_create("apart", MFD_CLOEXEC);
    if (file < 0) return nullptr;
    void* given = MAP_FAILED;
    void* kept = MAP_FAILED;
    if (::ftruncate(file, static_cast<off_t>(bytes)) == 0) {
      given = ::mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, file, 0);
      kept = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    ::close(file);
    if (given == MAP_FAILED || kept == MAP_FAILED) return nullptr;
    const std::lock_guard<std::mutex> lock(mutex_);
    mappings_[static_cast<std::byte*>(given)] = {static_cast<std::byte*>(kept), bytes};
    return static_cast<std::byte*>(given);
  }
  void remove(std::byte* given) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = mappings_.find(given);
    if (found == mappings_.end()) std::abort();
    ::munmap(found->second.behind, found->second.bytes);
    ::munmap(given, found->second.bytes);
    mappings_.erase(found);
  }
  std::byte* behind(const std::byte* address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto found = mappings_.upper_bound(const_cast<std::byte*>(address));
    if (found == mappings_.begin()) std::abort();
    --found;
    const auto offset = static_cast<size_t>(address - found->first);
    if (offset > found->second.bytes) std::abort();
    return found->second.behind + offset;
  }

 private:
  std::mutex mutex_;
  std::map<std::byte*, Mapping> mappings_;  // by the address that was given
};

class ApartDevice final : public LaneDevice {
 public:
  explicit ApartDevice(bool inline_lanes) : host_(device::make_host_lane_device(inline_lanes)) {}

  std::string_view name() const override { return "apart"; }
  bool is_host() const override { return false; }
  device::DeviceNumber number() const override { return kApartNumber; }
  Result<device::LanePtr> make_lane(int32_t priority) override {
    return host_->make_lane(priority);
  }
  Result<device::EventPtr> make_event() override { return host_->make_event(); }
  // What was there before must not be of use to anybody.
  Result<std::span<std::byte>> allocate(uint64_t bytes) override {
    if (bytes == 0) return std::span<std::byte>();
    std::byte* const given = Mappings::all().add(bytes);
    if (given == nullptr) return resource_exhausted("memory", "no memory of the apart device");
    std::memset(behind(given), 0xA5, bytes);
    return std::span(given, static_cast<size_t>(bytes));
  }
  void release(std::span<std::byte> memory) noexcept override {
    if (!memory.empty()) Mappings::all().remove(memory.data());
  }
  Result<std::span<std::byte>> allocate_pinned(uint64_t bytes) override {
    return host_->allocate(bytes);
  }
  void release_pinned(std::span<std::byte> memory) noexcept override { host_->release(memory); }
  Status copy(device::Lane& lane, CopyKind kind, std::span<const std::byte> source,
              std::span<std::byte> target) override {
    if (source.size() != target.size()) return invalid_argument("a copy between sizes");
    if (source.empty()) return {};
    return lane.submit([kind, source, target]() -> Status {
      const auto from = kind == CopyKind::kHostToDevice ? source : behind(source);
      const auto to = kind == CopyKind::kDeviceToHost ? target : behind(target);
      std::memmove(to.data(), from.data(), to.size());
      return {};
    });
  }
  Status copy_elements(device::Lane& lane, const ElementCopy& copy) override {
    SHW_RETURN_IF_ERROR(device::check_element_copy(copy));
    return lane.submit([copy] {
      ElementCopy there = copy;
      there.source = behind(copy.source);
      there.target = behind(copy.target);
      return device::copy_elements_on_host(there);
    });
  }
  Status fill_zero(device::Lane& lane, std::span<std::byte> target) override {
    return lane.submit([target]() -> Status {
      const auto there = behind(target);
      std::memset(there.data(), 0, there.size());
      return {};
    });
  }
  uint64_t current_stream() const override { return 0; }

 private:
  const std::shared_ptr<LaneDevice> host_;
};

class ApartCommunicator final : public collective::Communicator {
 public:
  explicit ApartCommunicator(collective::CommunicatorPtr inner) : inner_(std::move(inner)) {}
  int32_t rank() const override { return inner_->rank(); }
  int32_t size() const override { return inner_->size(); }
  std::string_view name() const override { return "apart"; }
  uint64_t capabilities() const override {
    return (inner_->capabilities() & ~uint64_t{collective::kReachesHostMemory}) |
           collective::kReachesDeviceMemory;
  }
  Result<collective::WorkPtr> all_gather(const collective::CommunicatorCall& call,
                                         std::span<const std::byte> in,
                                         std::span<std::byte> out) override {
    return inner_->all_gather(call, behind(in), behind(out));
  }
  Result<collective::WorkPtr> all_to_all(const collective::CommunicatorCall& call,
                                         std::span<const std::byte> in,
                                         std::span<std::byte> out) override {
    return inner_->all_to_all(call, behind(in), behind(out));
  }
  Result<collective::WorkPtr> reduce_scatter(const collective::CommunicatorCall& call,
                                             std::span<const std::byte> in,
                                             std::span<std::byte> out) override {
    return inner_->reduce_scatter(call, behind(in), behind(out));
  }
  Result<collective::WorkPtr> all_reduce(const collective::CommunicatorCall& call,
                                         std::span<std::byte> data) override {
    return inner_->all_reduce(call, behind(data));
  }
  void abort(const Status& cause) noexcept override { inner_->abort(cause); }

 private:
  const collective::CommunicatorPtr inner_;
};

}  // namespace

std::shared_ptr<LaneDevice> make_apart_device(bool inline_lanes) {
  return std::make_shared<ApartDevice>(inline_lanes);
}

std::byte* behind(const std::byte* address) {
  return Mappings::all().behind(address);
}

collective::CommunicatorPtr make_apart_communicator(collective::CommunicatorPtr inner) {
  return std::make_shared<ApartCommunicator>(std::move(inner));
}

}  // namespace shardwright::test
